"""Where an event goes whose run waits for an approval."""

from uuid import UUID

from sexton_storage.records.events import EventStatus
from sexton_storage.records.gates import Gate, GateStatus


def park(event_id: UUID, gate: Gate | None) -> tuple[EventStatus, UUID | None]:
    """Give the event's status and the gate that it waits at.

    A gate that was resolved while its run was parking holds nobody: the event goes on at once, and its next
    run learns the outcome from the gate.

    >>> me, event, other = UUID(int=1), UUID(int=2), UUID(int=3)
    >>> gate = Gate(me, me, me, me, event, None, "deploy", GateStatus.PENDING, 0, 60_000)
    >>> park(event, gate) == (EventStatus.WAITING_APPROVAL, gate.id)
    True
    >>> park(other, gate)[0].value, park(event, None)[0].value
    ('received', 'received')
    """
    if gate is None or gate.event_id != event_id or gate.status is not GateStatus.PENDING:
        return EventStatus.RECEIVED, None
    return EventStatus.WAITING_APPROVAL, gate.id
