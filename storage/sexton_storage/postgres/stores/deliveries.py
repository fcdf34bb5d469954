"""Deliveries of webhooks in PostgreSQL."""

from collections.abc import Collection, Sequence
from typing import Final
from uuid import UUID

from sexton_storage.documents import storable
from sexton_storage.paging import Page
from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.sql.rows import Rows
from sexton_storage.postgres.stores.base import Conditions, PostgresStore
from sexton_storage.records.deliveries import (
    BODIES_BYTES,
    DELIVERIES_KEEP_MS,
    HOUR_MS,
    OTHERS_KEPT,
    REFUSED_KEPT,
    DeliveryVerdict,
    KeptDelivery,
    RefusalCount,
    WebhookDelivery,
)

DELIVERIES: Final = Rows(WebhookDelivery)
_SELECT = f"SELECT {DELIVERIES.columns()} FROM webhook_deliveries"
# An agent that is being purged gains no rows; its deliveries are no reason to wait for that.
_THERE = """
SELECT zombie_id FROM agent_heads WHERE zombie_id = ANY($1) ORDER BY zombie_id FOR KEY SHARE SKIP LOCKED
"""
_COUNT = """
INSERT INTO webhook_refusals AS r
       (zombie_id, hour, workspace_id, refused, unkept, last_at, last_code, last_reason)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (zombie_id, hour) DO UPDATE
   SET refused = r.refused + excluded.refused, unkept = r.unkept + excluded.unkept,
       last_code = CASE WHEN excluded.last_at >= r.last_at THEN excluded.last_code ELSE r.last_code END,
       last_reason = CASE WHEN excluded.last_at >= r.last_at THEN excluded.last_reason
                          ELSE r.last_reason END,
       last_at = greatest(r.last_at, excluded.last_at)
"""
_BODY = "INSERT INTO webhook_bodies (delivery_id, body) VALUES ($1, $2) ON CONFLICT DO NOTHING"
_TOO_MANY = f"""
DELETE FROM webhook_deliveries WHERE id IN (
    SELECT d.id FROM unnest($1::uuid[]) a(zombie_id)
     CROSS JOIN LATERAL (
        SELECT id, verdict = 'refused' AS refused,
               row_number() OVER (PARTITION BY verdict = 'refused' ORDER BY at DESC, id DESC) AS place
          FROM webhook_deliveries WHERE zombie_id = a.zombie_id) d
     WHERE d.place > CASE WHEN d.refused THEN {REFUSED_KEPT} ELSE {OTHERS_KEPT} END)
"""
_TOO_LARGE = f"""
WITH over AS (
    UPDATE webhook_deliveries SET body_bytes = 0 WHERE id IN (
        SELECT d.id FROM (
            SELECT id, sum(body_bytes) OVER (PARTITION BY zombie_id ORDER BY at DESC, id DESC) AS total
              FROM webhook_deliveries WHERE zombie_id = ANY($1) AND body_bytes > 0) d
         WHERE d.total > {BODIES_BYTES})
    RETURNING id
)
DELETE FROM webhook_bodies WHERE delivery_id IN (SELECT id FROM over)
"""
_TRIM = """
WITH over AS (
    UPDATE webhook_deliveries SET body_bytes = 0 WHERE id IN (
        SELECT d.id FROM (
            SELECT id, at, sum(body_bytes) OVER (ORDER BY at DESC, id DESC) AS total
              FROM webhook_deliveries WHERE workspace_id = $1 AND body_bytes > 0) d
         WHERE d.total > $2 ORDER BY d.at, d.id LIMIT $3)
    RETURNING id
)
DELETE FROM webhook_bodies WHERE delivery_id IN (SELECT id FROM over)
"""
_SETTLE = """
UPDATE webhook_deliveries
   SET verdict = $2, code = $3, reason = $4, detail = $5, event_id = $6, replays = replays + 1,
       replayed_at = $7, replayed_by = $8
 WHERE id = $1 AND event_id IS NULL
"""
_EVENT_OF = """
SELECT id FROM events
 WHERE zombie_id = $1 AND created_at >= $4 AND actor = $2 AND source_event_id = $3
 ORDER BY created_at LIMIT 1
"""
_REFUSALS = """
SELECT zombie_id, max(hour), workspace_id, sum(refused)::bigint, sum(unkept)::bigint, max(last_at),
       (array_agg(last_code ORDER BY last_at DESC))[1], (array_agg(last_reason ORDER BY last_at DESC))[1]
  FROM webhook_refusals
 WHERE workspace_id = $1 AND hour >= $2 AND ($3::uuid[] IS NULL OR zombie_id = ANY($3))
 GROUP BY zombie_id, workspace_id ORDER BY max(last_at) DESC, zombie_id DESC LIMIT $4
"""
_SWEEP = """
DELETE FROM webhook_deliveries WHERE id IN (
    SELECT id FROM webhook_deliveries WHERE at < $1 ORDER BY at LIMIT $2)
"""
_SWEEP_COUNTS = """
DELETE FROM webhook_refusals WHERE ctid IN (SELECT ctid FROM webhook_refusals WHERE hour < $1 LIMIT $2)
"""


