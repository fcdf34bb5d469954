"""Misfortunes that a test orders from the in-memory storage."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import trio

from sexton_storage.errors import Conflict, StorageUnavailable
from sexton_storage.writes import Write


@dataclass(slots=True)
class Faults:
    """Handed to ``open_memory_storage``; may be changed while it is open."""

    latency_s: float = 0.0
    """Added to every store call and to every batch of the journal."""
    away: bool = False
    """The database cannot be reached: everything raises StorageUnavailable, nothing is kept."""
    _lost: Counter[type[Write[Any]]] = field(default_factory=Counter)
    _unknown: int = 0
    _conflicts: int = 0

    def lose(self, kind: type[Write[Any]], times: int = 1) -> None:
        """Let the next writes of a kind lose their race.

        Nothing is changed (a claim finds the agent leased).
        """
        self._lost[kind] += times

    def leave_unknown(self, times: int = 1) -> None:
        """Let the next writes commit and their writers hear StorageUnavailable.

        So it is when a server is closed in the middle of a commit.
        """
        self._unknown += times

    def conflict(self, times: int = 1) -> None:
        """Let the next versioned saves raise Conflict."""
        self._conflicts += times

    def takes_race(self, write: Write[Any]) -> bool:
        """Whether this write is one that was to lose; counts it."""
        if not self._lost[type(write)]:
            return False
        self._lost[type(write)] -= 1
        return True

    def takes_outcome(self) -> bool:
        """Whether the outcome of this write is to stay unknown; counts it."""
        if not self._unknown:
            return False
        self._unknown -= 1
        return True

    def may_conflict(self) -> None:
        """Raise Conflict when one was ordered."""
        if self._conflicts:
            self._conflicts -= 1
            raise Conflict("a fault that the test ordered")

    def check_reachable(self) -> None:
        """Raise StorageUnavailable during an outage."""
        if self.away:
            raise StorageUnavailable("the database is away: a fault that the test ordered")

    async def pass_time(self) -> None:
        """Be a checkpoint, as a round trip is, and take as long as was ordered."""
        await trio.sleep(self.latency_s)
