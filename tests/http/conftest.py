"""Fixtures of the front end's tests."""

from collections.abc import AsyncIterator

import pytest

from tests.http.house import House, open_house

LAST = "test_every_declared_code_was_seen"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One test looks back at all others of the folder, so it comes after them."""
    items.sort(key=lambda item: item.name == LAST)


@pytest.fixture
async def house() -> AsyncIterator[House]:
    """A server with one tenant, one workspace and the admin's key."""
    async with open_house() as opened:
        yield opened
