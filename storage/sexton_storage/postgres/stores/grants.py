"""Integration grants, in PostgreSQL."""

from collections.abc import Sequence
from uuid import UUID

from sexton_storage.documents import storable
from sexton_storage.paging import Page
from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.connections.database import Database
from sexton_storage.postgres.journal.frames import News, NumberedFrames
from sexton_storage.postgres.journal.journal import PostgresJournal
from sexton_storage.postgres.sql.rows import Rows
from sexton_storage.postgres.stores.agent_lock import Hold, lock_agent
from sexton_storage.postgres.stores.base import Conditions, PostgresStore
from sexton_storage.records.frames import NewFrame
from sexton_storage.records.grants import Grant, GrantStatus
from sexton_storage.records.leases import LeaseToken
from sexton_storage.refusals import FENCED, FULL, GONE, STALE, Lost
from sexton_storage.terms import GRANTS_LIMIT

GRANTS = Rows(Grant)
_SELECT = f"SELECT {GRANTS.columns()} FROM grants"
_ADD = f"{GRANTS.insert('grants')} ON CONFLICT DO NOTHING RETURNING id"
_SAVE = """
UPDATE grants SET version = $2, reason = $3, status = $4, requested_at = $5, requested_by = $6,
                  decided_at = $7, decided_by = $8
 WHERE id = $1 AND version = $2 - 1 RETURNING id
"""


class PostgresGrants(PostgresStore):
    """Saves lock the agent's head first, as the journal's batches do."""

    def __init__(self, database: Database, journal: PostgresJournal) -> None:
        super().__init__(database)
        self._journal = journal

    async def load(self, grant_id: UUID) -> Grant | None:
        return GRANTS.maybe(await self._row(f"{_SELECT} WHERE id = $1", grant_id))

    async def find(self, zombie_id: UUID, service: str) -> Grant | None:
        return GRANTS.maybe(
            await self._row(f"{_SELECT} WHERE zombie_id = $1 AND service = $2", zombie_id, service)
        )

    async def of_zombie(self, zombie_id: UUID) -> Sequence[Grant]:
        query = f'{_SELECT} WHERE zombie_id = $1 ORDER BY service COLLATE "C"'
        return GRANTS.many(await self._rows(query, zombie_id))

    async def list(
        self,
        workspace_id: UUID,
        *,
        limit: int,
        before: Page | None = None,
        zombie_id: UUID | None = None,
        status: GrantStatus | None = None,
    ) -> Sequence[Grant]:
        where = Conditions("workspace_id = $1", workspace_id)
        if zombie_id is not None:
            where.add("zombie_id = {}", zombie_id)
        if status is not None:
            where.add("status = {}", status)
        if before is not None:
            where.add("(created_at, id) < ({}, {})", before.created_at, before.id)
        query = f"{_SELECT} WHERE {where} ORDER BY created_at DESC, id DESC LIMIT {int(limit)}"
        return GRANTS.many(await self._rows(query, *where.args))

    async def save(
        self, grant: Grant, frames: Sequence[NewFrame], held: LeaseToken | None = None
    ) -> Lost | None:
        async def work(connection: Connection) -> tuple[Lost | None, News]:
            lost = await _save(connection, grant, held)
            if lost is not None:
                return lost, ()
            numbered = NumberedFrames()
            numbered.add(0, frames)
            return None, await numbered.save(connection)

        lost, news = await self._database.change(work)
        self._journal.announce(news)
        return lost


async def _save(connection: Connection, grant: Grant, held: LeaseToken | None) -> Lost | None:
    match await lock_agent(connection, grant.zombie_id, held):
        case Hold.GONE:
            return Lost(GONE)
        case Hold.LOST:
            return Lost(FENCED)
        case Hold.HELD:
            return await (_add(connection, grant) if grant.version == 1 else _change(connection, grant))


async def _add(connection: Connection, grant: Grant) -> Lost | None:
    count = await connection.fetchval("SELECT count(*) FROM grants WHERE zombie_id = $1", grant.zombie_id)
    if count < GRANTS_LIMIT:
        added = await connection.fetchval(_ADD, *GRANTS.values(grant))
        return None if added is not None else Lost(STALE)
    query = "SELECT true FROM grants WHERE zombie_id = $1 AND service = $2"
    return Lost(STALE if await connection.fetchval(query, grant.zombie_id, grant.service) else FULL)


async def _change(connection: Connection, grant: Grant) -> Lost | None:
    saved = await connection.fetchval(
        _SAVE,
        grant.id,
        grant.version,
        storable(grant.reason),
        grant.status,
        grant.requested_at,
        grant.requested_by,
        grant.decided_at,
        grant.decided_by,
    )
    return None if saved is not None else Lost(STALE)
