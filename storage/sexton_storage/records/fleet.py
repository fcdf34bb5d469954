"""The fleet as operators look at it: what a runner went through, what is held now, how much waits."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final, Protocol
from uuid import UUID

import msgspec

from sexton_storage.paging import Page
from sexton_storage.records.insights import SlackBand
from sexton_storage.records.runners import AdminState

COUNT_CAP: Final = 100_000
"""What waits or is held is counted up to here: no census reads more entries of an index."""
DEMAND_CAP: Final = 10_000
"""The oldest events that wait, and the live leases, that are counted by label."""
LOOKED_AT: Final = 1_000
"""The oldest events among which one is looked for whose agent may run."""


class Liveness(StrEnum):
    REGISTERED = "registered"
    ONLINE = "online"
    BUSY = "busy"
    OFFLINE = "offline"


class HistoryKind(StrEnum):
    ENROLLED = "enrolled"
    ADMIN_STATE = "admin_state_changed"
    LEASE = "lease"


class HistoryItem(msgspec.Struct, frozen=True, gc=False):
    """One line of a runner's history. A lease stands at its grant, with how it ended."""

    id: UUID
    kind: HistoryKind
    at: int
    data: dict[str, Any]


class LiveLease(msgspec.Struct, frozen=True, gc=False):
    lease_id: UUID
    event_id: UUID
    zombie_id: UUID
    workspace_id: UUID
    runner_id: UUID
    attempt: int
    cancelling: bool
    granted_at: int
    expires_at: int
    ceiling_at: int
    metered_at: int
    """When it was renewed last; its grant, where it was not yet."""


class RunnerGroup(msgspec.Struct, frozen=True, gc=False):
    """Runners of one liveness and one standing."""

    liveness: Liveness
    admin_state: AdminState
    runners: int
    slots: int


class LabelDemand(msgspec.Struct, frozen=True, gc=False):
    """What the agents that need the same labels of a runner want of the fleet."""

    required_tags: tuple[str, ...] | None
    """In order. None: all sets with a label that no enrolled runner has."""
    events: int
    """Those that wait, among the ``DEMAND_CAP`` oldest of all."""
    slots: int
    """Agents that hold a lease, and agents that would if a runner had room."""
    oldest_at: int | None = None
    """When the oldest of the events came whose agent may run, in Unix ms."""


class Census(msgspec.Struct, frozen=True):
    """How much there is, at one moment. Counts stop at ``COUNT_CAP``."""

    at: int
    queued: int
    """Events that wait for a runner, those of stopped agents included."""
    oldest_event_at: int | None
    """The time of the oldest of them whose agent may run; among the ``LOOKED_AT`` oldest."""
    leases: int
    gates: int
    """Pending."""
    oldest_gate_at: int | None
    runners: tuple[RunnerGroup, ...]
    blocked: int = 0
    """Events that wait for their tenant's credit."""
    exhausted: int = 0
    """Tenants whose balance is used up."""
    overdue_cron_at: int | None = None
    """When the schedule that is latest should have fired; None when none is due."""
    demand: tuple[LabelDemand, ...] = ()
    """By labels. Other sets than those of None are as few as what runners were enrolled with allows."""
    last_backup_at: int | None = None
    """When the last backup was made; None: nobody has told of any."""


class Waiting(msgspec.Struct, frozen=True):
    """Events that wait for a runner, of the agents that need the same of one and may have the same ones."""

    required_tags: tuple[str, ...]
    allows_unsandboxed: bool
    events: int
    """Those behind a live lease and those of stopped agents included."""
    oldest_event_at: int | None
    """The time of the oldest of them whose agent may run."""
    tenant_id: UUID | None = None
    """Told of a tenant that has runners of its own."""
    workspace_id: UUID | None = None
    """Told of a workspace that has runners of its own."""


class FleetStore(Protocol):
    async def history(
        self, runner_id: UUID, *, limit: int, before: Page | None = None
    ) -> Sequence[HistoryItem]:
        """Newest first: changes of standing, leases by their grant, and last the enrolment."""
        ...

    async def live_leases(self, *, limit: int) -> Sequence[LiveLease]:
        """Those with the least time left first."""
        ...

    async def waiting(self) -> Sequence[Waiting]:
        """By need; of the ``COUNT_CAP`` oldest events."""
        ...

    async def slack(self) -> Sequence[SlackBand]:
        """What all leases have left, the least first; any ``SLACK_CAP`` of more than that."""
        ...

    async def census(self) -> Census: ...
