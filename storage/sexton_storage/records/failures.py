"""Failures: events that ended badly, in groups of those that failed alike."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Protocol
from uuid import UUID

import msgspec

from sexton_storage.paging import Page
from sexton_storage.records.events import EventStatus

FAILED: frozenset[EventStatus] = frozenset({EventStatus.AGENT_ERROR, EventStatus.DEAD_LETTERED})
"""An event that ended so has failed."""
END_CHARS = 300
"""How much of the beginning and of the end of an event's answer tells how it failed."""
HOUR_MS = 3_600_000


class FailureStatus(StrEnum):
    OPEN = "open"
    ACKNOWLEDGED = "acknowledged"
    MUTED = "muted"


class FailureGroup(msgspec.Struct, frozen=True, gc=False):
    id: UUID
    tenant_id: UUID
    workspace_id: UUID
    zombie_id: UUID
    digest: bytes
    """The hash of label, code and message; one an agent."""
    failure_label: str | None
    error_code: str | None
    message: str
    """Without what is different each time."""
    sample_event_id: UUID
    """The latest."""
    first_seen_at: int
    last_seen_at: int
    count: int
    acknowledged_by: str | None = None
    acknowledged_at: int | None = None
    muted_by: str | None = None
    muted_until: int | None = None


class Failure(msgspec.Struct, frozen=True, gc=False):
    """An event that failed and is in no group yet."""

    event_id: UUID
    zombie_id: UUID
    at: int
    failure_label: str | None
    error_code: str | None
    message: str
    """The event's answer; of a long one ``ends_of`` it."""


class Sorted(msgspec.Struct, frozen=True, gc=False):
    """A failure with the group it belongs to."""

    failure: Failure
    digest: bytes
    message: str
    new_id: UUID
    """The id of the group, if there is none yet."""


class FailureStore(Protocol):
    async def unsorted(self, *, limit: int) -> Sequence[Failure]:
        """Failures that are in no group yet."""
        ...

    async def sort(self, failures: Sequence[Sorted]) -> int:
        """Put each into its group, once, whoever else does so; how many were."""
        ...

    async def load(self, failure_id: UUID) -> FailureGroup | None: ...
    async def list(
        self,
        workspace_id: UUID,
        *,
        limit: int,
        now: int,
        before: Page | None = None,
        zombie_id: UUID | None = None,
        status: FailureStatus | None = None,
    ) -> Sequence[FailureGroup]:
        """Those seen last first; ``before`` is such a time and an id."""
        ...

    async def hours(
        self, failure_ids: Sequence[UUID], *, since_hour: int
    ) -> Mapping[UUID, Mapping[int, int]]:
        """How many failed in each hour since 1970, from ``since_hour`` on; hours without any are left out."""
        ...

    async def acknowledge(self, failure_id: UUID, by: str, now: int) -> FailureGroup | None:
        """Note that somebody knows of all that came until now."""
        ...

    async def mute(self, failure_id: UUID, by: str, until: int | None) -> FailureGroup | None:
        """Be quiet about it until then; None: no longer."""
        ...


def ends_of(text: str) -> str:
    """Give a text of whose middle nothing is needed.

    >>> len(ends_of("a" * 5000)), ends_of("short")
    (601, 'short')
    """
    return text if len(text) <= 2 * END_CHARS else f"{text[:END_CHARS]}\n{text[-END_CHARS:]}"


def status_of(group: FailureGroup, now: int) -> FailureStatus:
    """What of a group is to be told to people.

    One that was acknowledged is open again with the next failure.

    >>> from msgspec.structs import replace
    >>> it = UUID(int=1)
    >>> group = FailureGroup(it, it, it, it, b"", "agent_run", None, "m", it, 10, 20, 2)
    >>> str(status_of(group, 30)), str(status_of(replace(group, acknowledged_at=20), 30))
    ('open', 'acknowledged')
    >>> (
    ...     str(status_of(replace(group, acknowledged_at=19), 30)),
    ...     str(status_of(replace(group, muted_until=31), 30)),
    ... )
    ('open', 'muted')
    """
    if group.muted_until is not None and group.muted_until > now:
        return FailureStatus.MUTED
    is_known = group.acknowledged_at is not None and group.acknowledged_at >= group.last_seen_at
    return FailureStatus.ACKNOWLEDGED if is_known else FailureStatus.OPEN
