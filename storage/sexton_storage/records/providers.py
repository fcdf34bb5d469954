"""The model and key that a tenant's runs use: what it chose, and what the platform lends."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol
from uuid import UUID

import msgspec


class ProviderMode(StrEnum):
    PLATFORM = "platform"
    """The platform's key; its tokens are billed."""
    SELF_MANAGED = "self_managed"
    """The tenant's own key."""


class TenantProvider(msgspec.Struct, frozen=True, gc=False):
    """What the tenant's runs use where their agents and workspaces say nothing else."""

    tenant_id: UUID
    mode: ProviderMode
    provider: str
    model: str
    context_cap_tokens: int
    credential_ref: str | None
    """Name of the vault's credential with the key; of a self-managed one."""
    credential_workspace_id: UUID | None
    """The workspace whose vault holds it."""
    updated_at: int


class PlatformKey(msgspec.Struct, frozen=True, gc=False):
    """The workspace whose vault lends the platform's key of one provider."""

    tenant_id: UUID
    provider: str
    source_workspace_id: UUID
    shared: bool
    """Lent to tenants, too, that have no entry of their own; one for each provider."""
    updated_at: int


class ProviderStore(Protocol):
    async def load(self, tenant_id: UUID) -> TenantProvider | None: ...
    async def put(self, provider: TenantProvider) -> None:
        """Create or replace."""
        ...

    async def delete(self, tenant_id: UUID) -> bool: ...
    async def platform_keys(self, tenant_id: UUID) -> Sequence[PlatformKey]:
        """The tenant's own entries, by provider."""
        ...

    async def lent_keys(self, tenant_id: UUID) -> Sequence[PlatformKey]:
        """What serves the tenant, by provider: its own entries, and the shared ones of other providers."""
        ...

    async def put_platform_key(self, key: PlatformKey) -> None:
        """Create or replace the tenant's entry; a shared one takes the place of whichever was shared."""
        ...

    async def delete_platform_key(self, tenant_id: UUID, provider: str) -> bool: ...
