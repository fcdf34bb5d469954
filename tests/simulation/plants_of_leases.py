"""What the judges of leases and gates must notice: a planted row for each."""

from collections.abc import Callable, Mapping
from typing import Final
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.records.gates import GateStatus
from sexton_storage.records.leases import Lease
from tests.simulation.product import judges_of_gates, judges_of_leases
from tests.simulation.product.record import Judge, Record
from tests.simulation.product.runs import AskedGate, RefusedUnder

NOBODY: Final = UUID(int=1)


def _live_lease(record: Record) -> Lease:
    tables = record.tables
    lease = next(iter(tables.leases.values()))
    live = replace(lease, ended_at=None, expires_at=tables.now() + 20_000)
    tables.leases[lease.id] = live
    return live


def called_lost(record: Record) -> None:
    """A run that holds its lease was told that it does not, when it asked for an approval."""
    lease = _live_lease(record)
    record.runs.refused.append(RefusedUnder(lease.id, "gates", 409, "UZ-RUN-005", 0, 0))


def put_off_in_peace(record: Record) -> None:
    """A renewal of a live lease was put off although nothing was wrong."""
    lease, now = _live_lease(record), record.tables.now()
    record.settled_at = now - 1_000
    record.runs.refused.append(RefusedUnder(lease.id, "renew", 503, "UZ-API-003", now, now))


def _taken_back(record: Record) -> None:
    tables = record.tables
    tables.leases = dict(tables.leases)
    lease = next(reversed(tables.leases.values()))
    record.settled_at = lease.granted_at
    tables.leases[lease.id] = replace(lease, status="reclaimed", ended_at=tables.now())


def _another_holder(record: Record) -> None:
    gates = record.tables.gates
    gate = next(gate for gate in gates.values() if gate.status is not GateStatus.PENDING)
    gates[gate.id] = replace(gate, lease_id=NOBODY)


def _left_behind(record: Record) -> None:
    tables = record.tables
    gate = next(gate for gate in tables.gates.values() if gate.lease_id in tables.leases)
    assert gate.lease_id is not None
    holder = tables.leases[gate.lease_id]
    later = replace(holder, id=NOBODY, fencing_token=holder.fencing_token + 1)
    tables.leases[later.id] = later
    record.runs.asked_gates[gate.id] = AskedGate(gate.id, later.id)


PLANTED: Final[Mapping[Judge, Callable[[Record], None]]] = {
    judges_of_leases.holders_are_served: called_lost,
    judges_of_leases.kept_while_renewed: _taken_back,
    judges_of_gates.resolved_gates_stay: _another_holder,
    judges_of_gates.gates_follow_their_asker: _left_behind,
}
