"""What must hold of the runs of an event, one after the other, and of what is kept of them at its end."""

from collections.abc import Iterator
from typing import Final

from sexton_storage.records.gates import GateStatus
from sexton_storage.records.leases import Lease
from tests.simulation.product.judges_of_books import CLOCKS_APART_MS
from tests.simulation.product.record import Record

REFUSED: Final = frozenset({GateStatus.DENIED, GateStatus.TIMED_OUT, GateStatus.AUTO_KILLED})


def later_is_later(record: Record) -> Iterator[str]:
    """An event that a run has given back for later is given to nobody before its time."""
    tables = record.tables
    for lease in tables.leases.values() if record.put_off else ():
        until, attempt = record.put_off.get(lease.event_id, (0, 0))
        if lease.attempt > attempt and lease.granted_at < until:
            yield f"event {lease.event_id} was to wait until {until}, and was leased at {lease.granted_at}"
    for event in tables.events.values():
        if event.retry_at is not None:
            record.put_off[event.id] = event.retry_at, tables.lease_counts[event.id]


def one_ceiling(record: Record) -> Iterator[str]:
    """All runs of an event end by the ceiling of its first, moved by the time that it was parked at gates."""
    first: dict[object, Lease] = {}
    for lease in sorted(record.tables.leases.values(), key=lambda row: row.attempt):
        event = record.tables.events.get(lease.event_id)
        begun = first.setdefault(lease.event_id, lease)
        if (
            event is not None
            and not begun.ceiling_at <= lease.ceiling_at <= begun.ceiling_at + event.parked_ms
        ):
            yield f"lease {lease.id} may run until {lease.ceiling_at}, the first until {begun.ceiling_at}"


def scored_as_decided(record: Record) -> Iterator[str]:
    """The score of an event counts the gates that were refused before it ended."""
    for score in record.tables.scores.values():
        gates = [gate for gate in record.tables.gates.values() if gate.event_id == score.event_id]
        refused = [gate for gate in gates if gate.status in REFUSED]
        # Two nodes may write in another order than by their times.
        surely = score.created_at - CLOCKS_APART_MS
        before = [gate for gate in refused if (gate.updated_at or 0) < surely]
        if not len(before) <= score.denied_gates <= len(refused):
            yield f"event {score.event_id} is scored with {score.denied_gates} refusals of {len(refused)}"
