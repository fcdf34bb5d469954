"""What people ask of one event, read from PostgreSQL."""

from collections.abc import Sequence
from uuid import UUID

from sexton_storage.periods import day_of, month_of
from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.sql.schema import EVENTS, GATES, LEASES, ZOMBIES
from sexton_storage.postgres.stores.base import PostgresStore
from sexton_storage.postgres.stores.zombies import AGENT
from sexton_storage.records.insights import (
    AHEAD_CAP,
    ATTEMPTS_CAP,
    LONGEST_CAP,
    MINUTE_MS,
    RUNNERS_CAP,
    SLACK_BAND_MS,
    SLACK_CAP,
    STARTS_CAP,
    STARTS_WINDOW_MS,
    AgentWaiting,
    Attempt,
    EventHistory,
    EventSituation,
    MinuteOfEvents,
    QueueLook,
    RunnerState,
    SlackBand,
    TagsMinute,
    TagsWaiting,
)
from sexton_storage.records.runners import AdminState

_ATTEMPTS = f"""
SELECT (SELECT coalesce(sum(m.charged_nanos), 0)::bigint FROM metering m
         WHERE m.event_id = l.event_id AND m.attempt = l.attempt), {LEASES.columns("l")}
  FROM (SELECT * FROM leases WHERE event_id = $1 ORDER BY fencing_token DESC LIMIT {ATTEMPTS_CAP}) l
 ORDER BY l.fencing_token
"""
_GATES = f"""
SELECT {GATES.columns("g")}
  FROM (SELECT * FROM gates WHERE event_id = $1 ORDER BY requested_at DESC, id DESC LIMIT {ATTEMPTS_CAP}) g
 ORDER BY g.requested_at, g.id
"""
_PENDING = f"""
SELECT {GATES.columns()} FROM gates WHERE event_id = $1 AND status = 'pending' ORDER BY requested_at, id
"""
_EVENT = f"SELECT arrival, {EVENTS.columns()} FROM events WHERE id = $1"
_LIVE = f"""
SELECT {LEASES.columns("l")} FROM agent_heads h JOIN leases l ON l.id = h.live_lease_id
 WHERE h.zombie_id = $1 AND l.status IN ('active', 'cancelling')
"""
_AROUND = """
SELECT sexton_now_ms(), w.paused, t.balance_nanos, t.unlimited,
       (SELECT count(*)
          FROM (SELECT FROM waiting_events e WHERE e.zombie_id = $1 AND e.arrival < $4 LIMIT $5) n)
  FROM workspaces w JOIN tenants t ON t.id = $3 WHERE w.id = $2
"""
_FIRST = """
SELECT event_id, retry_at FROM waiting_events WHERE zombie_id = $1 ORDER BY zombie_id, arrival LIMIT 1
"""
_SPENT = """
SELECT coalesce(sum(nanos) FILTER (WHERE day = $2), 0)::bigint, coalesce(sum(nanos), 0)::bigint
  FROM spend WHERE zombie_id = $1 AND day >= $3 AND day < $4
"""
# As many as are ahead by their age alone, however few of them need the same. Each agent is looked up once, by
# its id: the planner takes agents with the same needs for a handful, and would go through all that wait for
# each of them.
_AHEAD = """
SELECT coalesce(sum(e.events), 0)::bigint
  FROM (SELECT zombie_id, count(*) AS events
          FROM (SELECT zombie_id FROM waiting_events WHERE created_at < $2 ORDER BY created_at LIMIT $5) o
         WHERE zombie_id <> $1 GROUP BY zombie_id) e
 CROSS JOIN LATERAL (SELECT workspace_id, required_tags, allows_unsandboxed FROM zombies
                      WHERE id = e.zombie_id OFFSET 0) z
  JOIN agent_heads h ON h.zombie_id = e.zombie_id AND h.status = 'active'
  JOIN workspaces w ON w.id = z.workspace_id AND NOT w.paused
 WHERE z.required_tags @> $3::text[] AND z.required_tags <@ $3::text[] AND z.allows_unsandboxed = $4
"""
_RUNNERS = """
SELECT r.id, r.labels || r.offers, r.sandbox_tier, r.admin_state, r.last_seen_at, r.slots,
       (SELECT count(*) FROM live_leases n WHERE n.runner_id = r.id), s.starts, s.since
  FROM (SELECT * FROM runners
         WHERE (tenant_id IS NULL OR tenant_id = $1) AND (workspace_id IS NULL OR workspace_id = $2)
           AND admin_state <> 'revoked' ORDER BY created_at DESC, id LIMIT $3) r
 CROSS JOIN LATERAL (
    SELECT count(*) AS starts,
           CASE WHEN count(*) < $5 THEN $4 ELSE min(granted_at) END AS since
      FROM (SELECT granted_at FROM leases
             WHERE runner_id = r.id AND granted_at >= $4 ORDER BY granted_at DESC, id DESC LIMIT $5) l) s
 ORDER BY r.id
"""
_THROUGHPUT = f"""
SELECT created_at / {MINUTE_MS} * {MINUTE_MS}, count(*), count(*) FILTER (WHERE status = 'processed'),
       count(*) FILTER (WHERE status IN ('agent_error', 'dead_lettered')), sum(charged_nanos)::bigint,
       coalesce(max(first_leased_at - created_at), 0)
  FROM (SELECT created_at, status, charged_nanos, first_leased_at FROM events
         WHERE workspace_id = $1 AND created_at >= $2 ORDER BY created_at DESC, id DESC LIMIT $3) e
 GROUP BY 1 ORDER BY 1
"""


