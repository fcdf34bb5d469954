"""The files that events bring, in memory."""

from collections.abc import Sequence
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.decisions import event_files as decide
from sexton_storage.memory.base import MemoryStore
from sexton_storage.memory.tables import Tables
from sexton_storage.records.artefacts import Artefact
from sexton_storage.records.event_files import EventFile, Missing, NewFiles, WantedFile


class MemoryEventFiles(MemoryStore):
    async def bring(self, new: NewFiles, wanted: Sequence[WantedFile]) -> Sequence[EventFile] | Missing:
        await self._round_trip()
        left = [self._left(new, one) for one in wanted]
        files = decide.bring(new, wanted, left, self._tables.blobs)
        if not isinstance(files, Missing):
            self._put(files)
        return files

    async def copy(self, source_id: UUID, event_id: UUID) -> Sequence[EventFile]:
        await self._round_trip()
        now = self._tables.now()
        files = [replace(one, event_id=event_id, created_at=now) for one in self._of(source_id)]
        self._put(files)
        return files

    async def list(self, event_id: UUID) -> Sequence[EventFile]:
        await self._round_trip()
        return self._of(event_id)

    async def load(self, event_id: UUID, number: int) -> EventFile | None:
        await self._round_trip()
        return self._tables.event_files.get((event_id, number))

    async def drop(self, event_id: UUID) -> None:
        await self._round_trip()
        if event_id not in self._tables.events:
            let_go(self._tables, self._of(event_id))

    async def prune(self, *, keep_ms: int, limit: int) -> int:
        await self._round_trip()
        tables, now = self._tables, self._tables.now()
        old = [
            one
            for one in tables.event_files.values()
            if decide.is_over(one, tables.events.get(one.event_id), now, keep_ms)
        ][:limit]
        let_go(tables, old)
        return len(old)

    def _left(self, new: NewFiles, wanted: WantedFile) -> Artefact | None:
        fit = [
            one
            for one in self._tables.artefacts.values()
            if (one.event_id, one.name) == (wanted.event_id, wanted.name)
            and one.workspace_id == new.workspace_id
        ]
        return max(fit, key=lambda one: one.attempt, default=None)

    def _of(self, event_id: UUID) -> Sequence[EventFile]:
        mine = [one for one in self._tables.event_files.values() if one.event_id == event_id]
        return sorted(mine, key=lambda one: one.number)

    def _put(self, files: Sequence[EventFile]) -> None:
        for file in files:
            if (file.event_id, file.number) in self._tables.event_files:
                continue
            self._tables.event_files[file.event_id, file.number] = file
            _count(self._tables, file, 1)


def let_go(tables: Tables, files: Sequence[EventFile]) -> None:
    """Delete files of events; their contents are owned by one less."""
    for file in files:
        del tables.event_files[file.event_id, file.number]
        _count(tables, file, -1)


def _count(tables: Tables, file: EventFile, more: int) -> None:
    blob = tables.blobs[file.blob_id]
    touched = tables.now() if more < 0 else blob.touched_at
    tables.blobs[file.blob_id] = replace(blob, owners=blob.owners + more, touched_at=touched)
