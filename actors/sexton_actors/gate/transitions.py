"""How a gate is closed: once, by one hand, for good."""

from sexton_actors.protocol.gate import Resolve
from sexton_actors.refusal import Refusal
from sexton_storage.records.events import EventStatus
from sexton_storage.records.frame_kinds import FrameKind
from sexton_storage.records.frames import NewFrame
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.writes import ResolveGate

BY_TIMEOUT = "system:timeout"
BY_RUN_END = "system:run_ended"


def resolve(gate: Gate, message: Resolve, now: int) -> ResolveGate | Refusal:
    """Approve or deny a pending gate in time; the first answer stands, and so does a time-out that is due."""
    if gate.status is not GateStatus.PENDING:
        return already_resolved(gate)
    if now >= gate.timeout_at:
        return expire(gate, now) or already_resolved(gate)
    status = GateStatus.APPROVED if message.approve else GateStatus.DENIED
    return _close(gate, status, message.by, message.reason, now)


def expire(gate: Gate, now: int) -> ResolveGate | None:
    """Deny what nobody answered in time; None while there is time left, or nothing to deny."""
    if gate.status is not GateStatus.PENDING or now < gate.timeout_at:
        return None
    return _close(gate, GateStatus.TIMED_OUT, BY_TIMEOUT, "", now)


def close(gate: Gate, now: int) -> ResolveGate | None:
    """Deny a question whose asker is gone; None when it was answered before."""
    if gate.status is not GateStatus.PENDING:
        return None
    return _close(gate, GateStatus.DENIED, BY_RUN_END, "The run ended without waiting for the answer.", now)


def already_resolved(gate: Gate) -> Refusal:
    """The answer to a second resolver, with the first one's outcome."""
    facts = {"outcome": str(gate.status), "resolved_at": gate.updated_at, "resolved_by": gate.resolved_by}
    return Refusal("UZ-APPROVAL-002", f"Gate {gate.id} is {gate.status} already.", facts)


def _close(gate: Gate, status: GateStatus, by: str, detail: str, now: int) -> ResolveGate:
    event_status, label = _event_after(gate, status)
    data = {
        "gate_id": str(gate.id),
        "action_id": gate.action_id,
        "status": str(status),
        "resolved_by": by,
    }
    return ResolveGate(
        gate_id=gate.id,
        status=status,
        now=now,
        resolved_by=by,
        detail=detail,
        event_status=event_status,
        failure_label=label,
        frames=_frames(gate, data, event_status, label, now),
    )


def _frames(
    gate: Gate, resolved: dict[str, str], event_status: EventStatus, label: str | None, now: int
) -> tuple[NewFrame, ...]:
    closed = NewFrame(gate.zombie_id, gate.event_id, FrameKind.GATE_RESOLVED, now, resolved)
    if event_status is EventStatus.RECEIVED:
        return (closed,)
    complete = {"status": str(event_status), "failure_label": label}
    return closed, NewFrame(gate.zombie_id, gate.event_id, FrameKind.EVENT_COMPLETE, now, complete)


def _event_after(gate: Gate, status: GateStatus) -> tuple[EventStatus, str | None]:
    # A run that was parked goes on whatever the answer, for it is the run that must hear it. An event that
    # was stopped before its first lease has nobody to tell: denied, it ends.
    if gate.lease_id is not None or status is GateStatus.APPROVED:
        return EventStatus.RECEIVED, None
    label = "approval_expired" if status is GateStatus.TIMED_OUT else "approval_denied"
    return EventStatus.GATE_BLOCKED, label
