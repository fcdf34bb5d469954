"""The fleet as operators look at it, in PostgreSQL."""

from collections.abc import Sequence
from uuid import UUID

from sexton_storage.documents import from_json
from sexton_storage.paging import Page
from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.sql.schema import BLOCKED
from sexton_storage.postgres.stores.base import PostgresStore
from sexton_storage.postgres.stores.insights import SLACK
from sexton_storage.records.fleet import (
    COUNT_CAP,
    DEMAND_CAP,
    LOOKED_AT,
    Census,
    HistoryItem,
    HistoryKind,
    LabelDemand,
    LiveLease,
    Liveness,
    RunnerGroup,
    Waiting,
)
from sexton_storage.records.insights import SLACK_BAND_MS, SLACK_CAP, SlackBand
from sexton_storage.records.runners import AdminState
from sexton_storage.terms import CHANGES_KEEP_MS, LAST_BACKUP, ONLINE_MS

# Each part comes off its own index, newest first, and no further than the page.
HISTORY = """
SELECT id, kind, at, data FROM (
    (SELECT id, 'admin_state_changed' AS kind, at,
            json_build_object('from', changed_from, 'to', changed_to, 'by', changed_by) AS data
       FROM runner_changes WHERE runner_id = $1 AND (at, id) < ($2, $3) ORDER BY at DESC, id DESC LIMIT $4)
    UNION ALL
    (SELECT id, 'lease', granted_at,
            json_build_object('lease_id', id, 'event_id', event_id, 'zombie_id', zombie_id,
                              'workspace_id', workspace_id, 'attempt', attempt,
                              'fencing_token', fencing_token, 'status', status, 'ended_at', ended_at)
       FROM leases WHERE runner_id = $1 AND (granted_at, id) < ($2, $3)
      ORDER BY granted_at DESC, id DESC LIMIT $4)
    UNION ALL
    (SELECT id, 'enrolled', created_at,
            json_build_object('host_id', host_id, 'sandbox_tier', sandbox_tier, 'labels', labels,
                              'slots', slots)
       FROM runners WHERE id = $1 AND (created_at, id) < ($2, $3))
) h ORDER BY at DESC, id DESC LIMIT $4
"""
NEWEST = Page(2**62, UUID(int=2**128 - 1))
LIVE_LEASES = """
SELECT l.id, l.event_id, l.zombie_id, l.workspace_id, l.runner_id, l.attempt, l.status = 'cancelling',
       l.granted_at, l.expires_at, l.ceiling_at, l.metered_at
  FROM live_leases n JOIN leases l ON l.id = n.lease_id ORDER BY l.expires_at, l.id LIMIT $1
"""
COUNTS = f"""
SELECT sexton_now_ms(),
       (SELECT count(*) FROM (SELECT FROM waiting_events LIMIT $1) e),
       (SELECT min(e.created_at)
          FROM (SELECT zombie_id, workspace_id, created_at FROM waiting_events
                 ORDER BY created_at LIMIT $2) e
          JOIN agent_heads h ON h.zombie_id = e.zombie_id AND h.status = 'active'
          JOIN workspaces w ON w.id = e.workspace_id AND NOT w.paused),
       (SELECT count(*) FROM (SELECT FROM live_leases LIMIT $1) l),
       g.pending, g.oldest,
       (SELECT count(*) FROM (SELECT FROM events WHERE {BLOCKED} LIMIT $1) b),
       (SELECT count(*) FROM (SELECT FROM tenants WHERE exhausted_at IS NOT NULL LIMIT $1) t),
       (SELECT min(next_at) FROM cron_triggers WHERE next_at <= sexton_now_ms())
  FROM (SELECT count(*) AS pending, min(requested_at) AS oldest
          FROM (SELECT requested_at FROM gates WHERE status = 'pending' LIMIT $1) p) g
"""
WAITING = """
SELECT z.required_tags, z.allows_unsandboxed, count(*),
       min(e.created_at) FILTER (WHERE h.status = 'active' AND NOT w.paused), t.tenant_id, s.workspace_id
  FROM (SELECT zombie_id, workspace_id, created_at FROM waiting_events ORDER BY created_at LIMIT $1) e
  JOIN zombies z ON z.id = e.zombie_id
  JOIN agent_heads h ON h.zombie_id = e.zombie_id
  JOIN workspaces w ON w.id = e.workspace_id
  LEFT JOIN (SELECT DISTINCT tenant_id FROM runners) t ON t.tenant_id = z.tenant_id
  LEFT JOIN (SELECT DISTINCT workspace_id FROM runners) s ON s.workspace_id = z.workspace_id
 GROUP BY z.required_tags, z.allows_unsandboxed, t.tenant_id, s.workspace_id
 ORDER BY z.required_tags, z.allows_unsandboxed, t.tenant_id, s.workspace_id
"""
# Agents name labels as they like, so only what some runner was enrolled with gets a line of its own.
DEMAND = """
WITH known AS (
    SELECT coalesce(array_agg(DISTINCT o.ability), '{}') AS abilities
      FROM runners r CROSS JOIN LATERAL unnest(r.labels || r.offers) o (ability)
     WHERE r.admin_state <> 'revoked'),
wanted AS (
    SELECT z.required_tags AS tags, e.events,
           (h.status = 'active' AND NOT w.paused AND h.live_lease_id IS NULL AND e.may_start)::int AS slots,
           CASE WHEN h.status = 'active' AND NOT w.paused THEN e.oldest_at END AS oldest_at
      FROM (SELECT zombie_id, workspace_id, count(*) AS events, min(created_at) AS oldest_at,
                   bool_or(retry_at IS NULL OR retry_at <= sexton_now_ms()) AS may_start
              FROM (SELECT zombie_id, workspace_id, created_at, retry_at FROM waiting_events
                     ORDER BY created_at LIMIT $1) o
             GROUP BY zombie_id, workspace_id) e
     CROSS JOIN LATERAL (SELECT required_tags FROM zombies WHERE id = e.zombie_id OFFSET 0) z
      JOIN agent_heads h ON h.zombie_id = e.zombie_id
      JOIN workspaces w ON w.id = e.workspace_id
     UNION ALL
    SELECT z.required_tags, 0, 1, NULL
      FROM (SELECT zombie_id FROM live_leases LIMIT $1) l
     CROSS JOIN LATERAL (SELECT required_tags FROM zombies WHERE id = l.zombie_id OFFSET 0) z)
SELECT CASE WHEN tags <@ abilities THEN ARRAY(SELECT DISTINCT unnest(tags) ORDER BY 1) END,
       sum(events)::bigint, sum(slots)::bigint, min(oldest_at)
  FROM wanted, known GROUP BY 1 ORDER BY 1 NULLS LAST
"""
_RUNNERS = """
SELECT liveness, admin_state, count(*), sum(slots)
  FROM (SELECT r.admin_state, r.slots,
               CASE WHEN r.last_seen_at IS NULL THEN 'registered'
                    WHEN EXISTS (SELECT FROM live_leases l WHERE l.runner_id = r.id) THEN 'busy'
                    WHEN r.last_seen_at >= sexton_now_ms() - $1 THEN 'online'
                    ELSE 'offline' END AS liveness
          FROM runners r) s
 GROUP BY liveness, admin_state ORDER BY liveness, admin_state
"""
_SWEEP = """
DELETE FROM runner_changes WHERE id IN (SELECT id FROM runner_changes WHERE at <= $1 ORDER BY at LIMIT $2)
"""


