"""The files that events bring, in PostgreSQL."""

from collections.abc import Sequence
from uuid import UUID

from sexton_storage.decisions import event_files as decide
from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.sql.rows import Rows
from sexton_storage.postgres.stores.artefacts import ARTEFACTS
from sexton_storage.postgres.stores.base import PostgresStore
from sexton_storage.postgres.stores.blobs import BLOBS
from sexton_storage.records.artefacts import Artefact
from sexton_storage.records.blobs import UNOWNED_KEEP_MS
from sexton_storage.records.event_files import EventFile, Missing, NewFiles, WantedFile

FILES = Rows(EventFile)
_LEFT = f"""
SELECT {ARTEFACTS.columns()} FROM artefacts WHERE event_id = $1 AND name = $2 AND workspace_id = $3
 ORDER BY attempt DESC LIMIT 1
"""
# Always in this order, so that two who want the same contents do not wait for each other.
_BLOBS = f"SELECT {BLOBS.columns()} FROM blobs WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE"
_LIST = f"SELECT {FILES.columns()} FROM event_files WHERE event_id = $1 ORDER BY number"
_LOAD = f"SELECT {FILES.columns()} FROM event_files WHERE event_id = $1 AND number = $2"
_LOCK_OF = """
SELECT id FROM blobs WHERE id IN (SELECT blob_id FROM event_files WHERE event_id = $1)
 ORDER BY id FOR NO KEY UPDATE
"""
_COPY = """
INSERT INTO event_files (
    event_id, number, zombie_id, workspace_id, name, media_type, blob_id, sha256, size, created_at)
SELECT $2, number, zombie_id, workspace_id, name, media_type, blob_id, sha256, size, sexton_now_ms()
  FROM event_files WHERE event_id = $1
    ON CONFLICT (event_id, number) DO NOTHING
"""
_DROP = "DELETE FROM event_files WHERE event_id = $1 AND NOT EXISTS (SELECT FROM events WHERE id = $1)"
_PRUNE = """
DELETE FROM event_files WHERE ctid = ANY(ARRAY(
    SELECT f.ctid FROM event_files f LEFT JOIN events e ON e.id = f.event_id
     WHERE f.created_at <= sexton_now_ms() - least($1::bigint, $2::bigint)
       AND CASE WHEN e.id IS NULL THEN f.created_at <= sexton_now_ms() - $1::bigint
                ELSE e.completed_at IS NOT NULL AND f.created_at <= sexton_now_ms() - $2::bigint END
     LIMIT $3))
"""


class PostgresEventFiles(PostgresStore):
    async def bring(self, new: NewFiles, wanted: Sequence[WantedFile]) -> Sequence[EventFile] | Missing:
        async def work(connection: Connection) -> Sequence[EventFile] | Missing:
            left = [await _left(connection, new, one) for one in wanted]
            named = {one.upload_id for one in wanted if one.upload_id is not None}
            named |= {one.blob_id for one in left if one is not None}
            blobs = {one.id: one for one in BLOBS.many(await connection.fetch(_BLOBS, list(named)))}
            files = decide.bring(new, wanted, left, blobs)
            if not isinstance(files, Missing):
                await connection.execute(FILES.insert_many("event_files"), *FILES.arrays(files))
            return files

        return await self._database.change(work)

    async def copy(self, source_id: UUID, event_id: UUID) -> Sequence[EventFile]:
        async def work(connection: Connection) -> Sequence[EventFile]:
            await connection.execute(_LOCK_OF, source_id)
            await connection.execute(_COPY, source_id, event_id)
            return FILES.many(await connection.fetch(_LIST, event_id))

        return await self._database.change(work)

    async def list(self, event_id: UUID) -> Sequence[EventFile]:
        return FILES.many(await self._rows(_LIST, event_id))

    async def load(self, event_id: UUID, number: int) -> EventFile | None:
        return FILES.maybe(await self._row(_LOAD, event_id, number))

    async def drop(self, event_id: UUID) -> None:
        # Deleting twice deletes the same, so it needs no mark.
        await self._database.read(lambda c: c.execute(_DROP, event_id))

    async def prune(self, *, keep_ms: int, limit: int) -> int:
        # Deleting what is past keeping may be done twice: no mark is needed.
        done = await self._database.read(lambda c: c.execute(_PRUNE, UNOWNED_KEEP_MS, keep_ms, limit))
        return int(done.rsplit(" ", 1)[-1])


async def _left(connection: Connection, new: NewFiles, wanted: WantedFile) -> Artefact | None:
    if wanted.event_id is None:
        return None
    found = await connection.fetchrow(_LEFT, wanted.event_id, wanted.name, new.workspace_id)
    return ARTEFACTS.maybe(found)
