"""The cron triggers of active agents, and when each fires next."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol
from uuid import UUID

import msgspec

from sexton_storage.records.events import EventStatus

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


class ScheduleNote(msgspec.Struct, frozen=True, gc=False):
    """What is said of a schedule beside its plan; it stays when the agent rests."""

    zombie_id: UUID
    schedule: str
    timezone: str
    paused_at: int | None = None
    paused_by: str | None = None
    missed: int = 0
    """Firings that were not made up for."""
    missed_from: int | None = None
    """When the latest of these were due: the first of them, and the last."""
    missed_until: int | None = None
    missed_why: str | None = None


class Fired(msgspec.Struct, frozen=True, gc=False):
    """An event that a schedule has made."""

    event_id: UUID
    status: EventStatus
    created_at: int
    request_json: str


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

    async def of_agents(self, zombie_ids: Sequence[UUID]) -> Sequence[CronEntry]: ...
    async def notes(self, zombie_ids: Sequence[UUID]) -> Sequence[ScheduleNote]: ...
    async def pause(self, note: ScheduleNote) -> None:
        """Keep when and by whom it was paused, or that it is not any more."""
        ...

    async def note_missed(self, note: ScheduleNote) -> None:
        """Add what was missed, unless it is noted already."""
        ...

    async def fired(
        self, workspace_id: UUID, zombie_id: UUID, schedule: str, *, limit: int
    ) -> Sequence[Fired]:
        """The events of a schedule, in whatever time zone, newest first."""
        ...


def declared(compiled: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The schedules of a compiled configuration, each with its time zone.

    >>> declared({"triggers": [{"type": "cron", "schedule": "0 5 * * *"}, {"type": "webhook"}]})
    [('0 5 * * *', 'UTC')]
    """
    triggers = compiled.get("triggers") or ()
    crons = (t for t in triggers if t.get("type") == "cron")
    return list(dict.fromkeys((t["schedule"], t.get("timezone") or "UTC") for t in crons))
