"""Integration grants, in memory."""

from collections.abc import Sequence
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.documents import storable
from sexton_storage.memory.apply_gates import holds
from sexton_storage.memory.base import MemoryStore
from sexton_storage.paging import Page
from sexton_storage.records.frames import NewFrame
from sexton_storage.records.grants import Grant, GrantStatus
from sexton_storage.records.leases import LeaseToken
from sexton_storage.refusals import FENCED, FULL, GONE, STALE, Lost
from sexton_storage.terms import GRANTS_LIMIT


class MemoryGrants(MemoryStore):
    async def load(self, grant_id: UUID) -> Grant | None:
        await self._round_trip()
        return self._tables.grants.get(grant_id)

    async def find(self, zombie_id: UUID, service: str) -> Grant | None:
        await self._round_trip()
        return self._of(zombie_id, service)

    async def of_zombie(self, zombie_id: UUID) -> Sequence[Grant]:
        await self._round_trip()
        mine = (grant for grant in self._tables.grants.values() if grant.zombie_id == zombie_id)
        return sorted(mine, key=lambda grant: grant.service)

    async def list(
        self,
        workspace_id: UUID,
        *,
        limit: int,
        before: Page | None = None,
        zombie_id: UUID | None = None,
        status: GrantStatus | None = None,
    ) -> Sequence[Grant]:
        await self._round_trip()
        found = [
            grant
            for grant in self._tables.grants.values()
            if grant.workspace_id == workspace_id
            and (zombie_id is None or grant.zombie_id == zombie_id)
            and (status is None or grant.status is status)
            and (before is None or (grant.created_at, grant.id) < (before.created_at, before.id))
        ]
        return sorted(found, key=lambda grant: (grant.created_at, grant.id), reverse=True)[:limit]

    async def save(
        self, grant: Grant, frames: Sequence[NewFrame], held: LeaseToken | None = None
    ) -> Lost | None:
        await self._round_trip()
        lost = self._refused(grant, held)
        if lost is None:
            self._tables.grants[grant.id] = replace(grant, reason=storable(grant.reason))
            self._tables.append_frames(frames)
            self._journal.announce_frames()
        return lost

    def _refused(self, grant: Grant, held: LeaseToken | None) -> Lost | None:
        if grant.zombie_id not in self._tables.heads:
            return Lost(GONE)
        if held is not None and not holds(self._tables, grant.zombie_id, held.lease_id, held.fencing_token):
            return Lost(FENCED)
        old = self._tables.grants.get(grant.id)
        if grant.version > 1:
            return None if old is not None and old.version == grant.version - 1 else Lost(STALE)
        if old is not None or self._of(grant.zombie_id, grant.service) is not None:
            return Lost(STALE)
        count = sum(other.zombie_id == grant.zombie_id for other in self._tables.grants.values())
        return None if count < GRANTS_LIMIT else Lost(FULL)

    def _of(self, zombie_id: UUID, service: str) -> Grant | None:
        for grant in self._tables.grants.values():
            if grant.zombie_id == zombie_id and grant.service == service:
                return grant
        return None
