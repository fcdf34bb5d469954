"""Whether a gate opens, whose it is, and what its answer frees."""

import msgspec
from msgspec.structs import replace

from sexton_storage.decisions.rows import Decided, EventRow
from sexton_storage.documents import storable
from sexton_storage.records.events import EventStatus
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.refusals import FENCED, STALE, Lost
from sexton_storage.rules import storable_gate
from sexton_storage.writes import GateOpened, GateResolved, OpenGate, ResolveGate


class ResolveRows(msgspec.Struct, frozen=True, gc=False):
    gate: Gate | None
    event: EventRow | None
    """The gate's."""


def open_gate(write: OpenGate, known: Gate | None, *, held: bool) -> Decided[GateOpened | Lost]:
    """Open a gate, or give ``known``: the one of the same event and action.

    ``held``: the lease that asks is the agent's live one, under its token, and unexpired.
    """
    if not held:
        return Decided(Lost(FENCED))
    if known is None:
        gate = storable_gate(write.gate)
        return Decided(GateOpened(gate, existed=False), (gate,), write.frames)
    if known.status is GateStatus.PENDING and known.lease_id != write.gate.lease_id:
        # A pending gate of an earlier lease is waited for by this one now.
        known = replace(known, lease_id=write.gate.lease_id)
        return Decided(GateOpened(known, existed=True), (known,))
    return Decided(GateOpened(known, existed=True))


def resolve_gate(rows: ResolveRows, write: ResolveGate) -> Decided[GateResolved | Lost]:
    """Give a pending gate its outcome, and free its event if that waits here: the first answer stands."""
    if rows.gate is None or rows.gate.status is not GateStatus.PENDING:
        return Decided(Lost(STALE))
    gate = replace(
        rows.gate,
        status=write.status,
        updated_at=write.now,
        resolved_by=write.resolved_by,
        detail=storable(write.detail),
    )
    if rows.event is None or not _waits_here(rows.event, gate):
        return Decided(GateResolved(gate, event_freed=False), (gate,), write.frames)
    freed = write.event_status is EventStatus.RECEIVED
    return Decided(GateResolved(gate, event_freed=freed), (gate, _answered(rows.event, write)), write.frames)


def _waits_here(row: EventRow, gate: Gate) -> bool:
    return row.event.status is EventStatus.WAITING_APPROVAL and row.waits_at == gate.id


def _answered(row: EventRow, write: ResolveGate) -> EventRow:
    received = write.event_status is EventStatus.RECEIVED
    event = replace(
        row.event,
        status=write.event_status,
        failure_label=row.event.failure_label if write.failure_label is None else write.failure_label,
        updated_at=write.now,
        completed_at=None if received else write.now,
    )
    return replace(row, event=event, waits_at=None)
