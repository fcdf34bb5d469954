"""What the judges of reports must notice: planted rows for each."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.records.events import Event, EventStatus
from sexton_storage.records.leases import LeaseStatus
from tests.simulation.product import judges_of_reports
from tests.simulation.product.judges_of_erasures import is_erased
from tests.simulation.product.record import Judge, Record


def _reported(record: Record, status: EventStatus) -> Event:
    tables = record.tables
    events = (tables.events[tables.leases[lease].event_id] for lease in record.runs.reported)
    return next(event for event in events if event.status is status and not is_erased(event))


def _evidence_lost(record: Record) -> None:
    event = _reported(record, EventStatus.PROCESSED)
    record.tables.events[event.id] = replace(event, evidence=None)


def _lost_later(record: Record) -> None:
    assert not list(judges_of_reports.kept_as_reported(record))
    _evidence_lost(record)


def _another_label(record: Record) -> None:
    event = _reported(record, EventStatus.AGENT_ERROR)
    record.tables.events[event.id] = replace(event, failure_label="cancelled")


def _fewer_tokens(record: Record) -> None:
    event = _reported(record, EventStatus.PROCESSED)
    record.tables.events[event.id] = replace(event, output_tokens=event.output_tokens - 1)


def _another_streak(record: Record) -> None:
    agent, head = next(iter(record.tables.heads.items()))
    record.tables.heads[agent] = replace(head, streak=head.streak + 1)


def _a_second_lost(record: Record) -> None:
    event = _reported(record, EventStatus.PROCESSED)
    record.tables.events[event.id] = replace(event, wall_ms=event.wall_ms - 1_000)


def _drained_for_nothing(record: Record) -> None:
    leases = record.tables.leases
    lease = next(lease for lease in leases.values() if lease.status is LeaseStatus.REPORTED)
    ended_at = lease.granted_at + 1_000
    drained = replace(lease, id=UUID(int=1), status=LeaseStatus.RELEASED, ended_at=ended_at, slice_seq=1)
    leases[drained.id] = drained


PLANTED: Final[Mapping[Judge, Callable[[Record], None]]] = {
    judges_of_reports.kept_as_reported: _evidence_lost,
    judges_of_reports.run_times_add_up: _a_second_lost,
    judges_of_reports.streaks_count_on: _another_streak,
}
MORE: Final[Sequence[tuple[Judge, Callable[[Record], None]]]] = (
    (judges_of_reports.kept_as_reported, _lost_later),
    (judges_of_reports.kept_as_reported, _another_label),
    (judges_of_reports.kept_as_reported, _fewer_tokens),
    (judges_of_reports.run_times_add_up, _drained_for_nothing),
)
