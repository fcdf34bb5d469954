"""Opens and resolves gates, and appends activity under a lease."""

from uuid import UUID

from msgspec.structs import replace

from sexton_storage.documents import storable
from sexton_storage.memory.apply_events import put_gate
from sexton_storage.memory.tables import Tables
from sexton_storage.records.events import EventStatus
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.refusals import FENCED, GONE, STALE, Lost
from sexton_storage.rules import LIVE_LEASE
from sexton_storage.writes import (
    AppendFrames,
    FramesAppended,
    GateOpened,
    GateResolved,
    OpenGate,
    ResolveGate,
)


def open_gate(tables: Tables, write: OpenGate) -> GateOpened | Lost:
    gate = write.gate
    if gate.lease_id is None or not holds(tables, gate.zombie_id, gate.lease_id, write.fencing_token):
        return Lost(FENCED)
    for other in tables.gates.values():
        if other.event_id == gate.event_id and other.action_id == gate.action_id:
            return GateOpened(_adopted(tables, other, gate.lease_id), existed=True)
    put_gate(tables, gate)
    tables.append_frames(write.frames)
    return GateOpened(tables.gates[gate.id], existed=False)


def _adopted(tables: Tables, gate: Gate, lease_id: UUID) -> Gate:
    """A pending gate of an earlier lease is waited for by this one now."""
    if gate.status is GateStatus.PENDING and gate.lease_id != lease_id:
        gate = tables.gates[gate.id] = replace(gate, lease_id=lease_id)
    return gate


def holds(tables: Tables, zombie_id: UUID, lease_id: UUID, token: int) -> bool:
    """Whether this lease is the agent's live one, and unexpired."""
    head = tables.heads.get(zombie_id)
    if head is None or head.live_lease_id != lease_id or head.fence != token:
        return False
    lease = tables.leases[lease_id]
    return lease.status in LIVE_LEASE and lease.expires_at > tables.now()


def resolve_gate(tables: Tables, write: ResolveGate) -> GateResolved | Lost:
    gate = tables.gates.get(write.gate_id)
    if gate is None or gate.status is not GateStatus.PENDING:
        return Lost(STALE)
    resolved = replace(
        gate,
        status=write.status,
        updated_at=write.now,
        resolved_by=write.resolved_by,
        detail=storable(write.detail),
    )
    tables.gates[gate.id] = resolved
    freed = _free_event(tables, resolved, write)
    tables.append_frames(write.frames)
    return GateResolved(resolved, freed)


def _free_event(tables: Tables, gate: Gate, write: ResolveGate) -> bool:
    event = tables.events.get(gate.event_id)
    if (
        event is None
        or event.status is not EventStatus.WAITING_APPROVAL
        or tables.waits_at.get(event.id) != gate.id
    ):
        return False
    del tables.waits_at[event.id]
    received = write.event_status is EventStatus.RECEIVED
    tables.put_event(
        replace(
            event,
            status=write.event_status,
            failure_label=event.failure_label if write.failure_label is None else write.failure_label,
            updated_at=write.now,
            completed_at=None if received else write.now,
        )
    )
    return received


def append_frames(tables: Tables, write: AppendFrames) -> FramesAppended | Lost:
    if write.zombie_id not in tables.heads:
        return Lost(GONE)
    if write.lease_id is not None and not holds(tables, write.zombie_id, write.lease_id, write.fencing_token):
        return Lost(FENCED)
    tables.append_frames(write.frames)
    return FramesAppended(len(write.frames))
