"""Gates: actions of a run that wait for a person's answer."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol
from uuid import UUID

import msgspec

from sexton_storage.documents import Json
from sexton_storage.paging import Page


class GateStatus(StrEnum):
    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"
    TIMED_OUT = "timed_out"
    AUTO_KILLED = "auto_killed"


class GateOrder(StrEnum):
    OLDEST = "oldest"
    """By when they were asked for."""
    NEWEST = "newest"
    DECIDED = "decided"
    """Those that are not pending, the last that was decided first."""


class Gate(msgspec.Struct, frozen=True, gc=False):
    id: UUID
    zombie_id: UUID
    workspace_id: UUID
    tenant_id: UUID
    event_id: UUID
    lease_id: UUID | None
    """The lease it was opened under; None when the event waits at it before any lease."""
    action_id: str
    status: GateStatus
    requested_at: int
    timeout_at: int
    zombie_name: str = ""
    tool_name: str = ""
    action_name: str = ""
    gate_kind: str = ""
    proposed_action: str = ""
    evidence: Json = msgspec.field(default_factory=dict)
    blast_radius: str = ""
    detail: str = ""
    updated_at: int | None = None
    resolved_by: str | None = None


def place_of(gate: Gate, order: GateOrder) -> Page:
    """Give the place of a gate in an order."""
    at = gate.updated_at if order is GateOrder.DECIDED else gate.requested_at
    return Page(at or 0, gate.id)


class GateStore(Protocol):
    async def load(self, gate_id: UUID) -> Gate | None: ...
    async def find_by_action(self, zombie_id: UUID, action_id: str) -> Gate | None:
        """The newest of that agent with that action id."""
        ...

    async def list(
        self,
        workspace_id: UUID,
        *,
        limit: int,
        status: GateStatus | None = None,
        zombie_id: UUID | None = None,
        gate_kind: str | None = None,
        order: GateOrder = GateOrder.OLDEST,
        after: Page | None = None,
    ) -> Sequence[Gate]:
        """One page, which begins behind ``after``, a place in the order."""
        ...

    async def pending(self, workspace_id: UUID, *, most: int) -> int:
        """How many wait for a person, counted up to ``most``."""
        ...

    async def of_lease(self, lease_id: UUID) -> Sequence[Gate]: ...
    async def overdue(self, *, limit: int) -> Sequence[UUID]:
        """Pending gates past ``timeout_at`` by the database's clock."""
        ...

    async def orphaned(self, *, limit: int) -> Sequence[UUID]:
        """Pending gates whose event is over, or gone: nobody waits for the answer."""
        ...

    async def asked(
        self, zombie_id: UUID, tool_name: str, action_name: str, *, since: int, limit: int
    ) -> Sequence[tuple[int, str]]:
        """When the agent asked for this action from inside a run, and by which action id; oldest first.

        The newest ``limit`` of them.
        """
        ...
