"""Both implementations of storage."""

import time
from collections.abc import AsyncIterator

import pytest

from sexton_storage.memory import open_memory_storage
from sexton_storage.postgres import open_postgres_storage
from sexton_storage.stores import Storage
from tests.worlds.storage import StorageWorld


@pytest.fixture(params=["memory", "postgres"])
def storage_dsn(request: pytest.FixtureRequest) -> str | None:
    """None for memory; else the address of a database without rows."""
    if request.param == "memory":
        return None
    dsn: str = request.getfixturevalue("quick_dsn")
    return dsn


@pytest.fixture
async def storage(storage_dsn: str | None) -> AsyncIterator[Storage]:
    """An empty storage of either kind, on the time of day."""
    if storage_dsn is None:
        async with open_memory_storage(clock=lambda: int(time.time() * 1000)) as in_memory:
            yield in_memory
    else:
        async with open_postgres_storage(storage_dsn) as in_postgres:
            yield in_postgres


@pytest.fixture
async def world(storage: Storage) -> StorageWorld:
    """A tenant with plenty of money."""
    return await StorageWorld(storage).found()
