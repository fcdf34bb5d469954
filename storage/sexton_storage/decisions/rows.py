"""The rows that decisions read and return, and a decision itself."""

from typing import Generic, TypeVar
from uuid import UUID

import msgspec

from sexton_storage.records.charges import Charge
from sexton_storage.records.crons import CronEntry
from sexton_storage.records.events import Event
from sexton_storage.records.follow_ups import FollowUp
from sexton_storage.records.frames import NewFrame
from sexton_storage.records.gates import Gate
from sexton_storage.records.improvement import Proposal, Score
from sexton_storage.records.leases import Lease
from sexton_storage.records.metering import MeteringPeriod
from sexton_storage.records.tenants import Tenant
from sexton_storage.records.zombies import Zombie

A_co = TypeVar("A_co", covariant=True)


class Head(msgspec.Struct, frozen=True, gc=False):
    """What changes about an agent with every event, beside its record."""

    zombie_id: UUID
    fence: int = 0
    """The newest fencing token."""
    live_lease_id: UUID | None = None
    last_runner_id: UUID | None = None
    frame_seq: int = 0
    streak: int = 0
    """Runs that were processed in a row."""


class EventRow(msgspec.Struct, frozen=True, gc=False):
    """An event with the columns of its row that are not part of its record."""

    event: Event
    waits_at: UUID | None = None
    """The gate that it waits at."""
    lease_count: int = 0
    """Leases that it ever had; numbers the next one."""


class Spent(msgspec.Struct, frozen=True, gc=False):
    """What an agent has spent in the UTC day and in the UTC month of a moment, in nanos."""

    day: int = 0
    month: int = 0


class DaySpend(msgspec.Struct, frozen=True, gc=False):
    zombie_id: UUID
    day: int
    """Days since 1970, UTC."""
    nanos: int


class DayCount(msgspec.Struct, frozen=True, gc=False):
    """How many events a tenant with a limited plan has had in a UTC day."""

    tenant_id: UUID
    day: int
    events: int


class DedupKey(msgspec.Struct, frozen=True, gc=False):
    zombie_id: UUID
    key: bytes
    event_id: UUID
    seen_at: int
    by_body: bool
    """Not the key of the event itself, but of the body of one that has an id."""


Row = (
    EventRow
    | Lease
    | Gate
    | Head
    | Tenant
    | Zombie
    | MeteringPeriod
    | DaySpend
    | DayCount
    | DedupKey
    | CronEntry
    | FollowUp
    | Charge
    | Score
    | Proposal
)


class Decided(msgspec.Struct, Generic[A_co], frozen=True, gc=False):
    """What the writer is answered, and what changes with it: all of it in one commit."""

    answer: A_co
    rows: tuple[Row, ...] = ()
    """As they are from now on; a row of the same key is replaced."""
    frames: tuple[NewFrame, ...] = ()
    """Appended in this order."""
