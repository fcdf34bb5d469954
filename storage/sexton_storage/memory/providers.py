"""Tenants' providers and the platform's keys in memory."""

from collections.abc import Sequence
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.memory.base import MemoryStore
from sexton_storage.records.providers import PlatformKey, TenantProvider


class MemoryProviders(MemoryStore):
    async def load(self, tenant_id: UUID) -> TenantProvider | None:
        await self._round_trip()
        return self._tables.tenant_providers.get(tenant_id)

    async def put(self, provider: TenantProvider) -> None:
        await self._round_trip()
        self._tables.tenant_providers[provider.tenant_id] = provider

    async def delete(self, tenant_id: UUID) -> bool:
        await self._round_trip()
        return self._tables.tenant_providers.pop(tenant_id, None) is not None

    async def platform_keys(self, tenant_id: UUID) -> Sequence[PlatformKey]:
        await self._round_trip()
        mine = (key for key in self._tables.platform_keys.values() if key.tenant_id == tenant_id)
        return sorted(mine, key=lambda key: key.provider)

    async def lent_keys(self, tenant_id: UUID) -> Sequence[PlatformKey]:
        await self._round_trip()
        keys = self._tables.platform_keys.values()
        lent = {key.provider: key for key in keys if key.shared}
        lent |= {key.provider: key for key in keys if key.tenant_id == tenant_id}
        return sorted(lent.values(), key=lambda key: key.provider)

    async def put_platform_key(self, key: PlatformKey) -> None:
        await self._round_trip()
        for place, other in list(self._tables.platform_keys.items()):
            if key.shared and other.shared and other.provider == key.provider:
                self._tables.platform_keys[place] = replace(other, shared=False)
        self._tables.platform_keys[key.tenant_id, key.provider] = key

    async def delete_platform_key(self, tenant_id: UUID, provider: str) -> bool:
        await self._round_trip()
        return self._tables.platform_keys.pop((tenant_id, provider), None) is not None
