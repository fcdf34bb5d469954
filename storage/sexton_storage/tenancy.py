"""What the stores of a tenant's own records promise: its money, workspaces, people, keys and secrets."""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from sexton_storage.records import ApiKey, Credential, Tenant, User, Workspace


class TenantStore(Protocol):
    async def create(self, tenant: Tenant, workspace: Workspace, user: User) -> None:
        """Make a tenant with its first workspace and user, in one commit.

        NameTaken when the subject has one.
        """
        ...

    async def load(self, tenant_id: UUID) -> Tenant | None: ...
    async def credit(
        self, tenant_id: UUID, amount_nanos: int, reason: str, actor: str, *, credit_id: UUID | None = None
    ) -> Tenant | None:
        """Add to the balance and free the events that waited for it.

        A ``credit_id`` that was credited before adds nothing more. Negative amounts are refused (ValueError).
        """
        ...

    async def set_unlimited(self, tenant_id: UUID, *, unlimited: bool) -> Tenant | None:
        """Say whether its balance stops it; frees the events that waited for credit when it does not."""
        ...


class WorkspaceStore(Protocol):
    async def load(self, workspace_id: UUID) -> Workspace | None: ...
    async def list(self, tenant_id: UUID) -> Sequence[Workspace]: ...
    async def create(self, workspace: Workspace) -> None:
        """Raises NameTaken when the tenant has one of that name."""
        ...

    async def save(self, workspace: Workspace) -> bool:
        """Its name and whether it is paused; False when there is none. Raises NameTaken as ``create``."""
        ...


class UserStore(Protocol):
    async def load(self, user_id: UUID) -> User | None: ...
    async def find_by_subject(self, subject: str) -> User | None: ...


class ApiKeyStore(Protocol):
    async def find_by_hash(self, token_hash: bytes) -> ApiKey | None:
        """Also finds revoked ones, so that they can be told from unknown ones."""
        ...

    async def create(self, key: ApiKey) -> None:
        """Raises NameTaken when the tenant has a key of that name."""
        ...

    async def list(
        self, tenant_id: UUID, *, page: int, page_size: int, sort: str
    ) -> tuple[Sequence[ApiKey], int]: ...
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


class CredentialStore(Protocol):
    """Sealed bytes only: sealing and opening are the vault's (``sexton_storage.vault``)."""

    async def put(self, credential: Credential) -> None:
        """Create or replace; a replaced one keeps its ``created_at``."""
        ...

    async def load(self, workspace_id: UUID, name: str) -> Credential | None: ...
    async def list(self, workspace_id: UUID) -> Sequence[Credential]:
        """By name; ``sealed`` is empty in a listing."""
        ...

    async def delete(self, workspace_id: UUID, name: str) -> bool: ...
    async def sealed_before(
        self, version: int, *, after: tuple[UUID, str] | None, limit: int
    ) -> Sequence[Credential]:
        """Those that an older master key sealed, by workspace and name."""
        ...

    async def reseal(self, credential: Credential, sealed: bytes) -> bool:
        """Put ``sealed`` in the place of what the credential has; False when it was replaced meanwhile."""
        ...

    async def count_by_key(self) -> dict[int, int]:
        """How many each version of the master key has sealed."""
        ...
