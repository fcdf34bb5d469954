"""Fixtures of the front end's tests."""

from collections.abc import AsyncIterator

import pytest

from sexton_http.wire.tls import Tls
from tests.worlds.certificates import make_certificate
from tests.worlds.http import HttpWorld, open_http_world

LAST = "test_every_declared_code_was_seen"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One test looks back at all others of the folder, so it comes after them."""
    items.sort(key=lambda item: item.name == LAST)


@pytest.fixture
async def world() -> AsyncIterator[HttpWorld]:
    """A server with one tenant, one workspace and the admin's key."""
    async with open_http_world() as opened:
        yield opened


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    """For localhost and its address, of nobody in particular."""
    return make_certificate(tmp_path_factory.mktemp("tls"), "localhost", "127.0.0.1")


@pytest.fixture(params=["plain", "tls"])
def tls(request: pytest.FixtureRequest, certificate: Tls) -> Tls | None:
    """Whoever asks for it is run twice: over a plain socket, and over TLS."""
    return certificate if request.param == "tls" else None
