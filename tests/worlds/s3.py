"""A store of files for a test: on a stand-in for S3, or on the server that the environment names.

``SEXTON_TEST_S3=http://127.0.0.1:9000/bucket`` tests against a real one, with the usual variables of AWS for
its credentials. What needs a store that misbehaves is passed over then.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from sexton_storage.objects.s3_address import read_address
from sexton_storage.objects.s3_store import S3Store, open_s3_store
from tests.fakes.s3 import BUCKET, KEY_ID, REGION, SECRET, FakeS3, open_fake_s3

REAL = os.environ.get("SEXTON_TEST_S3", "")
PREFIX = "sexton/"
needs_fake = pytest.mark.skipif(bool(REAL), reason="a real store does not misbehave on demand")


@asynccontextmanager
async def open_store(prefix: str = PREFIX) -> AsyncIterator[tuple[S3Store, FakeS3]]:
    """A store and what it is kept in; with a real one, the stand-in stands idle."""
    async with open_fake_s3() as fake:
        if REAL:
            endpoint, _, bucket = REAL.rpartition("/")
            region = os.environ.get("AWS_REGION")
            address = read_address(f"s3://{bucket}/{prefix}{uuid.uuid4()}", endpoint, region)
            async with open_s3_store(address) as store:
                yield store, fake
            return
        address = read_address(f"s3://{BUCKET}/{prefix}", fake.endpoint, REGION)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("AWS_ACCESS_KEY_ID", KEY_ID)
            patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
            patch.delenv("AWS_SESSION_TOKEN", raising=False)
            async with open_s3_store(address) as store:
                yield store, fake
