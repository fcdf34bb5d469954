"""The files that runs leave, in memory."""

from collections.abc import Sequence
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.decisions import artefacts as decide
from sexton_storage.memory.apply_gates import holds
from sexton_storage.memory.base import MemoryStore
from sexton_storage.memory.tables import Tables
from sexton_storage.paging import Page
from sexton_storage.records.artefacts import Artefact, NotKept
from sexton_storage.records.leases import LeaseToken


class MemoryArtefacts(MemoryStore):
    async def keep(self, artefact: Artefact, held: LeaseToken) -> Artefact | NotKept:
        await self._round_trip()
        tables = self._tables
        of_attempt = {
            row.name: row
            for row in tables.artefacts.values()
            if (row.event_id, row.attempt) == (artefact.event_id, artefact.attempt)
        }
        kept = decide.keep(
            artefact,
            of_attempt.get(artefact.name),
            tables.blobs.get(artefact.blob_id),
            len(of_attempt),
            held=holds(tables, artefact.zombie_id, held.lease_id, held.fencing_token),
        )
        if kept is artefact:
            tables.artefacts[artefact.id] = artefact
            _count(tables, artefact, 1)
        return kept

    async def list(self, event_id: UUID, *, after: Page | None, limit: int) -> Sequence[Artefact]:
        await self._round_trip()
        mine = [row for row in self._tables.artefacts.values() if row.event_id == event_id]
        mine.sort(key=lambda row: (row.created_at, row.id))
        place = None if after is None else (after.created_at, after.id)
        return [row for row in mine if place is None or (row.created_at, row.id) > place][:limit]

    async def load(self, artefact_id: UUID) -> Artefact | None:
        await self._round_trip()
        return self._tables.artefacts.get(artefact_id)

    async def delete(self, workspace_id: UUID, artefact_id: UUID) -> bool:
        await self._round_trip()
        row = self._tables.artefacts.get(artefact_id)
        if row is None or row.workspace_id != workspace_id:
            return False
        let_go(self._tables, [row])
        return True

    async def prune(self, *, keep_ms: int, limit: int) -> int:
        await self._round_trip()
        before = self._tables.now() - keep_ms
        old = [row for row in self._tables.artefacts.values() if row.created_at <= before][:limit]
        let_go(self._tables, old)
        return len(old)


def let_go(tables: Tables, rows: Sequence[Artefact]) -> None:
    """Delete artefacts; their contents are owned by one less."""
    for row in rows:
        del tables.artefacts[row.id]
        _count(tables, row, -1)


def _count(tables: Tables, row: Artefact, more: int) -> None:
    blob = tables.blobs[row.blob_id]
    touched = tables.now() if more < 0 else blob.touched_at
    tables.blobs[row.blob_id] = replace(blob, owners=blob.owners + more, touched_at=touched)
