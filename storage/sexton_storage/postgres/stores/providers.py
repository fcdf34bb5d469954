"""Tenants' providers and the platform's keys in PostgreSQL."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.sql.rows import Rows
from sexton_storage.postgres.stores.base import PostgresStore
from sexton_storage.records.providers import PlatformKey, TenantProvider

PROVIDERS: Final = Rows(TenantProvider)
KEYS: Final = Rows(PlatformKey)
_PUT = f"""
{PROVIDERS.insert("tenant_providers")}
ON CONFLICT (tenant_id) DO UPDATE
   SET {", ".join(f"{name} = excluded.{name}" for name in PROVIDERS.names if name != "tenant_id")}
"""
_ONE_BY_ONE = "SELECT pg_advisory_xact_lock(hashtextextended('platform_keys:' || $1, 0))"
_UNSHARE = "UPDATE platform_keys SET shared = false WHERE provider = $1 AND shared AND tenant_id <> $2"
_PUT_KEY = f"""
{KEYS.insert("platform_keys")}
ON CONFLICT (tenant_id, provider) DO UPDATE
   SET source_workspace_id = excluded.source_workspace_id, shared = excluded.shared,
       updated_at = excluded.updated_at
"""
_LENT = f"""
SELECT DISTINCT ON (provider) {KEYS.columns()} FROM platform_keys
 WHERE tenant_id = $1 OR shared ORDER BY provider, tenant_id = $1 DESC
"""


class PostgresProviders(PostgresStore):
    async def load(self, tenant_id: UUID) -> TenantProvider | None:
        query = f"SELECT {PROVIDERS.columns()} FROM tenant_providers WHERE tenant_id = $1"
        return PROVIDERS.maybe(await self._row(query, tenant_id))

    async def put(self, provider: TenantProvider) -> None:
        values = PROVIDERS.values(provider)
        await self._database.change(lambda c: c.execute(_PUT, *values))

    async def delete(self, tenant_id: UUID) -> bool:
        query = "DELETE FROM tenant_providers WHERE tenant_id = $1 RETURNING true"
        return bool(await self._database.change(lambda c: c.fetchval(query, tenant_id)))

    async def platform_keys(self, tenant_id: UUID) -> Sequence[PlatformKey]:
        query = f"SELECT {KEYS.columns()} FROM platform_keys WHERE tenant_id = $1 ORDER BY provider"
        return _sorted(KEYS.many(await self._rows(query, tenant_id)))

    async def lent_keys(self, tenant_id: UUID) -> Sequence[PlatformKey]:
        return _sorted(KEYS.many(await self._rows(_LENT, tenant_id)))

    async def put_platform_key(self, key: PlatformKey) -> None:
        async def work(connection: Connection) -> None:
            if key.shared:
                # Of two that are shared at once, the second finds what the first has kept.
                await connection.execute(_ONE_BY_ONE, key.provider)
                await connection.execute(_UNSHARE, key.provider, key.tenant_id)
            await connection.execute(_PUT_KEY, *KEYS.values(key))

        await self._database.change(work)

    async def delete_platform_key(self, tenant_id: UUID, provider: str) -> bool:
        query = "DELETE FROM platform_keys WHERE tenant_id = $1 AND provider = $2 RETURNING true"
        return bool(await self._database.change(lambda c: c.fetchval(query, tenant_id, provider)))


def _sorted(keys: list[PlatformKey]) -> list[PlatformKey]:
    """By code point: the database may collate otherwise."""
    return sorted(keys, key=lambda key: key.provider)
