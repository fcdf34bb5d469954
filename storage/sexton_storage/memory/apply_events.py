"""Appends and cancels events."""

from uuid import UUID

from msgspec.structs import replace

from sexton_storage.documents import storable
from sexton_storage.memory.tables import Tables
from sexton_storage.records import (
    Event,
    EventStatus,
    Gate,
    GateStatus,
    LeaseStatus,
    ZombieStatus,
)
from sexton_storage.rules import CANCELLED_LABEL, GONE, storable_gate
from sexton_storage.stores import RowRefused
from sexton_storage.writes import (
    DEDUP_WINDOW_MS,
    Appended,
    AppendEvent,
    CancelEvent,
    Cancelled,
    CancelOutcome,
    Duplicate,
    Lost,
    OverBudget,
)


def append_event(tables: Tables, write: AppendEvent) -> Appended | Duplicate | OverBudget | Lost:
    event = write.event
    zombie = tables.zombies.get(event.zombie_id)
    if zombie is None or zombie.status is ZombieStatus.KILLED:
        return Lost(GONE)
    if first := _seen(tables, write):
        return Duplicate(first)
    if period := _spent_up(tables, write):
        return OverBudget(period)
    if event.id in tables.events:
        raise RowRefused(f"event {event.id} is there already")
    _keep(tables, write)
    moved = max(event.created_at, zombie.last_event_at or event.created_at)
    tables.zombies[zombie.id] = replace(zombie, last_event_at=moved)
    tables.append_frames(write.frames)
    return Appended(event.id)


def _seen(tables: Tables, write: AppendEvent) -> UUID | None:
    if write.dedup_key is None:
        return None
    first, at = tables.dedup.get((write.event.zombie_id, write.dedup_key), (None, 0))
    return first if first and at > write.event.created_at - DEDUP_WINDOW_MS else None


def _spent_up(tables: Tables, write: AppendEvent) -> str | None:
    day, month = tables.spent(write.event.zombie_id, write.event.created_at)
    if write.budget_daily_nanos is not None and day >= write.budget_daily_nanos:
        return "day"
    if write.budget_monthly_nanos is not None and month >= write.budget_monthly_nanos:
        return "month"
    return None


def _keep(tables: Tables, write: AppendEvent) -> None:
    event, gate = write.event, write.gate
    event = replace(event, request_json=storable(event.request_json))
    if gate is not None:
        put_gate(tables, gate)
        if gate.status is GateStatus.PENDING:
            event = replace(event, status=EventStatus.WAITING_APPROVAL)
            tables.waits_at[event.id] = gate.id
    tables.put_event(event)
    if write.dedup_key is not None:
        tables.dedup[event.zombie_id, write.dedup_key] = (event.id, event.created_at)


def put_gate(tables: Tables, gate: Gate) -> None:
    """Save a new gate, its free text made fit for a row."""
    tables.gates[gate.id] = storable_gate(gate)


def cancel_event(tables: Tables, write: CancelEvent) -> Cancelled | Lost:
    event = tables.events.get(write.event_id)
    if event is None or event.zombie_id != write.zombie_id:
        return Lost(GONE)
    if event.completed_at is not None:
        return Cancelled(CancelOutcome.CLOSED, None)
    if event.status is EventStatus.RUNNING:
        return Cancelled(CancelOutcome.CANCELLING, mark_cancelling(tables, write.zombie_id))
    end_as_cancelled(tables, event, write.now)
    tables.append_frames(write.frames)
    return Cancelled(CancelOutcome.ENDED, None)


def mark_cancelling(tables: Tables, zombie_id: UUID) -> UUID | None:
    """Mark the agent's live lease; its version grows, so that its actor on any node sees the mark."""
    lease_id = tables.heads[zombie_id].live_lease_id
    if lease_id is None:
        return None
    lease = tables.leases[lease_id]
    if lease.status is LeaseStatus.ACTIVE:
        tables.leases[lease_id] = replace(lease, status=LeaseStatus.CANCELLING, version=lease.version + 1)
    return lease_id


def end_as_cancelled(tables: Tables, event: Event, now: int) -> None:
    """End an event that no lease holds."""
    tables.waits_at.pop(event.id, None)
    tables.put_event(
        replace(
            event,
            status=EventStatus.CANCELLED,
            failure_label=CANCELLED_LABEL,
            completed_at=now,
            updated_at=now,
        )
    )
