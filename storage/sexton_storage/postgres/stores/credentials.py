"""Credentials in PostgreSQL."""

from collections.abc import Sequence
from uuid import UUID

from sexton_storage.postgres.sql.schema import CREDENTIALS
from sexton_storage.postgres.stores.base import Conditions, PostgresStore
from sexton_storage.records.credentials import Credential

_PUT = f"""
{CREDENTIALS.insert("credentials")}
ON CONFLICT (workspace_id, name) DO UPDATE SET sealed = excluded.sealed, updated_at = excluded.updated_at,
    hosts = excluded.hosts, uses = excluded.uses
"""
_KEY_VERSION = "substring(sealed from 2 for 4)"
_RESEAL = """
UPDATE credentials SET sealed = $4 WHERE workspace_id = $1 AND name = $2 AND sealed = $3 RETURNING true
"""


class PostgresCredentials(PostgresStore):
    async def put(self, credential: Credential) -> None:
        values = CREDENTIALS.values(credential)
        await self._database.change(lambda c: c.execute(_PUT, *values))

    async def load(self, workspace_id: UUID, name: str) -> Credential | None:
        query = f"SELECT {CREDENTIALS.columns()} FROM credentials WHERE workspace_id = $1 AND name = $2"
        return CREDENTIALS.maybe(await self._row(query, workspace_id, name))

    async def list(self, workspace_id: UUID, *, limit: int, after: str | None = None) -> Sequence[Credential]:
        where = Conditions("workspace_id = $1 AND position('/' in name) = 0", workspace_id)
        if after is not None:
            where.add('name COLLATE "C" > {}', after)
        query = (
            "SELECT workspace_id, name, ''::bytea, created_at, updated_at, hosts, uses FROM credentials"
            f' WHERE {where} ORDER BY name COLLATE "C" LIMIT {int(limit)}'
        )
        return CREDENTIALS.many(await self._rows(query, *where.args))

    async def delete(self, workspace_id: UUID, name: str) -> bool:
        query = "DELETE FROM credentials WHERE workspace_id = $1 AND name = $2 RETURNING name"
        return await self._database.change(lambda c: c.fetchval(query, workspace_id, name)) is not None

    async def sealed_before(
        self, version: int, *, after: tuple[UUID, str] | None, limit: int
    ) -> Sequence[Credential]:
        where = Conditions(f"{_KEY_VERSION} < $1", version.to_bytes(4))
        if after is not None:
            where.add("(workspace_id, name) > ({}, {})", *after)
        query = (
            f"SELECT {CREDENTIALS.columns()} FROM credentials WHERE {where}"
            f" ORDER BY workspace_id, name LIMIT {int(limit)}"
        )
        return CREDENTIALS.many(await self._rows(query, *where.args))

    async def reseal(self, credential: Credential, sealed: bytes) -> bool:
        args = (credential.workspace_id, credential.name, credential.sealed, sealed)
        # What was resealed may be found so: to do it twice is to do it once, and no mark is needed.
        return bool(await self._database.read(lambda c: c.fetchval(_RESEAL, *args)))

    async def count_by_key(self) -> dict[int, int]:
        query = f"SELECT {_KEY_VERSION}, count(*) FROM credentials GROUP BY 1"
        return {int.from_bytes(row[0]): row[1] for row in await self._rows(query)}
