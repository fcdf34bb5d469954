"""What agents remember, in memory."""

from collections.abc import Sequence
from uuid import UUID

from sexton_storage.attribution import current_entry
from sexton_storage.documents import storable
from sexton_storage.memory.apply_gates import holds
from sexton_storage.memory.apply_memories import remember
from sexton_storage.memory.base import MemoryStore
from sexton_storage.records.leases import LeaseToken
from sexton_storage.records.memories import CORE, Memory, MemoryChange, Remembered, folded, is_over, words_of


class MemoryMemories(MemoryStore):
    async def keep(
        self, zombie_id: UUID, held: LeaseToken, changes: Sequence[MemoryChange], now: int
    ) -> Remembered | None:
        await self._round_trip()
        if not holds(self._tables, zombie_id, held.lease_id, held.fencing_token):
            return None
        return Remembered(remember(self._tables, zombie_id, changes, now).refused)

    async def forget(self, zombie_id: UUID, key: str) -> bool:
        await self._round_trip()
        rows = self._tables.memories.get(zombie_id, {})
        if rows.pop(storable(key), None) is None:
            return False
        entry = current_entry()
        if entry is not None:
            self._tables.audit.append(entry)
        return True

    async def search(
        self, zombie_id: UUID, *, query: str, category: str | None, limit: int
    ) -> tuple[Sequence[Memory], int]:
        await self._round_trip()
        words, category = words_of(query), storable(category)
        found = []
        for entry in self._alive(zombie_id):
            if category is not None and entry.category != category:
                continue
            text = folded(f"{entry.key}\n{entry.content}")
            hits = sum(word in text for word in words)
            if hits or not words:
                found.append((-hits, -entry.updated_at, entry.key, entry))
        found.sort(key=lambda row: row[:3])
        return [row[3] for row in found[:limit]], len(found)

    async def of_lease(self, zombie_id: UUID, *, limit: int) -> Sequence[Memory]:
        await self._round_trip()
        order = sorted(self._alive(zombie_id), key=lambda m: (m.category != CORE, -m.updated_at, m.key))
        return order[:limit]

    def _alive(self, zombie_id: UUID) -> list[Memory]:
        now = self._tables.now()
        rows = self._tables.memories.get(zombie_id, {}).values()
        return [row for row in rows if not is_over(row.category, row.updated_at, now)]
