"""Workspaces in PostgreSQL."""

from collections.abc import Sequence
from uuid import UUID

from sexton_storage.errors import NameTaken
from sexton_storage.postgres.sql.schema import WORKSPACES
from sexton_storage.postgres.stores.base import PostgresStore
from sexton_storage.records.workspaces import Workspace

WORKSPACE_NAMES = {"workspaces_name_taken": NameTaken}


class PostgresWorkspaces(PostgresStore):
    async def load(self, workspace_id: UUID) -> Workspace | None:
        query = f"SELECT {WORKSPACES.columns()} FROM workspaces WHERE id = $1"
        return WORKSPACES.maybe(await self._row(query, workspace_id))

    async def list(self, tenant_id: UUID) -> Sequence[Workspace]:
        query = f"SELECT {WORKSPACES.columns()} FROM workspaces WHERE tenant_id = $1 ORDER BY created_at, id"
        return WORKSPACES.many(await self._rows(query, tenant_id))

    async def create(self, workspace: Workspace) -> None:
        values = WORKSPACES.values(workspace)
        await self._database.change(
            lambda c: c.execute(WORKSPACES.insert("workspaces"), *values), WORKSPACE_NAMES
        )

    async def save(self, workspace: Workspace) -> bool:
        query = "UPDATE workspaces SET name = $2, paused = $3 WHERE id = $1 RETURNING id"
        args = (workspace.id, workspace.name, workspace.paused)
        saved = await self._database.change(lambda c: c.fetchval(query, *args), WORKSPACE_NAMES)
        return saved is not None
