"""What folders have applied to workspaces, in memory."""

from uuid import UUID

from msgspec.structs import replace

from sexton_storage.documents import copied
from sexton_storage.memory.base import MemoryStore
from sexton_storage.records.applied import Applied


class MemoryApplied(MemoryStore):
    async def load(self, workspace_id: UUID) -> Applied | None:
        await self._round_trip()
        return self._tables.applied.get(workspace_id)

    async def save(self, applied: Applied) -> bool:
        await self._round_trip()
        kept = self._tables.applied.get(applied.workspace_id)
        if applied.revision != (0 if kept is None else kept.revision) + 1:
            return False
        self._tables.applied[applied.workspace_id] = replace(applied, items=copied(applied.items))
        return True
