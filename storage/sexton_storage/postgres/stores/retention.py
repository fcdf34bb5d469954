"""Deletes ended events by their age, in PostgreSQL."""

from typing import Final

from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.stores.event_words import HOLD_PLACE
from sexton_storage.records.tenants import PlanTier

BY_AGENT_AND_EVENT: Final = (
    "transcript_entries",
    "transcripts",
    "event_words",
    "workspace_starts",
    "failure_events",
)
BY_EVENT: Final = ("gates", "leases", "artefacts", "event_files", "scores")
_DUE: Final = """
SELECT e.zombie_id, e.id FROM tenants t JOIN workspaces w ON w.tenant_id = t.id
 CROSS JOIN LATERAL (
    SELECT zombie_id, id FROM events
     WHERE workspace_id = w.id AND created_at < (SELECT sexton_now_ms() - $2)
       AND completed_at < (SELECT sexton_now_ms() - $2)
     ORDER BY created_at, arrival LIMIT $3) e
 WHERE t.plan_tier = $1 LIMIT $3
"""
_OF_PAIRS: Final = """
DELETE FROM {table} o USING unnest($1::uuid[], $2::uuid[]) v(zombie_id, event_id)
 WHERE o.zombie_id = v.zombie_id AND o.event_id = v.event_id
"""


async def drop_events(connection: Connection, tier: PlanTier, keep_ms: int, limit: int) -> int:
    """Delete events that ended so long ago, with all that belongs to them; how many events."""
    due = await connection.fetch(_DUE, tier, keep_ms, limit)
    if not due:
        return 0
    agents, events = [row[0] for row in due], [row[1] for row in due]
    # No words of an event are written after they were deleted.
    await connection.execute(HOLD_PLACE)
    for table in BY_AGENT_AND_EVENT:
        await connection.execute(_OF_PAIRS.format(table=table), agents, events)
    for table in BY_EVENT:
        await connection.execute(f"DELETE FROM {table} WHERE event_id = ANY($1)", events)
    gone = await connection.execute("DELETE FROM events WHERE id = ANY($1)", events)
    return int(gone.split()[-1])
