"""What becomes of an event that is to be cancelled, of its gates and of its lease."""

from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from sexton_storage.decisions.rows import Decided, EventRow
from sexton_storage.records.events import EventStatus
from sexton_storage.records.frames import NewFrame
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.records.leases import Lease, LeaseStatus
from sexton_storage.refusals import GONE, Lost
from sexton_storage.rules import CANCELLED_BY, CANCELLED_LABEL
from sexton_storage.streams import closed_frame
from sexton_storage.writes import CancelEvent, Cancelled, CancelOutcome


class CancelRows(msgspec.Struct, frozen=True, gc=False):
    """What a cancellation depends on, as it stands when it is decided."""

    event: EventRow | None
    """None too when it is another agent's."""
    gates: Sequence[Gate]
    """The event's gates."""
    lease: Lease | None
    """The agent's live one."""


def cancel(rows: CancelRows, write: CancelEvent) -> Decided[Cancelled | Lost]:
    """End an event that no lease holds; mark the lease of one that runs; leave one that is over."""
    if rows.event is None:
        return Decided(Lost(GONE))
    event = rows.event.event
    if event.completed_at is not None:
        return Decided(Cancelled(CancelOutcome.CLOSED, None, event.status))
    if event.status is EventStatus.RUNNING:
        lease = rows.lease
        answer = Cancelled(CancelOutcome.CANCELLING, None if lease is None else lease.id, event.status)
        return Decided(answer, () if lease is None else (marked(lease),))
    gates, frames = close_gates(rows.gates, GateStatus.DENIED, CANCELLED_BY, write.now)
    answer = Cancelled(CancelOutcome.ENDED, None, EventStatus.CANCELLED, tuple(gate.id for gate in gates))
    return Decided(answer, (ended(rows.event, write.now), *gates), (*frames, *write.frames))


def marked(lease: Lease) -> Lease:
    """Mark a live lease; its version grows, so that its actor on any node loses its next race and sees it.

    One that is marked already stays as it is.
    """
    if lease.status is not LeaseStatus.ACTIVE:
        return lease
    return replace(lease, status=LeaseStatus.CANCELLING, version=lease.version + 1)


def ended(row: EventRow, now: int) -> EventRow:
    """End an event that no lease holds."""
    event = replace(
        row.event,
        status=EventStatus.CANCELLED,
        failure_label=CANCELLED_LABEL,
        completed_at=now,
        updated_at=now,
    )
    return replace(row, event=event, waits_at=None)


def close_gates(
    gates: Iterable[Gate], status: GateStatus, by: str, now: int
) -> tuple[tuple[Gate, ...], tuple[NewFrame, ...]]:
    """Close those that are pending, each with its frame, oldest first."""
    pending = sorted(
        (gate for gate in gates if gate.status is GateStatus.PENDING), key=lambda g: (g.requested_at, g.id)
    )
    closed = tuple(replace(gate, status=status, updated_at=now, resolved_by=by) for gate in pending)
    return closed, tuple(closed_frame(gate, status, by, now) for gate in pending)
