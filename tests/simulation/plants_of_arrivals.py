"""What the judges of an event's way up to its first lease must notice: planted rows for each."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.records.events import Event, EventStatus
from sexton_storage.records.gates import GateStatus
from tests.simulation.product import judges_of_deliveries, judges_of_gates
from tests.simulation.product.customers import parts_of
from tests.simulation.product.deliveries import delivery_in
from tests.simulation.product.record import Judge, Record

COPY: Final = UUID(int=7)


def _delivered(record: Record) -> Event:
    events = record.tables.events.values()
    return next(one for one in events if _says_which(one) and not one.resumes_event_id)


def _says_which(event: Event) -> bool:
    # What an erasure has taken is known to judges that had seen it before; a copy of it says nothing.
    return delivery_in(parts_of(event.request_json).rest) is not None


def _a_delivery_twice(record: Record) -> None:
    record.tables.events[COPY] = replace(_delivered(record), id=COPY, source_event_id=None)


def _stop(record: Record, status: GateStatus, event_status: EventStatus, label: str | None) -> None:
    """As if a rule had stopped an event before its first lease."""
    event = replace(_delivered(record), status=event_status, failure_label=label)
    record.tables.events[event.id] = event
    gate = next(iter(record.tables.gates.values()))
    record.tables.gates[COPY] = replace(gate, id=COPY, event_id=event.id, lease_id=None, status=status)


def _denied_and_processed(record: Record) -> None:
    _stop(record, GateStatus.DENIED, EventStatus.PROCESSED, None)


def _blocked_without_a_word(record: Record) -> None:
    _stop(record, GateStatus.TIMED_OUT, EventStatus.GATE_BLOCKED, None)


def _approved_and_blocked(record: Record) -> None:
    _stop(record, GateStatus.APPROVED, EventStatus.GATE_BLOCKED, "approval_denied")


PLANTED: Final[Mapping[Judge, Callable[[Record], None]]] = {
    judges_of_deliveries.delivered_once: _a_delivery_twice,
    judges_of_gates.stopped_as_answered: _denied_and_processed,
}
MORE: Final[Sequence[tuple[Judge, Callable[[Record], None]]]] = (
    (judges_of_gates.stopped_as_answered, _blocked_without_a_word),
    (judges_of_gates.stopped_as_answered, _approved_and_blocked),
)
