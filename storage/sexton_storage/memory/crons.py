"""Cron triggers in memory."""

from collections.abc import Sequence
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.documents import storable
from sexton_storage.memory.base import MemoryStore
from sexton_storage.memory.tables import Tables
from sexton_storage.records.crons import CronEntry, Fired, ScheduleNote, declared
from sexton_storage.records.zombies import Zombie, ZombieStatus


def keep_crons(tables: Tables, zombie: Zombie) -> None:
    """Have an entry for each cron trigger of an active agent; what stays keeps its plan."""
    wanted = declared(zombie.compiled) if zombie.status is ZombieStatus.ACTIVE else []
    keys = {(zombie.id, schedule, timezone) for schedule, timezone in wanted}
    kept = {key: row for key, row in tables.crons.items() if key[0] != zombie.id or key in keys}
    for key in keys - kept.keys():
        kept[key] = CronEntry(*key, since=zombie.updated_at, next_at=None)
    tables.crons = kept


class MemoryCrons(MemoryStore):
    async def of_agents(self, zombie_ids: Sequence[UUID]) -> Sequence[CronEntry]:
        await self._round_trip()
        return [entry for entry in self._tables.crons.values() if entry.zombie_id in zombie_ids]

    async def notes(self, zombie_ids: Sequence[UUID]) -> Sequence[ScheduleNote]:
        await self._round_trip()
        return [note for note in self._tables.schedule_notes.values() if note.zombie_id in zombie_ids]

    async def pause(self, note: ScheduleNote) -> None:
        await self._round_trip()
        key = (note.zombie_id, note.schedule, note.timezone)
        before = self._tables.schedule_notes.get(key, ScheduleNote(*key))
        by = None if note.paused_by is None else storable(note.paused_by)
        self._tables.schedule_notes[key] = replace(before, paused_at=note.paused_at, paused_by=by)

    async def note_missed(self, note: ScheduleNote) -> None:
        await self._round_trip()
        key = (note.zombie_id, note.schedule, note.timezone)
        before = self._tables.schedule_notes.get(key, ScheduleNote(*key))
        if (before.missed_until or -1) < (note.missed_until or 0):
            self._tables.schedule_notes[key] = replace(
                before,
                missed=before.missed + note.missed,
                missed_from=note.missed_from,
                missed_until=note.missed_until,
                missed_why=note.missed_why,
            )

    async def fired(
        self, workspace_id: UUID, zombie_id: UUID, schedule: str, *, limit: int
    ) -> Sequence[Fired]:
        await self._round_trip()
        found = [
            event
            for event in self._tables.events.values()
            if (event.workspace_id, event.zombie_id) == (workspace_id, zombie_id)
            and event.actor == f"cron:{schedule}"
        ]
        newest = sorted(
            found, key=lambda event: (event.created_at, self._tables.arrivals[event.id]), reverse=True
        )
        return [Fired(e.id, e.status, e.created_at, e.request_json) for e in newest[:limit]]

    async def due(self, *, before: int, limit: int) -> Sequence[CronEntry]:
        await self._round_trip()
        due = [e for e in self._tables.crons.values() if e.next_at is None or e.next_at <= before]
        return sorted(due, key=lambda e: -1 if e.next_at is None else e.next_at)[:limit]

    async def next_at(self) -> int | None:
        await self._round_trip()
        return min((e.next_at for e in self._tables.crons.values() if e.next_at is not None), default=None)

    async def load(self, zombie_id: UUID, schedule: str, timezone: str) -> CronEntry | None:
        await self._round_trip()
        return self._tables.crons.get((zombie_id, schedule, timezone))

    async def plan(self, seen: CronEntry, next_at: int) -> bool:
        await self._round_trip()
        key = (seen.zombie_id, seen.schedule, seen.timezone)
        entry = self._tables.crons.get(key)
        if entry is None or entry.next_at != seen.next_at:
            return False
        self._tables.crons[key] = replace(entry, next_at=next_at)
        return True
