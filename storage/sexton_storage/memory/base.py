"""What every in-memory store begins with."""

from typing import TypeVar

from sexton_storage.memory.faults import Faults
from sexton_storage.memory.journal import MemoryJournal
from sexton_storage.memory.tables import Tables

R = TypeVar("R")


class MemoryStore:
    """A view of the shared tables; each call takes a round trip's time and can meet an outage."""

    def __init__(self, tables: Tables, faults: Faults, journal: MemoryJournal) -> None:
        self._tables = tables
        self._faults = faults
        self._journal = journal

    async def _round_trip(self) -> None:
        await self._faults.pass_time()
        self._faults.check_reachable()


def page_of(rows: list[R], page: int, page_size: int) -> tuple[list[R], int]:
    """Cut one page (from 1) out of all rows, with their number."""
    start = (page - 1) * page_size
    return rows[start : start + page_size], len(rows)