_WAITING_NOW = """
SELECT z.required_tags, sum(e.events)::bigint,
       min(e.oldest_at) FILTER (WHERE h.status = 'active' AND NOT w.paused)
  FROM (SELECT zombie_id, workspace_id, count(*) AS events, min(created_at) AS oldest_at
          FROM (SELECT zombie_id, workspace_id, created_at FROM waiting_events
                 WHERE workspace_id = $1 ORDER BY created_at, arrival LIMIT $2) o
         GROUP BY zombie_id, workspace_id) e
  JOIN zombies z ON z.id = e.zombie_id
  JOIN agent_heads h ON h.zombie_id = e.zombie_id
  JOIN workspaces w ON w.id = e.workspace_id
 GROUP BY z.required_tags ORDER BY z.required_tags
"""
_LONGEST = f"""
SELECT e.zombie_id, z.name, e.events, o.event_id, o.created_at
  FROM (SELECT zombie_id, count(*) AS events, min(arrival) AS first
          FROM (SELECT zombie_id, created_at, arrival FROM waiting_events
                 WHERE workspace_id = $1 ORDER BY created_at, arrival LIMIT $2) o
         GROUP BY zombie_id ORDER BY min(created_at), min(arrival) LIMIT {LONGEST_CAP}) e
  JOIN waiting_events o ON o.zombie_id = e.zombie_id AND o.arrival = e.first
  JOIN zombies z ON z.id = e.zombie_id
 ORDER BY o.created_at, o.arrival
"""
_WAITED = f"""
SELECT z.required_tags, min(e.created_at),
       CASE WHEN NOT bool_or(e.first_leased_at IS NULL AND e.status = 'received')
            THEN max(coalesce(e.first_leased_at, e.completed_at, e.updated_at)) END
  FROM (SELECT zombie_id, created_at, first_leased_at, completed_at, updated_at, status FROM events
         WHERE workspace_id = $1 AND created_at >= $2 ORDER BY created_at DESC, arrival DESC LIMIT $3) e
  JOIN zombies z ON z.id = e.zombie_id
 GROUP BY z.required_tags, e.created_at / {MINUTE_MS} ORDER BY z.required_tags, min(e.created_at)
"""
SLACK = """
SELECT greatest(left_ms, 0) / $1 * $1, count(*), min(left_ms)
  FROM (SELECT l.expires_at - sexton_now_ms() AS left_ms
          FROM (SELECT lease_id FROM live_leases {chosen} LIMIT $2) n JOIN leases l ON l.id = n.lease_id) s
 GROUP BY 1 ORDER BY 1
"""


