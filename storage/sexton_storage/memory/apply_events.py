"""Appends and cancels events."""

from collections.abc import Iterable, Sequence
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.documents import storable
from sexton_storage.errors import RowRefused
from sexton_storage.memory.apply_follow_ups import close_follow_up
from sexton_storage.memory.tables import Tables
from sexton_storage.periods import day_of
from sexton_storage.records.events import Event, EventStatus
from sexton_storage.records.follow_ups import FollowUpStatus
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.records.leases import LeaseStatus
from sexton_storage.records.zombies import ZombieStatus
from sexton_storage.refusals import GONE, STALE, Lost
from sexton_storage.rules import CANCELLED_BY, CANCELLED_LABEL, storable_gate
from sexton_storage.streams import closed_frame
from sexton_storage.writes import (
    DEDUP_WINDOW_MS,
    Appended,
    AppendEvent,
    CancelEvent,
    Cancelled,
    CancelOutcome,
    Duplicate,
    OverBudget,
)


def append_event(tables: Tables, write: AppendEvent) -> Appended | Duplicate | OverBudget | Lost:
    event = write.event
    zombie = tables.zombies.get(event.zombie_id)
    if zombie is None or zombie.status is ZombieStatus.KILLED:
        return Lost(GONE)
    if first := _seen(tables, write):
        if _is_due(tables, write):
            _fired(tables, write)
        return Duplicate(first)
    if not _is_due(tables, write):
        return Lost(STALE)
    if period := _spent_up(tables, write) or _counted_up(tables, write):
        _fired(tables, write, FollowUpStatus.DROPPED)
        return OverBudget(period)
    if event.id in tables.events:
        raise RowRefused(f"event {event.id} is there already")
    kept_at = max(event.created_at, zombie.last_event_at or event.created_at)
    _keep(tables, write, kept_at)
    tables.zombies[zombie.id] = replace(zombie, last_event_at=kept_at)
    tables.append_frames(write.frames)
    return Appended(event.id)


def _seen(tables: Tables, write: AppendEvent) -> UUID | None:
    event = write.event
    return seen(tables, event.zombie_id, write.dedup_key, write.body_key, event.created_at)


def seen(
    tables: Tables, zombie_id: UUID, dedup_key: bytes | None, body_key: bytes | None, now: int
) -> UUID | None:
    """The first event of this key, or of this body where that one had no id."""
    for key in (dedup_key, body_key):
        row = None if key is None else tables.dedup.get((zombie_id, key))
        if row is not None and row[1] > now - DEDUP_WINDOW_MS and (key == dedup_key or not row[2]):
            return row[0]
    return None


def _is_due(tables: Tables, write: AppendEvent) -> bool:
    if write.follow_up_id is not None:
        follow_up = tables.follow_ups.get(write.follow_up_id)
        return follow_up is not None and follow_up.status is FollowUpStatus.PENDING
    firing = write.firing
    if firing is None:
        return True
    entry = tables.crons.get((write.event.zombie_id, firing.schedule, firing.timezone))
    return entry is not None and entry.next_at == firing.due_at


def _fired(tables: Tables, write: AppendEvent, status: FollowUpStatus = FollowUpStatus.FIRED) -> None:
    if write.follow_up_id is not None:
        close_follow_up(tables, write.follow_up_id, status, write.event.created_at)
    firing = write.firing
    if firing is not None:
        key = (write.event.zombie_id, firing.schedule, firing.timezone)
        tables.crons[key] = replace(tables.crons[key], next_at=firing.next_at)


def _spent_up(tables: Tables, write: AppendEvent) -> str | None:
    day, month = tables.spent(write.event.zombie_id, write.event.created_at)
    if write.budget_daily_nanos is not None and day >= write.budget_daily_nanos:
        return "day"
    if write.budget_monthly_nanos is not None and month >= write.budget_monthly_nanos:
        return "month"
    return None


def _counted_up(tables: Tables, write: AppendEvent) -> str | None:
    key = (write.event.tenant_id, day_of(write.event.created_at))
    limit = write.events_limit
    return "plan" if limit is not None and tables.event_counts.get(key, 0) >= limit else None


def _keep(tables: Tables, write: AppendEvent, kept_at: int) -> None:
    event, gate = write.event, write.gate
    if write.events_limit is not None:
        key = (event.tenant_id, day_of(event.created_at))
        tables.event_counts[key] = tables.event_counts.get(key, 0) + 1
    event = replace(event, request_json=storable(event.request_json))
    if gate is not None:
        put_gate(tables, gate)
        if gate.status is GateStatus.PENDING:
            event = replace(event, status=EventStatus.WAITING_APPROVAL)
            tables.waits_at[event.id] = gate.id
    tables.put_event(replace(event, created_at=kept_at, updated_at=max(event.updated_at, kept_at)))
    if write.dedup_key is not None:
        tables.dedup[event.zombie_id, write.dedup_key] = (event.id, event.created_at, False)
    if write.body_key is not None and write.body_key != write.dedup_key:
        tables.dedup[event.zombie_id, write.body_key] = (event.id, event.created_at, True)
    _fired(tables, write)


def put_gate(tables: Tables, gate: Gate) -> None:
    """Save a new gate, its free text made fit for a row."""
    tables.gates[gate.id] = storable_gate(gate)


def cancel_event(tables: Tables, write: CancelEvent) -> Cancelled | Lost:
    event = tables.events.get(write.event_id)
    if event is None or event.zombie_id != write.zombie_id:
        return Lost(GONE)
    if event.completed_at is not None:
        return Cancelled(CancelOutcome.CLOSED, None, event.status)
    if event.status is EventStatus.RUNNING:
        return Cancelled(CancelOutcome.CANCELLING, mark_cancelling(tables, write.zombie_id), event.status)
    gates = [g for g in tables.gates.values() if g.event_id == event.id]
    closed = close_gates(tables, gates, GateStatus.DENIED, CANCELLED_BY, write.now)
    end_as_cancelled(tables, event, write.now)
    tables.append_frames(write.frames)
    gate_ids = tuple(gate.id for gate in closed)
    return Cancelled(CancelOutcome.ENDED, None, EventStatus.CANCELLED, gate_ids)


def close_gates(
    tables: Tables, gates: Iterable[Gate], status: GateStatus, by: str, now: int
) -> Sequence[Gate]:
    """Close those that are pending, each with its frame, oldest first."""
    pending = sorted(
        (gate for gate in gates if gate.status is GateStatus.PENDING), key=lambda g: (g.requested_at, g.id)
    )
    for gate in pending:
        tables.gates[gate.id] = replace(gate, status=status, updated_at=now, resolved_by=by)
        tables.append_frames((closed_frame(gate, status, by, now),))
    return pending


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
