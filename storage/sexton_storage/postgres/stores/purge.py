"""What goes with an agent that is deleted: the one list of it.

Every table with a column ``zombie_id`` stands here, in one of four places; a test walks the schema for it.
"""

from typing import Final
from uuid import UUID

from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.connections.database import Database
from sexton_storage.postgres.stores.event_words import HOLD_PLACE

HISTORY: Final = (
    "frames",
    "events",
    "event_words",
    "leases",
    "gates",
    "dedup_keys",
    "cron_triggers",
    "schedule_notes",
    "follow_ups",
    "spend",
    "proposals",
    "scores",
    "memories",
    "artefacts",
    "event_files",
    "transcript_entries",
    "transcripts",
    "workspace_snapshots",
    "workspace_starts",
    "workspace_resets",
    "failure_events",
    "failure_hours",
    "failure_groups",
    "webhook_deliveries",
    "webhook_refusals",
    "canary_runs",
    "chat_notices",
)
"""Emptied in portions, before the record goes; an index of each begins with ``zombie_id``."""
RECORD: Final = ("agent_keys", "grants", "config_versions", "agent_heads")
"""Gone in one commit with the agent's own row, after it."""
FOLLOWING: Final = ("waiting_events", "live_leases")
"""Gone with the rows that they follow: triggers see to it."""
KEPT: Final = ("metering_slices", "metering_runs", "charges")
"""Accounts: money that is gone stays accounted for. The view ``metering`` shows the first two."""

PORTION: Final = 10_000
"""Rows of one transaction, so that an agent with years of history is purged without a long lock."""

_LOCK_HEAD = "SELECT live_lease_id FROM agent_heads WHERE zombie_id = $1 FOR UPDATE"


async def purge(database: Database, zombie_id: UUID) -> bool:
    """Delete the agent and what belongs to it; False when there is no such agent."""
    for table in HISTORY:
        while await _portion(database, table, zombie_id) == PORTION:
            pass

    async def finish(connection: Connection) -> bool:
        await connection.fetchval(_LOCK_HEAD, zombie_id)
        await connection.execute(HOLD_PLACE)
        if await connection.fetchval("DELETE FROM zombies WHERE id = $1 RETURNING id", zombie_id) is None:
            return False
        # Once more, for what was written while the first pass went on; nothing can be after this lock.
        for table in (*HISTORY, *RECORD):
            await connection.execute(f"DELETE FROM {table} WHERE zombie_id = $1", zombie_id)
        return True

    return await database.change(finish, long=True)


async def _portion(database: Database, table: str, zombie_id: UUID) -> int:
    query = (
        f"DELETE FROM {table} WHERE ctid = ANY(ARRAY("
        f"SELECT ctid FROM {table} WHERE zombie_id = $1 LIMIT {PORTION}))"
    )
    # Deleting twice deletes the same, so it needs no mark.
    done = await database.read(lambda c: c.execute(query, zombie_id))
    return int(done.rsplit(" ", 1)[-1])
