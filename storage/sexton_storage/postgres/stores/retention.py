"""Deletes what is past keeping, in PostgreSQL, and says beforehand what that would be."""

from collections.abc import Mapping
from typing import Final
from uuid import UUID

from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.sql.rows import Rows
from sexton_storage.postgres.stores.base import PostgresStore
from sexton_storage.postgres.stores.event_words import HOLD_PLACE
from sexton_storage.records.retention import Due, KeptClass, RetentionPolicy
from sexton_storage.records.tenants import PlanTier

POLICIES: Final = Rows(RetentionPolicy)
BY_AGENT_AND_EVENT: Final = (
    "transcript_entries",
    "transcripts",
    "event_words",
    "workspace_starts",
    "failure_events",
)
BY_EVENT: Final = ("gates", "leases", "artefacts", "event_files", "scores")
# Ends with the transaction. Two that deleted the same rows could wait for each other.
HOLD_RETENTION: Final = "SELECT pg_try_advisory_xact_lock(1234554321, 57)"
_SAVE: Final = f"""
{POLICIES.insert("workspace_retention")}
ON CONFLICT (workspace_id) DO UPDATE SET event_days = excluded.event_days,
    transcript_days = excluded.transcript_days, file_days = excluded.file_days,
    delivery_days = excluded.delivery_days, updated_at = excluded.updated_at
"""
# Workspaces with a bound of their own or of their plan, and since when they keep.
_KEPT: Final = """
WITH kept AS MATERIALIZED (
    SELECT w.id AS workspace_id,
           sexton_now_ms() - least(b.keep_ms, r.{days}::bigint * 86400000) AS since
      FROM workspaces w JOIN tenants t ON t.id = w.tenant_id
      LEFT JOIN unnest($1::text[], $2::bigint[]) b(tier, keep_ms) ON b.tier = t.plan_tier
      LEFT JOIN workspace_retention r ON r.workspace_id = w.id
     WHERE b.keep_ms IS NOT NULL OR r.{days} IS NOT NULL)
"""
_EVENTS: Final = f"""
{_KEPT.format(days="event_days")}
SELECT e.zombie_id, e.id FROM kept k CROSS JOIN LATERAL (
    SELECT zombie_id, id FROM events
     WHERE workspace_id = k.workspace_id AND created_at < k.since AND completed_at < k.since
     ORDER BY created_at, arrival LIMIT $3) e
 LIMIT $3
"""
OF_PAIRS: Final = """
DELETE FROM {table} o USING unnest($1::uuid[], $2::uuid[]) v(zombie_id, event_id)
 WHERE o.zombie_id = v.zombie_id AND o.event_id = v.event_id
"""
_TRANSCRIPTS: Final = f"""
{_KEPT.format(days="transcript_days")},
old AS (
    SELECT t.* FROM kept k CROSS JOIN LATERAL (
        SELECT zombie_id, event_id, attempt FROM transcripts
         WHERE workspace_id = k.workspace_id AND began_at < k.since ORDER BY began_at LIMIT $3) t
     LIMIT $3),
gone AS (
    DELETE FROM transcripts t USING old o
     WHERE t.zombie_id = o.zombie_id AND t.event_id = o.event_id AND t.attempt = o.attempt
    RETURNING t.zombie_id, t.event_id, t.attempt),
entries AS (
    DELETE FROM transcript_entries e USING gone g
     WHERE e.zombie_id = g.zombie_id AND e.event_id = g.event_id AND e.attempt = g.attempt)
SELECT count(*) FROM gone
"""
_ARTEFACTS: Final = f"""
{_KEPT.format(days="file_days")},
gone AS (
    DELETE FROM artefacts WHERE id = ANY(ARRAY(
        SELECT a.id FROM kept k CROSS JOIN LATERAL (
            SELECT id FROM artefacts
             WHERE workspace_id = k.workspace_id AND created_at < k.since ORDER BY created_at LIMIT $3) a
         LIMIT $3))
    RETURNING 1)
SELECT count(*) FROM gone
"""
# Files of an event that has not ended are still to be read by its run.
_EVENT_FILES: Final = f"""
{_KEPT.format(days="file_days")},
gone AS (
    DELETE FROM event_files WHERE ctid = ANY(ARRAY(
        SELECT f.ctid FROM kept k CROSS JOIN LATERAL (
            SELECT o.ctid FROM event_files o JOIN events e ON e.id = o.event_id
             WHERE o.workspace_id = k.workspace_id AND o.created_at < k.since AND e.completed_at IS NOT NULL
             ORDER BY o.created_at LIMIT $3) f
         LIMIT $3))
    RETURNING 1)
SELECT count(*) FROM gone
"""
_DELIVERIES: Final = f"""
{_KEPT.format(days="delivery_days")},
gone AS (
    DELETE FROM webhook_deliveries WHERE id = ANY(ARRAY(
        SELECT d.id FROM kept k CROSS JOIN LATERAL (
            SELECT id FROM webhook_deliveries
             WHERE workspace_id = k.workspace_id AND at < k.since ORDER BY at, id LIMIT $3) d
         LIMIT $3))
    RETURNING 1)
SELECT count(*) FROM gone
"""
_ROUNDS: Final = {
    KeptClass.TRANSCRIPTS: (_TRANSCRIPTS,),
    KeptClass.FILES: (_ARTEFACTS, _EVENT_FILES),
    KeptClass.DELIVERIES: (_DELIVERIES,),
}
# $1: the workspace, $2: since when it keeps, $3: the most rows. Nothing is unpacked to tell its size.
_OLD: Final = {
    KeptClass.EVENTS: """
SELECT created_at AS at, pg_column_size(request_json) + coalesce(pg_column_size(response_text), 0)
       + coalesce(pg_column_size(evidence), 0) + coalesce(pg_column_size(checkpoint), 0) AS size,
       id AS event_id
  FROM events WHERE workspace_id = $1 AND created_at < $2 AND completed_at < $2
 ORDER BY created_at, arrival LIMIT $3
""",
    KeptClass.TRANSCRIPTS: """
SELECT began_at AS at, bytes AS size, NULL::uuid AS event_id FROM transcripts
 WHERE workspace_id = $1 AND began_at < $2 ORDER BY began_at LIMIT $3
""",
    KeptClass.FILES: """
(SELECT created_at AS at, size, NULL::uuid AS event_id FROM artefacts
  WHERE workspace_id = $1 AND created_at < $2 ORDER BY created_at LIMIT $3)
UNION ALL
(SELECT o.created_at, o.size, NULL::uuid FROM event_files o JOIN events e ON e.id = o.event_id
  WHERE o.workspace_id = $1 AND o.created_at < $2 AND e.completed_at IS NOT NULL
  ORDER BY o.created_at LIMIT $3)
""",
    KeptClass.DELIVERIES: """
SELECT at, body_bytes AS size, NULL::uuid AS event_id FROM webhook_deliveries
 WHERE workspace_id = $1 AND at < $2 ORDER BY at, id LIMIT $3
""",
}
_COUNT: Final = """
WITH old AS MATERIALIZED ({old})
SELECT count(*), coalesce(sum(size), 0)::bigint, min(at), array_agg(event_id) FROM old
"""
_CHARGED: Final = "SELECT coalesce(sum(charged_nanos), 0)::bigint FROM metering WHERE event_id = ANY($1)"


