"""API keys of tenants."""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

import msgspec

from sexton_storage.records.users import Rank, Role


class ApiKey(msgspec.Struct, frozen=True, gc=False):
    id: UUID
    tenant_id: UUID
    key_name: str
    description: str
    role: Role
    token_hash: bytes
    created_at: int
    last_used_at: int | None = None
    revoked_at: int | None = None
    platform_admin: bool = False
    expires_at: int | None = None
    """None: it lasts until it is revoked."""
    owner_id: UUID | None = None
    """The member whose key it is, and with whom it ends. None: the tenant's."""

    @property
    def rank(self) -> Rank:
        return Rank(self.role, self.platform_admin)


class ApiKeyStore(Protocol):
    async def find_by_hash(self, token_hash: bytes) -> ApiKey | None:
        """Also finds revoked ones, so that they can be told from unknown ones."""
        ...

    async def create(self, key: ApiKey) -> None:
        """Raises NameTaken when the tenant has a key of that name."""
        ...

    async def list(
        self, tenant_id: UUID, *, page: int, page_size: int, sort: str, owner_id: UUID | None = None
    ) -> tuple[Sequence[ApiKey], int]:
        """With the number of all; ``owner_id`` None: everybody's."""
        ...

    async def load(self, tenant_id: UUID, key_id: UUID) -> ApiKey | None: ...
    async def revoke(self, tenant_id: UUID, key_id: UUID, now: int) -> ApiKey | None:
        """None when there is no such key; a revoked one keeps its first ``revoked_at``."""
        ...

    async def delete(self, tenant_id: UUID, key_id: UUID) -> bool:
        """Only a revoked key is deleted; False when nothing was."""
        ...

    async def touch(self, used: Sequence[tuple[UUID, int]]) -> None:
        """Move ``last_used_at`` forward for many keys at once."""
        ...
