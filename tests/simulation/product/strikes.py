"""Hits a server, or a runner that it serves, between a commit and its answer, which then comes late or never.

Such a moment lasts a millisecond. Faults that come by the clock seldom meet it, and never that of a rare
write, such as a credit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any, Final

import trio

from sexton_storage.writes import AppendEvent
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
        "MemoryImprovement.decide",
        "MemoryJobs.add",
        "MemoryJobs.save",
        "MemoryKeyUses.begin",
        "MemoryKeyUses.settle",
        "MemoryTenants.credit",
        "MemoryTranscripts.append",
        "MemoryZombies.create",
        "MemoryZombies.save",
    }
)
"""The calls of stores that write; what goes through the journal is hit as well, by the name of its write."""


def name_of(write: object) -> str:
    """By what name a write of the journal is rare or frequent.

    The event of a replay is another one than what people send: a bulk job that is hit then has done a part of
    its page.
    """
    name = type(write).__name__
    return f"{name} again" if isinstance(write, AppendEvent) and write.event.resumes_event_id else name


def has_strikes(seed: int) -> bool:
    """Whether servers of this seed are hit so. The others have more time for all else.

    >>> has_strikes(0), has_strikes(1)
    (False, True)
    """
    return seed % 2 == 1


class Strike:
    """One that waits for its moment. ``hit`` has the server whose write it was."""

    def __init__(
        self, rng: Random, blow: Callable[[Process, Any], None], *, of: type[object] = object
    ) -> None:
        """``blow`` is given the server and the answer; ``of`` says to answers of which kind it comes.

        Those of stores are None here, those of the journal are not.
        """
        self.rng, self.blow, self._of = rng, blow, of
        self.hit: Process | None = None
        self.has_come = trio.Event()

    def comes(self, answer: object, seen: int) -> bool:
        """Whether it picks a write with this answer, before which ``seen`` of its name have been."""
        if self._of is not object:
            return isinstance(answer, self._of)
        return self.rng.random() * (1 + seen) < 1


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

    def written(self, name: str, answer: object = None) -> None:
        """Tell that the program that runs has committed this. The rarer it is, the likelier it is hit."""
        seen, process = self._seen[name], PROCESS.get()
        self._seen[name] = seen + 1
        if not self._waiting or process is None:
            return
        for strike in self._waiting:
            if strike.comes(answer, seen):
                self._waiting.remove(strike)
                strike.hit = process
                strike.has_come.set()
                strike.blow(process, answer)
                return
