"""Erasures in PostgreSQL: page by page, each in one transaction with how far it is."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from sexton_storage.decisions.erasure_steps import (
    REST_MOST_MS,
    REST_MS,
    REST_PART,
    is_new_pass,
    joined,
    keeps_events,
    moved,
    settles,
    stopped,
    takes_over,
)
from sexton_storage.decisions.tombstones import again, tombstone_of
from sexton_storage.paging import Page
from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.sql.rows import Rows
from sexton_storage.postgres.stores.base import PostgresStore
from sexton_storage.postgres.stores.erasure_pages import look_through_page
from sexton_storage.records.erasures import OVER, Erasure, Tombstone

ERASURES: Final = Rows(Erasure)
_SELECT = f"SELECT {ERASURES.columns()} FROM erasures"
_OPEN = "status IN ('running', 'waiting')"
_ADD = f"{ERASURES.insert('erasures')} ON CONFLICT (id) DO NOTHING"
_SAVE = """
UPDATE erasures SET status = $2, updated_at = $3, surface = $4, after = $5, passes = $6, waits = $7,
       erased = $8, kept = $9, ended_at = $10, found = $11, confirms = $12 WHERE id = $1
"""
_SAVED: Final = (
    "id",
    "status",
    "updated_at",
    "surface",
    "after",
    "passes",
    "waits",
    "erased",
    "kept",
    "ended_at",
    "found",
    "confirms",
)
_DUE = f"""
SELECT id FROM erasures
 WHERE {_OPEN}
   AND (status = 'running'
        OR updated_at + CASE WHEN waits = 0 THEN {REST_MS} ELSE
             LEAST({REST_MOST_MS}, GREATEST({REST_MS}, (updated_at - created_at) / {REST_PART})) END <= $1)
 ORDER BY created_at, id LIMIT $2
"""
# A transaction that had not ended when a pass began is not below its number: the pass may have missed what
# that one wrote. The number of a row's transaction is the row's ``xmin``, also of rows that were changed.
_NOTE_BEGIN = """
UPDATE erasures SET pass_txid = txid_snapshot_xmin(txid_current_snapshot()) WHERE id = $1
"""
_SETTLE = "UPDATE erasures SET settled_txid = pass_txid WHERE id = $1"
# Restored from a dump: transactions are counted from the start again, and rows have other numbers.
_FORGET_FOREIGN = """
UPDATE erasures SET pass_txid = NULL, settled_txid = NULL
 WHERE id = $1 AND (settled_txid > txid_snapshot_xmax(txid_current_snapshot())
                    OR pass_txid > txid_snapshot_xmax(txid_current_snapshot()))
"""
_LEFT = """
FROM erasures own JOIN erasures e ON e.workspace_id = own.workspace_id AND e.path = own.path
                                 AND e.sha256 = own.sha256 AND e.chars = own.chars
 WHERE own.id = $1 AND e.status = 'stopped' AND NOT e.dry_run
"""
_NOTE = """
INSERT INTO erasure_events AS known (erasure_id, event_id, whole)
SELECT $1, event_id, bool_or(whole) FROM stood GROUP BY event_id
ON CONFLICT (erasure_id, event_id) DO UPDATE SET whole = true WHERE excluded.whole AND NOT known.whole
RETURNING 1
"""
# They are noted once: a page costs the same however many there were.
_TAKE_OVER = f"""
WITH stood AS (DELETE FROM erasure_events WHERE erasure_id IN (SELECT e.id {_LEFT})
               RETURNING event_id, whole),
     taken AS ({_NOTE})
SELECT count(*) FROM taken
"""
_COUNT_WITH = f"""
WITH stood AS (SELECT event_id, whole FROM erasure_events WHERE erasure_id IN (SELECT e.id {_LEFT})),
     taken AS ({_NOTE})
