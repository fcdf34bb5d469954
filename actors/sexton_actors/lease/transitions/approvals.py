"""How a run's question to people is kept: the gate, and the frame that shows what is waited for."""

from typing import Any

from sexton_actors.lease.transitions.state import LeaseState
from sexton_storage.records.frame_kinds import FrameKind
from sexton_storage.records.frames import NewFrame
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.writes import OpenGate


def open_gate(state: LeaseState, gate: Gate, now: int) -> OpenGate:
    """Ask people; the frame says what is waited for."""
    data: dict[str, Any] = {
        "gate_id": str(gate.id),
        "action_id": gate.action_id,
        "tool_name": gate.tool_name,
        "action_name": gate.action_name,
        "proposed_action": gate.proposed_action,
        "timeout_at": gate.timeout_at,
    }
    kind = FrameKind.GATE_PENDING
    if gate.status is not GateStatus.PENDING:
        kind = FrameKind.GATE_RESOLVED
        data |= {"status": str(gate.status), "resolved_by": gate.resolved_by}
    frame = NewFrame(gate.zombie_id, gate.event_id, kind, now, data)
    return OpenGate(gate, state.lease.fencing_token, (frame,))
