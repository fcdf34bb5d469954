"""Opens and resolves gates, and appends activity under a lease."""

from uuid import UUID

from sexton_storage.decisions import fence, gates
from sexton_storage.memory.tables import Tables
from sexton_storage.refusals import FENCED, GONE, Lost
from sexton_storage.writes import (
    AppendFrames,
    FramesAppended,
    GateOpened,
    GateResolved,
    OpenGate,
    ResolveGate,
)


def open_gate(tables: Tables, write: OpenGate) -> GateOpened | Lost:
    asked = write.gate
    held = asked.lease_id is not None and holds(tables, asked.zombie_id, asked.lease_id, write.fencing_token)
    known = next(
        (
            gate
            for gate in tables.gates.values()
            if gate.event_id == asked.event_id and gate.action_id == asked.action_id
        ),
        None,
    )
    return tables.put(gates.open_gate(write, known, held=held))


def holds(tables: Tables, zombie_id: UUID, lease_id: UUID, token: int) -> bool:
    """Whether this lease is the agent's live one, and unexpired."""
    lease = tables.live_lease(zombie_id)
    return fence.holds(tables.heads.get(zombie_id), lease, lease_id, token, tables.now())


def resolve_gate(tables: Tables, write: ResolveGate) -> GateResolved | Lost:
    gate = tables.gates.get(write.gate_id)
    event = None if gate is None else tables.event_row(gate.event_id)
    return tables.put(gates.resolve_gate(gates.ResolveRows(gate, event), write))


def append_frames(tables: Tables, write: AppendFrames) -> FramesAppended | Lost:
    if write.zombie_id not in tables.heads:
        return Lost(GONE)
    if write.lease_id is not None and not holds(tables, write.zombie_id, write.lease_id, write.fencing_token):
        return Lost(FENCED)
    tables.append_frames(write.frames)
    return FramesAppended(len(write.frames))
