"""Small facts about the rows that every implementation must agree on."""

from msgspec.structs import replace

from sexton_storage.documents import copied, storable
from sexton_storage.records import ConfigStatus, Event, EventStatus, Gate, LeaseStatus

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

GONE = "gone"
"""The agent does not exist any more, or is killed."""
NOT_ACTIVE = "not_active"
LEASED = "leased"
PAUSED = "workspace_paused"
OVER_BUDGET = "over_budget"
"""What the agent may spend in the day or month is spent: its events wait for the next."""
EMPTY = "empty"
RUNNER_FULL = "runner_full"
"""The runner holds as many leases as it has slots."""
RUNNER_BUSY = "runner_busy"
"""Another node claims for this runner at this moment."""
OUT_OF_SCOPE = "out_of_scope"
"""The runner is of another tenant or workspace than the agent."""
NO_SLOT = frozenset({RUNNER_FULL, RUNNER_BUSY})
NOT_FOR_RUNNER = NO_SLOT | {OUT_OF_SCOPE}
"""Nothing is wrong with the agent, and nothing is to be had by this runner: another may have it."""
FENCED = "fenced"
"""The lease is over, expired, or was succeeded by another."""
FULL = "full"
"""There is as much as there may be."""
STALE = "stale"
"""The row is at another version or status than the write had seen."""

ACTIVE_CONFIG = ConfigStatus.ACTIVE
SUPERSEDED_CONFIG = ConfigStatus.SUPERSEDED
CONFIGS_KEPT = 1000
"""Versions of an agent that are kept beside its active one; the oldest go first."""


def waits_for_credit(event: Event) -> bool:
    """Whether it was set aside because its tenant's balance is used up."""
    return event.status is EventStatus.GATE_BLOCKED and event.failure_label == BALANCE_EXHAUSTED


def storable_gate(gate: Gate) -> Gate:
    """Give the gate as its row will hold it."""
    return replace(
        gate,
        proposed_action=storable(gate.proposed_action),
        blast_radius=storable(gate.blast_radius),
        detail=storable(gate.detail),
        evidence=copied(gate.evidence),
    )
