"""Contents of any length, in memory."""

from collections.abc import Sequence
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.decisions import blobs as decide
from sexton_storage.memory.base import MemoryStore
from sexton_storage.records.blobs import (
    COUNTED,
    Blob,
    BlobState,
    Misplaced,
    NoRoom,
    Place,
    ToMove,
    chunks_of,
)


class MemoryBlobs(MemoryStore):
    async def open(
        self,
        blob_id: UUID,
        workspace_id: UUID,
        lease_id: UUID,
        *,
        sha256: bytes,
        size: int,
        quota: int | None,
    ) -> Blob | NoRoom:
        await self._round_trip()
        rows = self._tables.blobs
        alive = [blob for blob in rows.values() if blob.state is not BlobState.DOOMED]
        of_lease = [blob for blob in alive if blob.lease_id == lease_id]
        for known in of_lease:
            if (known.sha256, known.size) == (sha256, size):
                return known
        refused = decide.room(
            self._used(workspace_id), sum(not blob.owners for blob in of_lease), size, quota
        )
        if refused is not None:
            return refused
        now = self._tables.now()
        blob = Blob(blob_id, workspace_id, lease_id, sha256, size, 0, BlobState.OPEN, 0, now, now)
        rows[blob_id] = blob
        return blob

    async def append(self, blob_id: UUID, offset: int, data: bytes) -> int | Misplaced:
        await self._round_trip()
        blob = self._tables.blobs.get(blob_id)
        received = decide.place(blob, offset, len(data))
        if blob is None or isinstance(received, Misplaced) or received == blob.received:
            return received
        self._tables.blob_chunks.setdefault(blob_id, []).extend(chunks_of(data))
        self._tables.blobs[blob_id] = replace(blob, received=received, touched_at=self._tables.now())
        return received

    async def settle(self, blob_id: UUID, *, intact: bool) -> bool:
        await self._round_trip()
        blob = self._tables.blobs.get(blob_id)
        state = decide.settled(blob, intact=intact)
        if blob is None or state is None:
            return False
        self._tables.blobs[blob_id] = replace(blob, state=state)
        return True

    async def close(self, blob_id: UUID, *, tail: bytes, sha256: bytes) -> Blob | None:
        await self._round_trip()
        rows = self._tables.blobs
        blob = rows.get(blob_id)
        if blob is None:
            return None
        whole = (blob.lease_id, sha256, blob.received + len(tail))
        known = next(
            (
                one
                for one in rows.values()
                if (one.lease_id, one.sha256, one.size) == whole and one.state is not BlobState.DOOMED
            ),
            None,
        )
        closing = decide.closed(blob, known, sha256, len(tail))
        if closing is None:
            return None
        if closing.doomed is not None:
            rows[closing.doomed.id] = replace(closing.doomed, state=BlobState.DOOMED)
        if closing.kept.id == blob_id:
            self._tables.blob_chunks.setdefault(blob_id, []).extend(chunks_of(tail))
            rows[blob_id] = replace(closing.kept, touched_at=self._tables.now())
        return rows[closing.kept.id]

    async def give_up(self, blob_id: UUID) -> None:
        await self._round_trip()
        blob = self._tables.blobs.get(blob_id)
        if blob is not None and blob.state is BlobState.OPEN:
            self._tables.blobs[blob_id] = replace(blob, state=BlobState.DOOMED)

    async def load(self, blob_id: UUID) -> Blob | None:
        await self._round_trip()
        return self._tables.blobs.get(blob_id)

    async def chunk(self, blob_id: UUID, number: int) -> bytes | None:
        await self._round_trip()
        chunks = self._tables.blob_chunks.get(blob_id, [])
        return chunks[number] if number < len(chunks) else None

    async def used(self, workspace_id: UUID) -> int:
        await self._round_trip()
        return self._used(workspace_id)

    async def held(self) -> tuple[int, int]:
        await self._round_trip()
        sizes = [blob.size for blob in self._tables.blobs.values()]
        return len(sizes), sum(sizes)

    async def sweep(self, *, limit: int) -> int:
        await self._round_trip()
        now, swept = self._tables.now(), 0
        for blob in [blob for blob in self._tables.blobs.values() if decide.is_over(blob, now)]:
            self._tables.blobs[blob.id] = replace(blob, state=BlobState.DOOMED)
            chunks = self._tables.blob_chunks.get(blob.id, [])
            gone = chunks[: limit - swept]
            del chunks[: len(gone)]
            swept += len(gone)
            if not chunks and blob.store_until is None:
                self._tables.blob_chunks.pop(blob.id, None)
                del self._tables.blobs[blob.id]
        return swept

    async def claim_moves(self, *, limit: int, hold_ms: int) -> Sequence[Blob]:
        await self._round_trip()
        now = self._tables.now()
        due = [
            one for one in self._tables.blobs.values() if decide.is_moving(one) and decide.is_free(one, now)
        ]
        due.sort(key=lambda one: one.store_until or 0)
        return [self._change(one.id, store_until=now + hold_ms) for one in due[:limit]]

    async def hold_move(self, blob_id: UUID, *, hold_ms: int) -> bool:
        await self._round_trip()
        if not decide.is_moving(self._tables.blobs.get(blob_id)):
            return False
        self._change(blob_id, store_until=self._tables.now() + hold_ms)
        return True

    async def moved(self, blob_id: UUID) -> bool:
        await self._round_trip()
        if not decide.is_moving(self._tables.blobs.get(blob_id)):
            return False
        self._change(blob_id, place=Place.BOTH)
        return True

    async def to_move(self) -> ToMove:
        await self._round_trip()
        waiting = [one for one in self._tables.blobs.values() if decide.is_moving(one)][:COUNTED]
        since = min((one.touched_at for one in waiting), default=None)
        return ToMove(len(waiting), sum(one.size for one in waiting), since)

    async def clear_moved(self, *, limit: int) -> int:
        await self._round_trip()
        cleared = 0
        for blob in [one for one in self._tables.blobs.values() if one.place is Place.BOTH]:
            chunks = self._tables.blob_chunks.get(blob.id, [])
            gone = chunks[: limit - cleared]
            del chunks[: len(gone)]
            cleared += len(gone)
            if not chunks:
                self._tables.blob_chunks.pop(blob.id, None)
                self._change(blob.id, place=Place.STORE)
        return cleared

    async def doomed_in_store(self, *, limit: int) -> Sequence[UUID]:
        await self._round_trip()
        now = self._tables.now()
        doomed = [one for one in self._tables.blobs.values() if one.state is BlobState.DOOMED]
        return [one.id for one in doomed if one.store_until is not None and decide.is_free(one, now)][:limit]

    async def removed(self, blob_ids: Sequence[UUID]) -> None:
        await self._round_trip()
        for blob_id in blob_ids:
            blob = self._tables.blobs.get(blob_id)
            if blob is not None and blob.state is BlobState.DOOMED:
                self._change(blob_id, store_until=None)

    async def known(self, blob_ids: Sequence[UUID]) -> frozenset[UUID]:
        await self._round_trip()
        return frozenset(blob_ids) & self._tables.blobs.keys()

    def _change(self, blob_id: UUID, **fields: object) -> Blob:
        changed = self._tables.blobs[blob_id] = replace(self._tables.blobs[blob_id], **fields)
        return changed

    def _used(self, workspace_id: UUID) -> int:
        return sum(blob.size for blob in self._tables.blobs.values() if blob.workspace_id == workspace_id)