SELECT count(*) FROM taken
"""
_LOST = """
SELECT true FROM workspaces WHERE id = $1 AND NOT EXISTS (SELECT FROM erasures WHERE id = $2)
"""


class PostgresErasures(PostgresStore):
    async def add(self, erasure: Erasure, *, limit: int) -> bool:
        async def work(connection: Connection) -> bool:
            # Two at once are counted one after the other.
            workspace = "SELECT FROM workspaces WHERE id = $1 FOR NO KEY UPDATE"
            await connection.execute(workspace, erasure.workspace_id)
            others = f"SELECT count(*) FROM erasures WHERE workspace_id = $1 AND {_OPEN} AND id <> $2"
            if await connection.fetchval(others, erasure.workspace_id, erasure.id) >= limit:
                return False
            await connection.execute(_ADD, *ERASURES.values(erasure))
            return True

        return await self._database.change(work)

    async def load(self, erasure_id: UUID) -> Erasure | None:
        return ERASURES.maybe(await self._row(f"{_SELECT} WHERE id = $1", erasure_id))

    async def list(self, workspace_id: UUID, *, limit: int, before: Page | None = None) -> Sequence[Erasure]:
        place = (None, None) if before is None else (before.created_at, before.id)
        query = f"""
{_SELECT} WHERE workspace_id = $1 AND ($3::bigint IS NULL OR (created_at, id) < ($3, $4::uuid))
 ORDER BY created_at DESC, id DESC LIMIT $2
"""
        return ERASURES.many(await self._rows(query, workspace_id, limit, *place))

    async def due(self, *, now: int, limit: int) -> Sequence[UUID]:
        return [row[0] for row in await self._rows(_DUE, now, limit)]

    async def step(self, erasure_id: UUID) -> Erasure | None:
        return await self._database.change(lambda connection: _step(connection, erasure_id), long=True)

    async def stop(self, erasure_id: UUID) -> Erasure | None:
        async def work(connection: Connection) -> Erasure | None:
            found = ERASURES.maybe(
                await connection.fetchrow(f"{_SELECT} WHERE id = $1 FOR UPDATE", erasure_id)
            )
            if found is None:
                return None
            ended = stopped(found, await connection.fetchval("SELECT sexton_now_ms()"))
            if ended is not found:
                await _save(connection, ended)
            return ended

        return await self._database.change(work)

    async def newest_change(self) -> int:
        changes: int = await self._value("SELECT changes FROM erasure_changes")
        return changes

    async def tombstones(self) -> Sequence[Tombstone]:
        query = f"{_SELECT} WHERE status = 'done' AND NOT dry_run ORDER BY ended_at, id"
        return [tombstone_of(one) for one in ERASURES.many(await self._rows(query))]

    async def restore(self, tombstones: Sequence[Tombstone]) -> Sequence[UUID]:
        async def work(connection: Connection) -> Sequence[UUID]:
            now, begun = await connection.fetchval("SELECT sexton_now_ms()"), []
            for one in tombstones:
                if await connection.fetchval(_LOST, one.workspace_id, one.id):
                    await connection.execute(_ADD, *ERASURES.values(again(one, now)))
                    begun.append(one.id)
            return begun

        return await self._database.change(work)


async def _save(connection: Connection, erasure: Erasure) -> None:
    values = dict(zip(ERASURES.names, ERASURES.values(erasure), strict=True))
    await connection.execute(_SAVE, *(values[name] for name in _SAVED))
    if erasure.status in OVER and not keeps_events(erasure):
        await connection.execute("DELETE FROM erasure_events WHERE erasure_id = $1", erasure.id)


async def _step(connection: Connection, erasure_id: UUID) -> Erasure | None:
    free = f"{_SELECT} WHERE id = $1 AND {_OPEN} FOR UPDATE SKIP LOCKED"
    erasure = ERASURES.maybe(await connection.fetchrow(free, erasure_id))
    if erasure is None:
        return None
    if takes_over(erasure):
        statement = _COUNT_WITH if erasure.dry_run else _TAKE_OVER
        erasure = joined(erasure, await connection.fetchval(statement, erasure_id))
    await connection.execute(_FORGET_FOREIGN, erasure_id)
    if is_new_pass(erasure):
        await connection.execute(_NOTE_BEGIN, erasure_id)
    found = await look_through_page(connection, erasure)
    now = await connection.fetchval("SELECT sexton_now_ms()")
    # A restart of the clock must not let it seem older than it is.
    after = moved(erasure, found, max(now, erasure.updated_at))
    await _save(connection, after)
    if after.passes > erasure.passes and settles(after):
        await connection.execute(_SETTLE, erasure_id)
    if found.erased and not erasure.dry_run:
        await connection.execute("UPDATE erasure_changes SET changes = changes + 1")
    return after
