"""Erasures in memory: a surface at a time."""

from collections import Counter
from collections.abc import Sequence
from uuid import UUID

from sexton_storage.decisions.erasure_steps import (
    SURFACES,
    Found,
    is_due,
    joined,
    keeps_events,
    moved,
    stopped,
    takes_over,
)
from sexton_storage.decisions.tombstones import again, tombstone_of
from sexton_storage.memory.base import MemoryStore
from sexton_storage.memory.erasure_surfaces import Hit, hits
from sexton_storage.paging import Page
from sexton_storage.records.erasures import OVER, Erasure, ErasureStatus, Tombstone

TELLING = frozenset({"events", "transcripts", "gates"})


class MemoryErasures(MemoryStore):
    async def add(self, erasure: Erasure, *, limit: int) -> bool:
        await self._round_trip()
        rows = self._tables.erasures
        others = [
            one
            for one in rows.values()
            if one.workspace_id == erasure.workspace_id and one.status not in OVER and one.id != erasure.id
        ]
        if len(others) >= limit:
            return False
        rows.setdefault(erasure.id, erasure)
        return True

    async def load(self, erasure_id: UUID) -> Erasure | None:
        await self._round_trip()
        return self._tables.erasures.get(erasure_id)

    async def list(self, workspace_id: UUID, *, limit: int, before: Page | None = None) -> Sequence[Erasure]:
        await self._round_trip()
        found = [
            one
            for one in self._tables.erasures.values()
            if one.workspace_id == workspace_id
            and (before is None or (one.created_at, one.id) < (before.created_at, before.id))
        ]
        return sorted(found, key=lambda one: (one.created_at, one.id), reverse=True)[:limit]

    async def due(self, *, now: int, limit: int) -> Sequence[UUID]:
        await self._round_trip()
        due = [one for one in self._tables.erasures.values() if is_due(one, now)]
        return [one.id for one in sorted(due, key=lambda one: (one.created_at, one.id))[:limit]]

    async def step(self, erasure_id: UUID) -> Erasure | None:
        await self._round_trip()
        tables = self._tables
        erasure = tables.erasures.get(erasure_id)
        if erasure is None or erasure.status in OVER:
            return None
        if takes_over(erasure):
            erasure = joined(erasure, self._take_over(erasure))
        name, marks = SURFACES[erasure.surface], tables.erasure_events.setdefault(erasure_id, {})
        found = list(hits(tables, erasure, name, marks))
        ready = [one for one in found if not one.is_open]
        if name in TELLING:
            for one in ready:
                if one.event_id is not None:
                    marks[one.event_id] = one.whole or marks.get(one.event_id, False)
        if not erasure.dry_run:
            for one in ready:
                one.act()
        page = _found(name, ready, len(found) - len(ready))
        tables.erasure_changes += bool(page.erased) and not erasure.dry_run
        after = moved(erasure, page, max(tables.now(), erasure.updated_at))
        self._save(after)
        return after

    async def stop(self, erasure_id: UUID) -> Erasure | None:
        await self._round_trip()
        found = self._tables.erasures.get(erasure_id)
        if found is None:
            return None
        ended = stopped(found, self._tables.now())
        self._save(ended)
        return ended

    async def newest_change(self) -> int:
        await self._round_trip()
        return self._tables.erasure_changes

    async def tombstones(self) -> Sequence[Tombstone]:
        await self._round_trip()
        done = [
            one
            for one in self._tables.erasures.values()
            if one.status is ErasureStatus.DONE and not one.dry_run
        ]
        return [tombstone_of(one) for one in sorted(done, key=lambda one: (one.ended_at or 0, one.id))]

    async def restore(self, tombstones: Sequence[Tombstone]) -> Sequence[UUID]:
        await self._round_trip()
        rows, begun = self._tables.erasures, []
        for one in tombstones:
            if one.id not in rows and one.workspace_id in self._tables.workspaces:
                rows[one.id] = again(one, self._tables.now())
                begun.append(one.id)
        return begun

    def _take_over(self, erasure: Erasure) -> int:
        """Note the events that stopped erasures of the same value had come to; give how many are new."""
        notes = self._tables.erasure_events
        own, taken = notes.setdefault(erasure.id, {}), 0
        for one in self._tables.erasures.values():
            is_same = (one.workspace_id, one.needle) == (erasure.workspace_id, erasure.needle)
            if not (is_same and keeps_events(one)):
                continue
            left = notes.get(one.id, {}) if erasure.dry_run else notes.pop(one.id, {})
            for event_id, whole in left.items():
                if event_id not in own or (whole and not own[event_id]):
                    own[event_id] = whole
                    taken += 1
        return taken

    def _save(self, erasure: Erasure) -> None:
        self._tables.erasures[erasure.id] = erasure
        if erasure.status in OVER and not keeps_events(erasure):
            self._tables.erasure_events.pop(erasure.id, None)


def _found(name: str, ready: Sequence[Hit], waits: int) -> Found:
    gone, stay = sum(not one.stays for one in ready), sum(one.stays for one in ready)
    return Found(None, Counter({name: gone}) if gone else {}, Counter({name: stay}) if stay else {}, waits)