class PostgresInsights(PostgresStore):
    async def history(self, event_id: UUID) -> EventHistory:
        async def work(connection: Connection) -> EventHistory:
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                attempts = await connection.fetch(_ATTEMPTS, event_id)
                gates = await connection.fetch(_GATES, event_id)
            return EventHistory(
                tuple(Attempt(LEASES.record(row, 1), row[0]) for row in attempts), tuple(GATES.many(gates))
            )

        return await self._database.read(work)

    async def situation(self, event_id: UUID) -> EventSituation | None:
        async def work(connection: Connection) -> EventSituation | None:
            # What is told belongs together: an event must not wait behind one that has ended meanwhile.
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                return await _situation(connection, event_id)

        return await self._database.read(work)

    async def throughput(self, workspace_id: UUID, *, since: int, limit: int) -> Sequence[MinuteOfEvents]:
        rows = await self._database.read(lambda c: c.fetch(_THROUGHPUT, workspace_id, since, limit))
        return [MinuteOfEvents(*row) for row in rows]

    async def queue(self, workspace_id: UUID, *, since: int, limit: int) -> QueueLook:
        async def work(connection: Connection) -> QueueLook:
            at = await connection.fetchval("SELECT sexton_now_ms()")
            waiting = await connection.fetch(_WAITING_NOW, workspace_id, limit)
            longest = await connection.fetch(_LONGEST, workspace_id, limit)
            waited = await connection.fetch(_WAITED, workspace_id, since, limit)
            chosen = SLACK.format(chosen="WHERE workspace_id = $3")
            slack = await connection.fetch(chosen, SLACK_BAND_MS, SLACK_CAP, workspace_id)
            return QueueLook(
                at,
                tuple(TagsWaiting(tuple(row[0]), row[1], row[2]) for row in waiting),
                tuple(AgentWaiting(*row) for row in longest),
                tuple(TagsMinute(tuple(row[0]), row[1], row[2]) for row in waited),
                tuple(SlackBand(*row) for row in slack),
            )

        return await self._database.read(work)


async def _situation(connection: Connection, event_id: UUID) -> EventSituation | None:
    row = await connection.fetchrow(_EVENT, event_id)
    if row is None:
        return None
    event, arrival = EVENTS.record(row, 1), row[0]
    agent = ZOMBIES.maybe(await connection.fetchrow(f"{AGENT} WHERE z.id = $1", event.zombie_id))
    around = await connection.fetchrow(
        _AROUND, event.zombie_id, event.workspace_id, event.tenant_id, arrival, AHEAD_CAP
    )
    if agent is None or around is None:
        return None
    at, paused, balance, unlimited, ahead_of_agent = around
    day = day_of(at)
    month = month_of(day)
    spent = await connection.fetchrow(_SPENT, agent.id, day, month.first_day, month.end_day)
    first = await connection.fetchrow(_FIRST, agent.id)
    tags = list(agent.required_tags)
    runners = await connection.fetch(
        _RUNNERS, agent.tenant_id, agent.workspace_id, RUNNERS_CAP, at - STARTS_WINDOW_MS, STARTS_CAP
    )
    return EventSituation(
        event=event,
        agent=agent,
        at=at,
        workspace_paused=paused,
        has_credit=unlimited or balance > 0,
        spent_day=0 if spent is None else spent[0],
        spent_month=0 if spent is None else spent[1],
        running=LEASES.maybe(await connection.fetchrow(_LIVE, agent.id)),
        ahead_of_agent=ahead_of_agent,
        first_of_agent=None if first is None else first[0],
        first_retry_at=None if first is None else first[1],
        ahead=await connection.fetchval(
            _AHEAD, agent.id, event.created_at, tags, agent.allows_unsandboxed, AHEAD_CAP
        ),
        gates=tuple(GATES.many(await connection.fetch(_PENDING, event_id))),
        runners=tuple(
            RunnerState(r[0], tuple(r[1]), r[2], AdminState(r[3]), r[4], r[5], r[6], r[7], r[8])
            for r in runners
        ),
    )
