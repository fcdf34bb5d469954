"""Workspaces: where a tenant's agents live."""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

import msgspec


class Workspace(msgspec.Struct, frozen=True, gc=False):
    id: UUID
    tenant_id: UUID
    name: str
    paused: bool
    created_at: int


class WorkspaceStore(Protocol):
    async def load(self, workspace_id: UUID) -> Workspace | None: ...
    async def list(self, tenant_id: UUID) -> Sequence[Workspace]: ...
    async def create(self, workspace: Workspace) -> None:
        """Raises NameTaken when the tenant has one of that name."""
        ...

    async def save(self, workspace: Workspace) -> bool:
        """Change the name and whether it is paused; False when there is none. Raises as ``create`` does."""
        ...