class PostgresRetention(PostgresStore):
    async def load(self, workspace_id: UUID) -> RetentionPolicy | None:
        query = f"SELECT {POLICIES.columns()} FROM workspace_retention WHERE workspace_id = $1"
        return POLICIES.maybe(await self._row(query, workspace_id))

    async def save(self, policy: RetentionPolicy) -> None:
        await self._database.change(lambda c: c.execute(_SAVE, *POLICIES.values(policy)))

    async def due(self, workspace_id: UUID, kept: KeptClass, *, keep_ms: int, limit: int) -> Due:
        async def work(connection: Connection) -> Due:
            since = await connection.fetchval("SELECT sexton_now_ms()") - keep_ms
            query = _COUNT.format(old=_OLD[kept])
            row = await connection.fetchrow(query, workspace_id, since, limit)
            if row is None:
                raise LookupError("a sum gave no row")
            rows, size, oldest_at, events = row
            charged = 0
            if kept is KeptClass.EVENTS and rows:
                charged = await connection.fetchval(_CHARGED, events)
            return Due(rows, size, oldest_at, charged, rows >= limit)

        return await self._database.read(work)

    async def drop(self, kept: KeptClass, plans: Mapping[PlanTier, int], *, limit: int) -> int:
        bounds = [tier.value for tier in plans], list(plans.values())

        async def work(connection: Connection) -> int:
            if not await connection.fetchval(HOLD_RETENTION):
                return 0  # Another node is at it.
            if kept is KeptClass.EVENTS:
                return await _drop_events(connection, *bounds, limit)
            dropped = 0
            for statement in _ROUNDS[kept]:
                if dropped < limit:
                    dropped += await connection.fetchval(statement, *bounds, limit - dropped)
            return dropped

        return await self._database.change(work, long=True)


async def _drop_events(connection: Connection, tiers: list[str], keep_ms: list[int], limit: int) -> int:
    due = await connection.fetch(_EVENTS, tiers, keep_ms, limit)
    if not due:
        return 0
    agents, events = [row[0] for row in due], [row[1] for row in due]
    # No words of an event are written after they were deleted.
    await connection.execute(HOLD_PLACE)
    for table in BY_AGENT_AND_EVENT:
        await connection.execute(OF_PAIRS.format(table=table), agents, events)
    for table in BY_EVENT:
        await connection.execute(f"DELETE FROM {table} WHERE event_id = ANY($1)", events)
    gone = await connection.execute("DELETE FROM events WHERE id = ANY($1)", events)
    return int(gone.split()[-1])
