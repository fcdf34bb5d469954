"""Deletes ended events by their age, in memory."""

from uuid import UUID

from sexton_storage.memory import event_files
from sexton_storage.memory.artefacts import let_go
from sexton_storage.memory.tables import Tables
from sexton_storage.records.tenants import PlanTier


def drop_events(tables: Tables, tier: PlanTier, keep_ms: int, limit: int) -> int:
    """Delete events that ended so long ago, with all that belongs to them; how many events."""
    before = tables.now() - keep_ms
    due = sorted(
        (event.created_at, event.id)
        for event in tables.events.values()
        if tables.tenants[event.tenant_id].plan_tier is tier
        and event.completed_at is not None
        and max(event.created_at, event.completed_at) < before
    )[:limit]
    for _, event_id in due:
        _drop(tables, event_id)
    return len(due)


def _drop(tables: Tables, event_id: UUID) -> None:
    del tables.events[event_id]
    for followed in (tables.waits_at, tables.lease_counts, tables.unsorted_failures, tables.failure_of):
        followed.pop(event_id, None)
    tables.scores.pop(event_id, None)
    tables.leases = {i: row for i, row in tables.leases.items() if row.event_id != event_id}
    tables.gates = {i: row for i, row in tables.gates.items() if row.event_id != event_id}
    let_go(tables, [row for row in tables.artefacts.values() if row.event_id == event_id])
    event_files.let_go(tables, [one for one in tables.event_files.values() if one.event_id == event_id])
    tables.transcripts = {key: row for key, row in tables.transcripts.items() if key[1] != event_id}
    tables.transcript_entries = {
        key: rows for key, rows in tables.transcript_entries.items() if key[1] != event_id
    }
    tables.workspace_starts = {key: row for key, row in tables.workspace_starts.items() if key[1] != event_id}
