"""API keys in PostgreSQL."""

from collections.abc import Sequence
from uuid import UUID

from sexton_storage.errors import NameTaken
from sexton_storage.paging import API_KEY_SORTS, sort_key
from sexton_storage.postgres.sql.schema import API_KEYS
from sexton_storage.postgres.stores.base import Conditions, PostgresStore
from sexton_storage.records.api_keys import ApiKey

KEY_NAMES = {"api_keys_name_taken": NameTaken}


class PostgresApiKeys(PostgresStore):
    async def find_by_hash(self, token_hash: bytes) -> ApiKey | None:
        query = f"SELECT {API_KEYS.columns()} FROM api_keys WHERE token_hash = $1"
        return API_KEYS.maybe(await self._row(query, token_hash))

    async def create(self, key: ApiKey) -> None:
        values = API_KEYS.values(key)
        await self._database.change(lambda c: c.execute(API_KEYS.insert("api_keys"), *values), KEY_NAMES)

    async def list(
        self, tenant_id: UUID, *, page: int, page_size: int, sort: str, owner_id: UUID | None = None
    ) -> tuple[Sequence[ApiKey], int]:
        field, descends = sort_key(sort, API_KEY_SORTS)
        way = "DESC" if descends else "ASC"
        where = Conditions("tenant_id = $1", tenant_id)
        if owner_id is not None:
            where.add("owner_id = {}", owner_id)
        order = f"{field} {way}, id {way}"
        return await self._page(API_KEYS, "api_keys", where, order, page=page, page_size=page_size)

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
        await self._move_on("api_keys", "last_used_at", used)
