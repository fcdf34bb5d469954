"""The cron triggers of active agents, and when each fires next."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol
from uuid import UUID

import msgspec

NEVER: Final = 2**62
"""``next_at`` of a schedule that has no further firing."""


class CronEntry(msgspec.Struct, frozen=True, gc=False):
    """One trigger that may fire: of an agent that is active, in the configuration that it has now."""

    zombie_id: UUID
    schedule: str
    timezone: str
    since: int
    """From when on its firings count: the save that declared it, or that woke the agent."""
    next_at: int | None
    """None until the next time has been worked out."""


class Firing(msgspec.Struct, frozen=True, gc=False):
    """What an event that a schedule wakes commits along with itself: that this firing is over."""

    schedule: str
    timezone: str
    due_at: int
    """``next_at`` as it was seen: a firing is somebody's who still finds it so."""
    next_at: int


class CronStore(Protocol):
    async def due(self, *, before: int, limit: int) -> Sequence[CronEntry]:
        """Those without a plan first, then those that fire up to ``before``, the most overdue first."""
        ...

    async def next_at(self) -> int | None:
        """When the earliest of all fires; None when none is planned."""
        ...

    async def load(self, zombie_id: UUID, schedule: str, timezone: str) -> CronEntry | None: ...
    async def plan(self, seen: CronEntry, next_at: int) -> bool:
        """Move ``next_at`` on without an event.

        False when the entry is not as it was seen, or gone.
        """
        ...


def declared(compiled: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The schedules of a compiled configuration, each with its time zone.

    >>> declared({"triggers": [{"type": "cron", "schedule": "0 5 * * *"}, {"type": "webhook"}]})
    [('0 5 * * *', 'UTC')]
    """
    triggers = compiled.get("triggers") or ()
    crons = (t for t in triggers if t.get("type") == "cron")
    return list(dict.fromkeys((t["schedule"], t.get("timezone") or "UTC") for t in crons))