class PostgresDeliveries(PostgresStore):
    async def keep(self, kept: Sequence[KeptDelivery], counts: Sequence[RefusalCount]) -> int:
        agents = {one.delivery.zombie_id for one in kept} | {count.zombie_id for count in counts}

        async def work(connection: Connection) -> int:
            there = {row[0] for row in await connection.fetch(_THERE, sorted(agents))}
            mine = [one for one in kept if one.delivery.zombie_id in there]
            if mine:
                rows = DELIVERIES.arrays([one.delivery for one in mine])
                await connection.execute(DELIVERIES.insert_many("webhook_deliveries"), *rows)
            bodies = [(one.delivery.id, one.body) for one in mine if one.body is not None]
            if bodies:
                await connection.executemany(_BODY, bodies)
            told = sorted((c for c in counts if c.zombie_id in there), key=lambda c: (c.zombie_id, c.hour))
            if told:
                await connection.executemany(_COUNT, [_values(count) for count in told])
            if mine:
                await connection.execute(_TOO_MANY, sorted({one.delivery.zombie_id for one in mine}))
                await connection.execute(_TOO_LARGE, sorted({one.delivery.zombie_id for one in mine}))
            return len(mine)

        return await self._database.change(work)

    async def trim(self, workspace_id: UUID, *, max_bytes: int, limit: int) -> int:
        done = await self._database.change(lambda c: c.execute(_TRIM, workspace_id, max_bytes, limit))
        return int(done.split()[-1])

    async def load(self, delivery_id: UUID) -> WebhookDelivery | None:
        return DELIVERIES.maybe(await self._row(f"{_SELECT} WHERE id = $1", delivery_id))

    async def body(self, delivery_id: UUID) -> bytes | None:
        body: bytes | None = await self._value(
            "SELECT body FROM webhook_bodies WHERE delivery_id = $1", delivery_id
        )
        return body

    async def list(
        self,
        workspace_id: UUID,
        *,
        limit: int,
        before: Page | None = None,
        zombie_id: UUID | None = None,
        verdict: DeliveryVerdict | None = None,
        since: int | None = None,
        until: int | None = None,
    ) -> Sequence[WebhookDelivery]:
        where = Conditions("workspace_id = $1", workspace_id)
        if before is not None:
            where.add("(at, id) < ({}, {})", before.created_at, before.id)
        if zombie_id is not None:
            where.add("zombie_id = {}", zombie_id)
        if verdict is not None:
            where.add("verdict = {}", verdict)
        if since is not None:
            where.add("at >= {}", since)
        if until is not None:
            where.add("at < {}", until)
        order = f"ORDER BY at DESC, id DESC LIMIT {int(limit)}"
        return DELIVERIES.many(await self._rows(f"{_SELECT} WHERE {where} {order}", *where.args))

    async def settle(self, delivery: WebhookDelivery) -> None:
        args = (
            delivery.id,
            delivery.verdict,
            delivery.code,
            delivery.reason,
            storable(delivery.detail),
            delivery.event_id,
            delivery.replayed_at,
            storable(delivery.replayed_by or ""),
        )
        await self._database.change(lambda c: c.execute(_SETTLE, *args))

    async def event_of(self, zombie_id: UUID, actor: str, source_event_id: str, since: int) -> UUID | None:
        found: UUID | None = await self._value(_EVENT_OF, zombie_id, actor, storable(source_event_id), since)
        return found

    async def refusals(
        self, workspace_id: UUID, *, since: int, limit: int, zombie_ids: Collection[UUID] | None = None
    ) -> Sequence[RefusalCount]:
        only = None if zombie_ids is None else list(zombie_ids)
        rows = await self._rows(_REFUSALS, workspace_id, since // HOUR_MS, only, limit)
        return [RefusalCount(*row) for row in rows]


def _values(count: RefusalCount) -> tuple[object, ...]:
    return (
        count.zombie_id,
        count.hour,
        count.workspace_id,
        count.refused,
        count.unkept,
        count.last_at,
        count.last_code,
        count.last_reason,
    )


async def sweep_deliveries(connection: Connection, now: int, limit: int) -> int:
    """Delete what is past keeping; how many rows."""
    rows = await connection.execute(_SWEEP, now - DELIVERIES_KEEP_MS, limit)
    return int(rows.split()[-1])


async def sweep_delivery_counts(connection: Connection, now: int, limit: int) -> int:
    """Delete the counts of refusals that are past keeping; how many rows."""
    before = now - DELIVERIES_KEEP_MS
    counts = await connection.execute(_SWEEP_COUNTS, before // HOUR_MS, limit)
    return int(counts.split()[-1])
