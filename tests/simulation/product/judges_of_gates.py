"""What must hold of the rows of gates: one that is resolved stays, and a pending one is its last asker's."""

from collections.abc import Iterator, Mapping
from typing import Final

from sexton_storage.records.events import EventStatus
from sexton_storage.records.gates import Gate, GateStatus
from tests.simulation.product.record import Record

WHY_BLOCKED: Final[Mapping[GateStatus, str]] = {
    GateStatus.DENIED: "approval_denied",
    GateStatus.TIMED_OUT: "approval_expired",
    GateStatus.AUTO_KILLED: "policy_deny",
}
"""What an event says that ended before its first lease, by how its gate was resolved."""


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


def stopped_as_answered(record: Record) -> Iterator[str]:
    """An event that a rule stops before its first lease goes on if approved; else it ends and says why."""
    tables, answered = record.tables, record.answered
    for gate in tables.gates.values():
        if gate.lease_id is not None or gate.status is GateStatus.PENDING or gate.id in answered:
            continue
        answered.add(gate.id)
        event = tables.events.get(gate.event_id)
        if event is None or event.status is EventStatus.CANCELLED:
            continue
        why, label = WHY_BLOCKED.get(gate.status), event.failure_label
        is_blocked = event.status is EventStatus.GATE_BLOCKED
        if why is not None:
            is_right = is_blocked and label == why
        else:
            # One that goes on may end before its first lease all the same: for lack of credit.
            is_right = not is_blocked or label not in WHY_BLOCKED.values()
        if not is_right:
            said = f"is {event.status} with {label}"
            yield f"event {event.id} {said}, and gate {gate.id} before its first lease is {gate.status}"
