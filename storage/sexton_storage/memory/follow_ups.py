"""Follow-ups in memory."""

from collections.abc import Sequence
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.documents import storable
from sexton_storage.memory.apply_follow_ups import close_follow_up
from sexton_storage.memory.apply_gates import holds
from sexton_storage.memory.base import MemoryStore
from sexton_storage.paging import Page
from sexton_storage.records.follow_ups import FollowUp, FollowUpStatus
from sexton_storage.records.leases import LeaseToken
from sexton_storage.refusals import FENCED, FULL, GONE, Lost
from sexton_storage.terms import FOLLOW_UPS_LIMIT


class MemoryFollowUps(MemoryStore):
    async def load(self, follow_up_id: UUID) -> FollowUp | None:
        await self._round_trip()
        return self._tables.follow_ups.get(follow_up_id)

    async def find(self, zombie_id: UUID, event_id: UUID, call_id: str) -> FollowUp | None:
        await self._round_trip()
        return self._asked(zombie_id, event_id, storable(call_id))

    async def keep(self, follow_up: FollowUp, held: LeaseToken) -> FollowUp | Lost:
        await self._round_trip()
        new = replace(follow_up, message=storable(follow_up.message), call_id=storable(follow_up.call_id))
        if new.zombie_id not in self._tables.heads:
            return Lost(GONE)
        if not holds(self._tables, new.zombie_id, held.lease_id, held.fencing_token):
            return Lost(FENCED)
        if (asked := self._asked(new.zombie_id, new.event_id, new.call_id)) is not None:
            return asked
        if sum(other.zombie_id == new.zombie_id for other in self._pending()) >= FOLLOW_UPS_LIMIT:
            return Lost(FULL)
        self._tables.follow_ups[new.id] = new
        return new

    async def due(self, *, before: int, limit: int) -> Sequence[FollowUp]:
        await self._round_trip()
        due = [follow_up for follow_up in self._pending() if follow_up.at <= before]
        return sorted(due, key=lambda f: (f.at, f.id))[:limit]

    async def next_at(self) -> int | None:
        await self._round_trip()
        return min((follow_up.at for follow_up in self._pending()), default=None)

    async def list(self, zombie_id: UUID, *, limit: int, before: Page | None = None) -> Sequence[FollowUp]:
        await self._round_trip()
        found = [
            follow_up
            for follow_up in self._tables.follow_ups.values()
            if follow_up.zombie_id == zombie_id
            and (before is None or (follow_up.created_at, follow_up.id) < (before.created_at, before.id))
        ]
        return sorted(found, key=lambda f: (f.created_at, f.id), reverse=True)[:limit]

    async def close(self, follow_up: FollowUp, status: FollowUpStatus, now: int) -> bool:
        await self._round_trip()
        return close_follow_up(self._tables, follow_up.id, status, now)

    def _asked(self, zombie_id: UUID, event_id: UUID, call_id: str) -> FollowUp | None:
        for follow_up in self._tables.follow_ups.values():
            if (follow_up.zombie_id, follow_up.event_id, follow_up.call_id) == (zombie_id, event_id, call_id):
                return follow_up
        return None

    def _pending(self) -> Sequence[FollowUp]:
        rows = self._tables.follow_ups.values()
        return [follow_up for follow_up in rows if follow_up.status is FollowUpStatus.PENDING]
