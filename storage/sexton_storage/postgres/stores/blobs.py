"""Contents of any length, in PostgreSQL: a narrow row each, and their chunks beside it."""

from collections.abc import Sequence
from uuid import UUID

from sexton_storage.decisions import blobs as decide
from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.sql.rows import Rows
from sexton_storage.postgres.stores.base import PostgresStore
from sexton_storage.records.blobs import (
    CHUNK_BYTES,
    COUNTED,
    UNOWNED_KEEP_MS,
    Blob,
    BlobState,
    Misplaced,
    NoRoom,
    ToMove,
    chunks_of,
)

BLOBS = Rows(Blob)
DOOMED_AT_ONCE = 1_000
_LOCK_WORKSPACE = "SELECT id FROM workspaces WHERE id = $1 FOR NO KEY UPDATE"
_KNOWN = f"""
SELECT {BLOBS.columns()} FROM blobs WHERE lease_id = $1 AND sha256 = $2 AND size = $3 AND state <> 'doomed'
"""
_USED = "SELECT coalesce(sum(size), 0)::bigint FROM blobs WHERE workspace_id = $1"
_OF_LEASE = "SELECT count(*) FROM blobs WHERE lease_id = $1 AND state <> 'doomed' AND owners = 0"
_OPEN = f"""
INSERT INTO blobs (id, workspace_id, lease_id, sha256, size, created_at, touched_at)
SELECT $1, $2, $3, $4, $5, now_ms, now_ms FROM sexton_now_ms() AS now_ms RETURNING {BLOBS.columns()}
"""
_LOAD = f"SELECT {BLOBS.columns()} FROM blobs WHERE id = $1"
_LOCK = f"{_LOAD} FOR NO KEY UPDATE"
_CHUNKS = """
INSERT INTO blob_chunks (blob_id, number, content)
SELECT $1, $2 + n - 1, content FROM unnest($3::bytea[]) WITH ORDINALITY AS c(content, n)
"""
_RECEIVED = "UPDATE blobs SET received = $2, touched_at = sexton_now_ms() WHERE id = $1"
_SETTLED = "UPDATE blobs SET state = $2 WHERE id = $1"
_CLOSE = f"""
UPDATE blobs SET sha256 = $2, size = $3, received = $3, state = 'kept', touched_at = sexton_now_ms()
 WHERE id = $1 RETURNING {BLOBS.columns()}
"""
_GIVE_UP = "UPDATE blobs SET state = 'doomed' WHERE id = $1 AND state = 'open'"
_CHUNK = "SELECT content FROM blob_chunks WHERE blob_id = $1 AND number = $2"
_HELD = "SELECT count(*), coalesce(sum(size), 0)::bigint FROM blobs"
# Whoever comes to own a blob locks its row first: a blob is either owned or doomed.
_DOOM = """
UPDATE blobs SET state = 'doomed' WHERE id IN (
    SELECT id FROM blobs WHERE owners = 0 AND touched_at <= sexton_now_ms() - $1 AND state <> 'doomed'
     LIMIT $2 FOR UPDATE SKIP LOCKED)
"""
_SWEEP = """
DELETE FROM blob_chunks WHERE ctid = ANY(ARRAY(
    SELECT c.ctid FROM blobs b JOIN blob_chunks c ON c.blob_id = b.id
     WHERE b.owners = 0 AND b.state = 'doomed' LIMIT $1))
"""
_FORGET = """
DELETE FROM blobs b WHERE owners = 0 AND state = 'doomed' AND store_until IS NULL
   AND NOT EXISTS (SELECT FROM blob_chunks c WHERE c.blob_id = b.id)
"""
# What is moved, and when nobody has it, is told by decisions/blobs.py.
_MOVING = "state = 'kept' AND place = 'database' AND owners > 0 AND size > 0"
_CLAIM_MOVES = f"""
UPDATE blobs SET store_until = sexton_now_ms() + $2 WHERE id = ANY(ARRAY(
    SELECT id FROM blobs WHERE {_MOVING} AND coalesce(store_until, 0) <= sexton_now_ms()
     ORDER BY coalesce(store_until, 0) LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED))
RETURNING {BLOBS.columns()}
"""
_HOLD_MOVE = f"UPDATE blobs SET store_until = sexton_now_ms() + $2 WHERE id = $1 AND {_MOVING} RETURNING id"
_MOVED = f"UPDATE blobs SET place = 'both' WHERE id = $1 AND {_MOVING} RETURNING id"
_TO_MOVE = f"""
SELECT count(*), coalesce(sum(size), 0)::bigint, min(touched_at)
  FROM (SELECT size, touched_at FROM blobs WHERE {_MOVING} LIMIT {COUNTED}) AS waiting
"""
_CLEAR_MOVED = """
DELETE FROM blob_chunks WHERE ctid = ANY(ARRAY(
    SELECT c.ctid FROM blobs b JOIN blob_chunks c ON c.blob_id = b.id WHERE b.place = 'both' LIMIT $1))
"""
_CLEARED = """
UPDATE blobs b SET place = 'store' WHERE place = 'both'
   AND NOT EXISTS (SELECT FROM blob_chunks c WHERE c.blob_id = b.id)
"""
_DOOMED_IN_STORE = """
SELECT id FROM blobs WHERE owners = 0 AND state = 'doomed' AND store_until <= sexton_now_ms() LIMIT $1
"""
_REMOVED = "UPDATE blobs SET store_until = NULL WHERE id = ANY($1) AND owners = 0 AND state = 'doomed'"
_ROWS_OF = "SELECT id FROM blobs WHERE id = ANY($1)"


