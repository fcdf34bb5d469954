"""What runs asked to be woken for later, each until its time or until it is taken back."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol
from uuid import UUID

import msgspec

from sexton_storage.paging import Page
from sexton_storage.records.leases import LeaseToken
from sexton_storage.refusals import Lost


class FollowUpStatus(StrEnum):
    PENDING = "pending"
    FIRED = "fired"
    CANCELLED = "cancelled"
    DROPPED = "dropped"
    """The time came when the agent took no work, or the agent was killed."""


class FollowUp(msgspec.Struct, frozen=True, gc=False):
    id: UUID
    zombie_id: UUID
    event_id: UUID
    """The event whose run asked."""
    call_id: str
    """A second request with the same id, of the same event, is the same follow-up."""
    message: str
    at: int
    created_at: int
    status: FollowUpStatus = FollowUpStatus.PENDING
    closed_at: int | None = None


class FollowUpStore(Protocol):
    async def load(self, follow_up_id: UUID) -> FollowUp | None: ...
    async def find(self, zombie_id: UUID, event_id: UUID, call_id: str) -> FollowUp | None: ...
    async def keep(self, follow_up: FollowUp, held: LeaseToken) -> FollowUp | Lost:
        """Add it under that lease, live and unexpired by the database's clock.

        The one that is there already comes back as it is. ``Lost``: ``gone`` when there is no such agent,
        ``fenced`` when the lease does not hold it, ``full`` when ``FOLLOW_UPS_LIMIT`` are pending.
        """
        ...

    async def due(self, *, before: int, limit: int) -> Sequence[FollowUp]:
        """Those that are pending and whose time is up to ``before``, the most overdue first."""
        ...

    async def next_at(self) -> int | None:
        """The time of the earliest that is pending."""
        ...

    async def list(self, zombie_id: UUID, *, limit: int, before: Page | None = None) -> Sequence[FollowUp]:
        """List one agent's follow-ups, whatever their status, newest first."""
        ...

    async def close(self, follow_up: FollowUp, status: FollowUpStatus, now: int) -> bool:
        """End one that is pending without an event; False when it is over, or gone."""
        ...
