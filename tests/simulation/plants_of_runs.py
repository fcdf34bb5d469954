"""What the judges of runs must notice: a planted row for each."""

from collections.abc import Callable, Mapping
from typing import Final
from uuid import UUID

from msgspec.structs import replace

from tests.simulation.product import judges_of_runs
from tests.simulation.product.record import Judge, Record


def _leased_early(record: Record) -> None:
    lease = next(iter(record.tables.leases.values()))
    record.put_off = {lease.event_id: (lease.granted_at + 1, lease.attempt - 1)}


def _another_ceiling(record: Record) -> None:
    tables = record.tables
    lease = next(lease for lease in tables.leases.values() if lease.event_id in tables.events)
    later = lease.ceiling_at + tables.events[lease.event_id].parked_ms + 1
    again = replace(lease, id=UUID(int=1), attempt=lease.attempt + 1, ceiling_at=later)
    tables.leases[again.id] = again


def _a_refusal_too_many(record: Record) -> None:
    tables = record.tables
    event_id, score = next(iter(tables.scores.items()))
    tables.scores = {**tables.scores, event_id: replace(score, denied_gates=len(tables.gates) + 1)}


PLANTED: Final[Mapping[Judge, Callable[[Record], None]]] = {
    judges_of_runs.later_is_later: _leased_early,
    judges_of_runs.one_ceiling: _another_ceiling,
    judges_of_runs.scored_as_decided: _a_refusal_too_many,
}
