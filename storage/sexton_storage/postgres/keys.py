"""API keys and credentials in PostgreSQL."""

from collections.abc import Sequence
from uuid import UUID

from sexton_storage.paging import API_KEY_SORTS, sort_key
from sexton_storage.postgres.base import Conditions, PostgresStore
from sexton_storage.postgres.schema import API_KEYS, CREDENTIALS
from sexton_storage.records import ApiKey, Credential
from sexton_storage.stores import NameTaken

KEY_NAMES = {"api_keys_name_taken": NameTaken}
_TOUCH = """
UPDATE api_keys k SET last_used_at = greatest(k.last_used_at, v.at)
  FROM (SELECT id, max(at) AS at FROM unnest($1::uuid[], $2::bigint[]) AS u(id, at) GROUP BY id) v
 WHERE k.id = v.id AND v.at > coalesce(k.last_used_at, 0)
"""
_PUT = f"""
{CREDENTIALS.insert("credentials")}
ON CONFLICT (workspace_id, name) DO UPDATE SET sealed = excluded.sealed, updated_at = excluded.updated_at,
    hosts = excluded.hosts
"""

_KEY_VERSION = "substring(sealed from 2 for 4)"
_RESEAL = """
UPDATE credentials SET sealed = $4 WHERE workspace_id = $1 AND name = $2 AND sealed = $3 RETURNING true
"""


class PostgresApiKeys(PostgresStore):
    async def find_by_hash(self, token_hash: bytes) -> ApiKey | None:
        query = f"SELECT {API_KEYS.columns()} FROM api_keys WHERE token_hash = $1"
        return API_KEYS.maybe(await self._row(query, token_hash))

    async def create(self, key: ApiKey) -> None:
        values = API_KEYS.values(key)
        await self._database.change(lambda c: c.execute(API_KEYS.insert("api_keys"), *values), KEY_NAMES)

    async def list(
        self, tenant_id: UUID, *, page: int, page_size: int, sort: str
    ) -> tuple[Sequence[ApiKey], int]:
        field, descends = sort_key(sort, API_KEY_SORTS)
        way = "DESC" if descends else "ASC"
        query = (
            f"SELECT {API_KEYS.columns()} FROM api_keys WHERE tenant_id = $1"
            f" ORDER BY {field} {way}, id {way} LIMIT $2 OFFSET $3"
        )
        rows = await self._rows(query, tenant_id, page_size, (page - 1) * page_size)
        total = await self._value("SELECT count(*) FROM api_keys WHERE tenant_id = $1", tenant_id)
        return API_KEYS.many(rows), total

    async def load(self, tenant_id: UUID, key_id: UUID) -> ApiKey | None:
        query = f"SELECT {API_KEYS.columns()} FROM api_keys WHERE tenant_id = $1 AND id = $2"
        return API_KEYS.maybe(await self._row(query, tenant_id, key_id))

    async def revoke(self, tenant_id: UUID, key_id: UUID, now: int) -> ApiKey | None:
        query = (
            "UPDATE api_keys SET revoked_at = coalesce(revoked_at, $3) WHERE tenant_id = $1 AND id = $2"
            f" RETURNING {API_KEYS.columns()}"
        )
        return API_KEYS.maybe(
            await self._database.change(lambda c: c.fetchrow(query, tenant_id, key_id, now))
        )

    async def delete(self, tenant_id: UUID, key_id: UUID) -> bool:
        query = (
            "DELETE FROM api_keys WHERE tenant_id = $1 AND id = $2 AND revoked_at IS NOT NULL RETURNING id"
        )
        deleted = await self._database.change(lambda c: c.fetchval(query, tenant_id, key_id))
        return deleted is not None

    async def touch(self, used: Sequence[tuple[UUID, int]]) -> None:
        # Moving a time forward twice is moving it once: no transaction with a mark is needed.
        ids, times = [key_id for key_id, _ in used], [at for _, at in used]
        await self._database.read(lambda c: c.execute(_TOUCH, ids, times))


class PostgresCredentials(PostgresStore):
    async def put(self, credential: Credential) -> None:
        values = CREDENTIALS.values(credential)
        await self._database.change(lambda c: c.execute(_PUT, *values))

    async def load(self, workspace_id: UUID, name: str) -> Credential | None:
        query = f"SELECT {CREDENTIALS.columns()} FROM credentials WHERE workspace_id = $1 AND name = $2"
        return CREDENTIALS.maybe(await self._row(query, workspace_id, name))

    async def list(self, workspace_id: UUID) -> Sequence[Credential]:
        query = (
            "SELECT workspace_id, name, ''::bytea, created_at, updated_at, hosts FROM credentials"
            ' WHERE workspace_id = $1 ORDER BY name COLLATE "C"'
        )
        return CREDENTIALS.many(await self._rows(query, workspace_id))

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
