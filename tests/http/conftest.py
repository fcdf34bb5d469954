"""Fixtures of the front end's tests."""

from collections.abc import AsyncIterator

import pytest

from tests.http.house import House, open_house


@pytest.fixture
async def house() -> AsyncIterator[House]:
    """A server with one tenant, one workspace and the admin's key."""
    async with open_house() as opened:
        yield opened