class PostgresFleet(PostgresStore):
    async def history(
        self, runner_id: UUID, *, limit: int, before: Page | None = None
    ) -> Sequence[HistoryItem]:
        place = before or NEWEST
        rows = await self._rows(HISTORY, runner_id, place.created_at, place.id, limit)
        return [HistoryItem(row[0], HistoryKind(row[1]), row[2], from_json(row[3])) for row in rows]

    async def live_leases(self, *, limit: int) -> Sequence[LiveLease]:
        return [LiveLease(*row) for row in await self._rows(LIVE_LEASES, limit)]

    async def waiting(self) -> Sequence[Waiting]:
        rows = await self._rows(WAITING, COUNT_CAP)
        return [Waiting(tuple(row[0]), *row[1:]) for row in rows]

    async def slack(self) -> Sequence[SlackBand]:
        return [
            SlackBand(*row) for row in await self._rows(SLACK.format(chosen=""), SLACK_BAND_MS, SLACK_CAP)
        ]

    async def census(self) -> Census:
        async def work(connection: Connection) -> Census:
            row = await connection.fetchrow(COUNTS, COUNT_CAP, LOOKED_AT)
            groups = await connection.fetch(_RUNNERS, ONLINE_MS)
            demand = await connection.fetch(DEMAND, DEMAND_CAP)
            backup = await connection.fetchval("SELECT value FROM settings WHERE name = $1", LAST_BACKUP)
            if row is None:
                raise LookupError("a statement without a condition gave no row")
            at, queued, oldest, leases, gates, gate_at, blocked, exhausted, cron_at = row
            runners = tuple(RunnerGroup(Liveness(g[0]), AdminState(g[1]), g[2], g[3]) for g in groups)
            wanted = tuple(
                LabelDemand(None if tags is None else tuple(tags), *counts) for tags, *counts in demand
            )
            return Census(
                at,
                queued,
                oldest,
                leases,
                gates,
                gate_at,
                runners,
                blocked,
                exhausted,
                cron_at,
                wanted,
                None if backup is None else int(backup),
            )

        return await self._database.read(work)


async def sweep_changes(connection: Connection, now: int, limit: int) -> int:
    """Delete what is past keeping; how many rows."""
    done = await connection.execute(_SWEEP, now - CHANGES_KEEP_MS, limit)
    return int(done.split()[-1])
