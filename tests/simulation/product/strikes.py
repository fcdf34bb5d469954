"""Hits a server between a commit and its answer: what it asked for is done, and it never hears so, or late.

Such a moment lasts a millisecond. Faults that come by the clock seldom meet it, and never that of a rare
write, such as a credit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Final

import trio

from tests.simulation.world.processes import PROCESS, Process

CALLS: Final = frozenset(
    {
        "MemoryCrons.plan",
        "MemoryDeliveries.keep",
        "MemoryErasures.add",
        "MemoryErasures.step",
        "MemoryErasures.stop",
        "MemoryFollowUps.close",
        "MemoryFollowUps.keep",
        "MemoryJobs.add",
        "MemoryJobs.save",
        "MemoryKeyUses.begin",
        "MemoryKeyUses.settle",
        "MemoryTenants.credit",
        "MemoryTranscripts.append",
        "MemoryZombies.create",
    }
)
"""The calls of stores that write; what goes through the journal is hit as well, by the name of its write."""


def has_strikes(seed: int) -> bool:
    """Whether servers of this seed are hit so. The others have more time for all else.

    >>> has_strikes(0), has_strikes(1)
    (False, True)
    """
    return seed % 2 == 1


class Strike:
    """One that waits for its moment. ``hit`` has the server that it has hit."""

    def __init__(self, rng: Random, blow: Callable[[Process], None]) -> None:
        self.rng, self.blow = rng, blow
        self.hit: Process | None = None
        self.has_come = trio.Event()


class Strikes:
    """Those that wait, the oldest first."""

    def __init__(self) -> None:
        self._waiting: list[Strike] = []
        self._seen: Counter[str] = Counter()

    async def wait(self, strike: Strike, at_most_s: float) -> Process | None:
        """Have a server hit after one of its next writes; give it, or None if no write was picked in time."""
        self._waiting.append(strike)
        try:
            with trio.move_on_after(at_most_s):
                await strike.has_come.wait()
        finally:
            if strike in self._waiting:
                self._waiting.remove(strike)
        return strike.hit

    def written(self, name: str) -> None:
        """Tell that the program that runs has committed this. The rarer it is, the likelier it is hit."""
        seen, process = self._seen[name], PROCESS.get()
        self._seen[name] = seen + 1
        if not self._waiting or process is None:
            return
        strike = self._waiting[0]
        if strike.rng.random() * (1 + seen) < 1:
            self._waiting.pop(0)
            strike.hit = process
            strike.has_come.set()
            strike.blow(process)
