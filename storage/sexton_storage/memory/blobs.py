"""Contents of any length, in memory."""

from uuid import UUID

from msgspec.structs import replace

from sexton_storage.decisions import blobs as decide
from sexton_storage.memory.base import MemoryStore
from sexton_storage.records.blobs import Blob, BlobState, Misplaced, NoRoom, chunks_of


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
        refused = decide.room(self._used(workspace_id), len(of_lease), size, quota)
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
            if not chunks:
                self._tables.blob_chunks.pop(blob.id, None)
                del self._tables.blobs[blob.id]
        return swept

    def _used(self, workspace_id: UUID) -> int:
        return sum(blob.size for blob in self._tables.blobs.values() if blob.workspace_id == workspace_id)
