"""The stream frames that storage itself writes."""

from typing import NamedTuple, Protocol
from uuid import UUID

from sexton_storage.records.frame_kinds import FrameKind
from sexton_storage.records.frames import NewFrame
from sexton_storage.records.gates import GateStatus
from sexton_storage.records.leases import Lease
from sexton_storage.rules import CANCELLED_LABEL


def leased_frame(lease: Lease) -> NewFrame:
    """Tell the agent's stream who runs the event now."""
    data = {
        "runner_id": str(lease.runner_id),
        "lease_id": str(lease.id),
        "attempt": lease.attempt,
        "fencing_token": lease.fencing_token,
    }
    return NewFrame(lease.zombie_id, lease.event_id, FrameKind.EVENT_LEASED, lease.granted_at, data)


class ClosedGate(Protocol):
    """What a frame about a gate tells of it: a ``Gate``, or as much of one."""

    @property
    def id(self) -> UUID: ...
    @property
    def zombie_id(self) -> UUID: ...
    @property
    def event_id(self) -> UUID: ...
    @property
    def action_id(self) -> str: ...


class GateKey(NamedTuple):
    """Enough of a gate for its frame."""

    id: UUID
    zombie_id: UUID
    event_id: UUID
    action_id: str


def cancelled_frame(zombie_id: UUID, event_id: UUID, now: int) -> NewFrame:
    """Tell the agent's stream that an event ended with its agent."""
    data = {"status": "cancelled", "failure_label": CANCELLED_LABEL}
    return NewFrame(zombie_id, event_id, FrameKind.EVENT_COMPLETE, now, data)


def closed_frame(gate: ClosedGate, status: GateStatus, by: str, now: int) -> NewFrame:
    """Tell the agent's stream that nobody need answer at a gate any more."""
    data = {"gate_id": str(gate.id), "action_id": gate.action_id, "status": str(status), "resolved_by": by}
    return NewFrame(gate.zombie_id, gate.event_id, FrameKind.GATE_RESOLVED, now, data)
