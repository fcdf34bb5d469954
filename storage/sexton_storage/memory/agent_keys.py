"""Keys of agents, in memory."""

from collections.abc import Sequence
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.documents import storable
from sexton_storage.errors import NameTaken
from sexton_storage.memory.base import MemoryStore, page_of
from sexton_storage.records.agent_keys import AgentKey


class MemoryAgentKeys(MemoryStore):
    async def find_by_hash(self, token_hash: bytes) -> AgentKey | None:
        await self._round_trip()
        return next((k for k in self._tables.agent_keys.values() if k.token_hash == token_hash), None)

    async def load(self, workspace_id: UUID, key_id: UUID) -> AgentKey | None:
        await self._round_trip()
        key = self._tables.agent_keys.get(key_id)
        return key if key is not None and key.workspace_id == workspace_id else None

    async def create(self, key: AgentKey) -> bool:
        await self._round_trip()
        if key.zombie_id not in self._tables.heads:
            return False
        for other in self._tables.agent_keys.values():
            if (other.zombie_id, other.name) == (key.zombie_id, key.name):
                raise NameTaken(key.name)
        self._tables.agent_keys[key.id] = replace(key, description=storable(key.description))
        return True

    async def list(
        self, workspace_id: UUID, *, zombie_id: UUID | None, page: int, page_size: int
    ) -> tuple[Sequence[AgentKey], int]:
        await self._round_trip()
        found = [
            key
            for key in self._tables.agent_keys.values()
            if key.workspace_id == workspace_id and (zombie_id is None or key.zombie_id == zombie_id)
        ]
        found.sort(key=lambda key: (key.created_at, key.id), reverse=True)
        return page_of(found, page, page_size)

    async def delete(self, workspace_id: UUID, key_id: UUID) -> bool:
        if await self.load(workspace_id, key_id) is None:
            return False
        return self._tables.agent_keys.pop(key_id, None) is not None

    async def touch(self, used: Sequence[tuple[UUID, int]]) -> None:
        await self._round_trip()
        for key_id, at in used:
            key = self._tables.agent_keys.get(key_id)
            if key is not None:
                last = max(at, key.last_used_at or at)
                self._tables.agent_keys[key_id] = replace(key, last_used_at=last)
