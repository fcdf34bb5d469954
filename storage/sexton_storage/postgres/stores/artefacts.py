"""The files that runs leave, in PostgreSQL."""

from collections.abc import Sequence
from uuid import UUID

from sexton_storage.decisions import artefacts as decide
from sexton_storage.paging import Page
from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.sql.rows import Rows
from sexton_storage.postgres.stores.agent_lock import Hold, lock_agent
from sexton_storage.postgres.stores.base import PostgresStore
from sexton_storage.postgres.stores.blobs import BLOBS
from sexton_storage.records.artefacts import Artefact, NotKept
from sexton_storage.records.leases import LeaseToken

ARTEFACTS = Rows(Artefact)
_KNOWN = f"SELECT {ARTEFACTS.columns()} FROM artefacts WHERE event_id = $1 AND attempt = $2 AND name = $3"
_OF_ATTEMPT = "SELECT count(*) FROM artefacts WHERE event_id = $1 AND attempt = $2"
_BLOB = f"SELECT {BLOBS.columns()} FROM blobs WHERE id = $1"
_LIST = f"""
SELECT {ARTEFACTS.columns()} FROM artefacts WHERE event_id = $1 AND (created_at, id) > ($2, $3)
 ORDER BY created_at, id LIMIT $4
"""
_LOAD = f"SELECT {ARTEFACTS.columns()} FROM artefacts WHERE id = $1"
_DELETE = "DELETE FROM artefacts WHERE id = $1 AND workspace_id = $2 RETURNING true"
_PRUNE = """
DELETE FROM artefacts WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM artefacts WHERE created_at <= sexton_now_ms() - $1 LIMIT $2))
"""


class PostgresArtefacts(PostgresStore):
    async def keep(self, artefact: Artefact, held: LeaseToken) -> Artefact | NotKept:
        async def work(connection: Connection) -> Artefact | NotKept:
            # Whoever would count the attempt's files or claim the agent waits for this lock.
            hold = await lock_agent(connection, artefact.zombie_id, held)
            attempt = artefact.event_id, artefact.attempt
            known = await connection.fetchrow(_KNOWN, *attempt, artefact.name)
            kept = decide.keep(
                artefact,
                ARTEFACTS.maybe(known),
                BLOBS.maybe(await connection.fetchrow(_BLOB, artefact.blob_id)),
                await connection.fetchval(_OF_ATTEMPT, *attempt),
                held=hold is Hold.HELD,
            )
            if kept is artefact:
                await connection.execute(ARTEFACTS.insert("artefacts"), *ARTEFACTS.values(artefact))
            return kept

        return await self._database.change(work)

    async def list(self, event_id: UUID, *, after: Page | None, limit: int) -> Sequence[Artefact]:
        place = after or Page(-1, UUID(int=0))
        return ARTEFACTS.many(await self._rows(_LIST, event_id, place.created_at, place.id, limit))

    async def load(self, artefact_id: UUID) -> Artefact | None:
        return ARTEFACTS.maybe(await self._row(_LOAD, artefact_id))

    async def delete(self, workspace_id: UUID, artefact_id: UUID) -> bool:
        return bool(await self._database.change(lambda c: c.fetchval(_DELETE, artefact_id, workspace_id)))

    async def prune(self, *, keep_ms: int, limit: int) -> int:
        # Deleting what is past keeping may be done twice: no mark is needed.
        done = await self._database.read(lambda c: c.execute(_PRUNE, keep_ms, limit))
        return int(done.rsplit(" ", 1)[-1])
