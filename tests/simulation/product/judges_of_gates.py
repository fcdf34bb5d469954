"""What must hold of the rows of gates: one that is resolved stays, and a pending one is its last asker's."""

from collections.abc import Iterator

from sexton_storage.records.gates import Gate, GateStatus
from tests.simulation.product.record import Record


def resolved_gates_stay(record: Record) -> Iterator[str]:
    """A gate that is resolved does not change any more: not its outcome, nor whose it is."""
    first = record.gates
    for gate in record.tables.gates.values():
        if gate.status is GateStatus.PENDING or (known := first.setdefault(gate.id, gate)) is gate:
            continue
        if _facts(known) != _facts(gate):
            yield f"gate {gate.id} was {_facts(known)} and is {_facts(gate)}"
        # An erasure changes texts; it is compared with what is there now from here on.
        first[gate.id] = gate


def _facts(gate: Gate) -> tuple[object, ...]:
    return gate.status, gate.lease_id, gate.requested_at, gate.updated_at, gate.timeout_at, gate.resolved_by


def gates_follow_their_asker(record: Record) -> Iterator[str]:
    """A pending gate belongs to the last lease whose run was given it, or to a later one."""
    tables, asked_gates = record.tables, record.runs.asked_gates
    for gate_id, asked in asked_gates.items():
        gate, asker = tables.gates.get(gate_id), tables.leases.get(asked.lease_id)
        if gate is None or asker is None or gate.lease_id is None:
            continue
        holder = tables.leases.get(gate.lease_id)
        if holder is not None and holder.fencing_token < asker.fencing_token:
            yield f"gate {gate_id} is of lease {holder.id}, and lease {asker.id} has asked for it since"
    asked_gates.clear()
