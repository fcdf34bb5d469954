"""Transcripts in memory."""

from collections.abc import Iterable, Sequence
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.decisions.transcripts import begun, of_workspaces, over_bound, take
from sexton_storage.documents import copied
from sexton_storage.memory.apply_gates import holds
from sexton_storage.memory.base import MemoryStore
from sexton_storage.periods import DAY_MS
from sexton_storage.records.leases import LeaseToken
from sexton_storage.records.transcripts import (
    WHOLE_BYTES,
    EntryQuery,
    NewEntry,
    Transcript,
    TranscriptBounds,
    TranscriptEntry,
)


class MemoryTranscripts(MemoryStore):
    async def append(
        self, zombie_id: UUID, held: LeaseToken, entries: Sequence[NewEntry], bounds: TranscriptBounds
    ) -> Transcript | None:
        await self._round_trip()
        tables = self._tables
        if not holds(tables, zombie_id, held.lease_id, held.fencing_token):
            return None
        fresh = begun(tables.leases[held.lease_id])
        key = (zombie_id, fresh.event_id, fresh.attempt)
        kept = tables.transcripts.get(key, fresh)
        known = tables.transcript_entries.setdefault(key, {})
        taken = take(kept, known, entries, bounds, tables.now())
        tables.transcripts[key] = taken.transcript
        known.update({one.number: replace(one, data=copied(one.data)) for one in taken.entries})
        return taken.transcript

    async def attempts(self, zombie_id: UUID, event_id: UUID, *, limit: int) -> Sequence[Transcript]:
        await self._round_trip()
        mine = [row for key, row in self._tables.transcripts.items() if key[:2] == (zombie_id, event_id)]
        return sorted(mine, key=lambda row: row.attempt)[-limit:]

    async def read(self, zombie_id: UUID, event_id: UUID, query: EntryQuery) -> Sequence[TranscriptEntry]:
        await self._round_trip()
        after = (query.after.attempt, query.after.number)
        found = [
            entry
            for key, entries in self._tables.transcript_entries.items()
            if key[:2] == (zombie_id, event_id) and query.attempt in {None, key[2]}
            for entry in entries.values()
            if (entry.attempt, entry.number) > after
        ]
        found.sort(key=lambda entry: (entry.attempt, entry.number))
        return list(_within(found[: query.limit], query))

    async def prune(self, bounds: TranscriptBounds, *, limit: int) -> int:
        await self._round_trip()
        tables = self._tables
        oldest = tables.now() - bounds.days * DAY_MS
        old = [row for row in tables.transcripts.values() if row.began_at < oldest][:limit]
        for row in old:
            del tables.transcripts[_key(row)]
            tables.transcript_entries.pop(_key(row), None)
        over = [
            row
            for rows in of_workspaces(tables.transcripts.values()).values()
            for row in over_bound(rows, bounds.workspace_bytes)
        ][: limit - len(old)]
        for row in over:
            tables.transcripts[_key(row)] = replace(row, is_removed=True)
            tables.transcript_entries.pop(_key(row), None)
        return len(old) + len(over)


def _key(row: Transcript) -> tuple[UUID, UUID, int]:
    return row.zombie_id, row.event_id, row.attempt


def _within(entries: Iterable[TranscriptEntry], query: EntryQuery) -> Iterable[TranscriptEntry]:
    upto = 0
    for entry in entries:
        shown = query.whole or entry.size <= WHOLE_BYTES
        size = entry.size if shown else 0
        if upto and upto + size > query.max_bytes:
            return
        upto += size
        yield entry if shown else replace(entry, data={})