class PostgresBlobs(PostgresStore):
    async def open(
        self,
        blob_id: UUID,
        workspace_id: UUID,
        lease_id: UUID,
        *,
        sha256: bytes,
        size: int,
        quota: int | None,
    ) -> Blob | NoRoom:
        async def work(connection: Connection) -> Blob | NoRoom:
            # Two at once must not both find the last of the room.
            await connection.execute(_LOCK_WORKSPACE, workspace_id)
            known = BLOBS.maybe(await connection.fetchrow(_KNOWN, lease_id, sha256, size))
            if known is not None:
                return known
            used = await connection.fetchval(_USED, workspace_id)
            refused = decide.room(used, await connection.fetchval(_OF_LEASE, lease_id), size, quota)
            if refused is not None:
                return refused
            return BLOBS.many(await connection.fetch(_OPEN, blob_id, workspace_id, lease_id, sha256, size))[0]

        return await self._database.change(work)

    async def append(self, blob_id: UUID, offset: int, data: bytes) -> int | Misplaced:
        async def work(connection: Connection) -> int | Misplaced:
            # Should the machine fail, the parts that are lost are the last: settling flushes all before it.
            await connection.execute("SET LOCAL synchronous_commit TO off")
            blob = BLOBS.maybe(await connection.fetchrow(_LOCK, blob_id))
            received = decide.place(blob, offset, len(data))
            if blob is None or isinstance(received, Misplaced) or received == blob.received:
                return received
            await connection.execute(_CHUNKS, blob_id, offset // CHUNK_BYTES, chunks_of(data))
            await connection.execute(_RECEIVED, blob_id, received)
            return received

        return await self._database.change(work)

    async def settle(self, blob_id: UUID, *, intact: bool) -> bool:
        async def work(connection: Connection) -> bool:
            blob = BLOBS.maybe(await connection.fetchrow(_LOCK, blob_id))
            state = decide.settled(blob, intact=intact)
            if state is not None:
                await connection.execute(_SETTLED, blob_id, state)
            return state is not None

        return await self._database.change(work)

    async def close(self, blob_id: UUID, *, tail: bytes, sha256: bytes) -> Blob | None:
        async def work(connection: Connection) -> Blob | None:
            found = BLOBS.maybe(await connection.fetchrow(_LOAD, blob_id))
            if found is None:
                return None
            # As ``open`` does: of two who end the same content, the second finds the first one's.
            await connection.execute(_LOCK_WORKSPACE, found.workspace_id)
            blob = BLOBS.maybe(await connection.fetchrow(_LOCK, blob_id))
            size = found.received + len(tail)
            known = BLOBS.maybe(await connection.fetchrow(_KNOWN, found.lease_id, sha256, size))
            closing = decide.closed(blob, known, sha256, len(tail))
            if closing is None:
                return None
            if closing.doomed is not None:
                await connection.execute(_SETTLED, closing.doomed.id, BlobState.DOOMED)
            if closing.kept.id != blob_id:
                return closing.kept
            await connection.execute(_CHUNKS, blob_id, found.received // CHUNK_BYTES, chunks_of(tail))
            return BLOBS.maybe(await connection.fetchrow(_CLOSE, blob_id, sha256, size))

        return await self._database.change(work)

    async def give_up(self, blob_id: UUID) -> None:
        # Doomed twice is doomed: no mark is needed.
        await self._database.read(lambda c: c.execute(_GIVE_UP, blob_id))

    async def load(self, blob_id: UUID) -> Blob | None:
        return BLOBS.maybe(await self._row(_LOAD, blob_id))

    async def chunk(self, blob_id: UUID, number: int) -> bytes | None:
        content: bytes | None = await self._value(_CHUNK, blob_id, number)
        return content

    async def used(self, workspace_id: UUID) -> int:
        used: int = await self._value(_USED, workspace_id)
        return used

    async def held(self) -> tuple[int, int]:
        row = await self._row(_HELD)
        return (0, 0) if row is None else (row[0], row[1])

    async def sweep(self, *, limit: int) -> int:
        async def work(connection: Connection) -> int:
            await connection.execute(_DOOM, UNOWNED_KEEP_MS, DOOMED_AT_ONCE)
            done = await connection.execute(_SWEEP, limit)
            await connection.execute(_FORGET)
            return int(done.rsplit(" ", 1)[-1])

        # Deleting what is past keeping may be done twice: no mark is needed.
        return await self._database.read(work)

    async def claim_moves(self, *, limit: int, hold_ms: int) -> Sequence[Blob]:
        return BLOBS.many(await self._rows(_CLAIM_MOVES, limit, hold_ms))

    async def hold_move(self, blob_id: UUID, *, hold_ms: int) -> bool:
        return await self._value(_HOLD_MOVE, blob_id, hold_ms) is not None

    async def moved(self, blob_id: UUID) -> bool:
        # Once, whatever happens to the connection: done twice, the second time would find nothing to do.
        found = await self._database.change(lambda connection: connection.fetchval(_MOVED, blob_id))
        return found is not None

    async def to_move(self) -> ToMove:
        row = await self._row(_TO_MOVE)
        return ToMove() if row is None else ToMove(*row)

    async def clear_moved(self, *, limit: int) -> int:
        async def work(connection: Connection) -> int:
            done = await connection.execute(_CLEAR_MOVED, limit)
            await connection.execute(_CLEARED)
            return int(done.rsplit(" ", 1)[-1])

        # As in ``sweep``: to delete these twice is to delete them once.
        return await self._database.read(work)

    async def doomed_in_store(self, *, limit: int) -> Sequence[UUID]:
        return [row[0] for row in await self._rows(_DOOMED_IN_STORE, limit)]

    async def removed(self, blob_ids: Sequence[UUID]) -> None:
        await self._rows(_REMOVED, list(blob_ids))

    async def known(self, blob_ids: Sequence[UUID]) -> frozenset[UUID]:
        return frozenset(row[0] for row in await self._rows(_ROWS_OF, list(blob_ids)))
