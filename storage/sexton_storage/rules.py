"""Small facts about the rows that every implementation must agree on."""

from msgspec.structs import replace

from sexton_storage.documents import copied, storable
from sexton_storage.records.configs import ConfigStatus
from sexton_storage.records.events import Event, EventStatus
from sexton_storage.records.gates import Gate
from sexton_storage.records.leases import LeaseStatus

LIVE_LEASE = frozenset({LeaseStatus.ACTIVE, LeaseStatus.CANCELLING})
"""A lease that holds its agent."""
FINISHED_EVENT = frozenset(
    {EventStatus.PROCESSED, EventStatus.AGENT_ERROR, EventStatus.CANCELLED, EventStatus.DEAD_LETTERED}
)
"""What a lease can end its event as; such an event has a ``completed_at``."""
BALANCE_EXHAUSTED = "balance_exhausted"
"""``failure_label`` of an event that is gate_blocked until its tenant has credit; it is still open."""
BALANCE_EXHAUSTED_CODE = "UZ-BILLING-005"
CANCELLED_LABEL = "cancelled"
KILLED_BY = "system:kill"
CANCELLED_BY = "system:cancel"
ACTIVE_CONFIG = ConfigStatus.ACTIVE
SUPERSEDED_CONFIG = ConfigStatus.SUPERSEDED


def waits_for_credit(event: Event) -> bool:
    """Whether it was set aside because its tenant's balance is used up."""
    return event.status is EventStatus.GATE_BLOCKED and event.failure_label == BALANCE_EXHAUSTED


def has_ended(event: Event) -> bool:
    """Whether nothing more will come of it by itself; what waits for credit goes on when there is some."""
    is_open = event.status in {EventStatus.RECEIVED, EventStatus.WAITING_APPROVAL, EventStatus.RUNNING}
    return not is_open and not waits_for_credit(event)


def storable_gate(gate: Gate) -> Gate:
    """Give the gate as its row will hold it."""
    return replace(
        gate,
        proposed_action=storable(gate.proposed_action),
        blast_radius=storable(gate.blast_radius),
        detail=storable(gate.detail),
        evidence=copied(gate.evidence),
    )
