"""Fixtures that the tests of every wing may ask for: storage in memory and in PostgreSQL."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from sexton_storage.memory import Faults, MemoryStorage, open_memory_storage

START_MS = 1_732_060_800_000
"""Where a test's clock begins: 2024-11-20 00:00 UTC."""


@dataclass(slots=True)
class TestClock:
    """A clock that stands until it is moved; Unix ms."""

    __test__ = False
    now: int = START_MS

    def __call__(self) -> int:
        return self.now

    def advance(self, ms: int) -> None:
        self.now += ms


@pytest.fixture
def database_clock() -> TestClock:
    """The clock of ``memory_storage``, to be moved by the test."""
    return TestClock()


@pytest.fixture
def storage_faults() -> Faults:
    """The misfortunes of ``memory_storage``, to be ordered by the test."""
    return Faults()


@pytest.fixture
async def memory_storage(database_clock: TestClock, storage_faults: Faults) -> AsyncIterator[MemoryStorage]:
    """An empty storage in memory."""
    async with open_memory_storage(clock=database_clock, faults=storage_faults) as storage:
        yield storage
