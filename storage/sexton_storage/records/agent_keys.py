"""Keys of agents: each lets a program outside act for one agent, and for no other."""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

import msgspec


class AgentKey(msgspec.Struct, frozen=True, gc=False):
    """One key; it ends with its agent."""

    id: UUID
    tenant_id: UUID
    workspace_id: UUID
    zombie_id: UUID
    name: str
    description: str
    token_hash: bytes
    created_at: int
    last_used_at: int | None = None
    owner_id: UUID | None = None
    """The member whose key it is, and with whom it ends. None: the tenant's."""


class AgentKeyStore(Protocol):
    async def find_by_hash(self, token_hash: bytes) -> AgentKey | None: ...
    async def load(self, workspace_id: UUID, key_id: UUID) -> AgentKey | None: ...
    async def create(self, key: AgentKey) -> bool:
        """False, and nothing is made, when there is no such agent.

        Raises NameTaken when the agent has a key of that name.
        """
        ...

    async def list(
        self, workspace_id: UUID, *, zombie_id: UUID | None, page: int, page_size: int
    ) -> tuple[Sequence[AgentKey], int]:
        """Newest first, with the number of all."""
        ...

    async def delete(self, workspace_id: UUID, key_id: UUID) -> bool:
        """False when there was none."""
        ...

    async def touch(self, used: Sequence[tuple[UUID, int]]) -> None:
        """Move ``last_used_at`` forward for many keys at once."""
        ...
