"""Contents on their way in and out: what comes is hashed as it comes, what goes is read chunk by chunk."""

import hashlib
from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from sexton_storage.errors import StorageError
from sexton_storage.objects.store import ObjectStore, ObjectStoreFault
from sexton_storage.records.blobs import CHUNK_BYTES, Blob, BlobState, BlobStore, Misplaced, Place

HASHES: Final = 1_024
"""Contents whose hash is kept half reckoned; of any other what came is read again at its end."""


class ContentGone(StorageError):
    """What was being read has been deleted meanwhile."""


@dataclass(slots=True)
class _Hash:
    """The hash of the first ``length`` bytes."""

    length: int = 0
    state: Any = field(default_factory=hashlib.sha256)

    def feed(self, offset: int, data: bytes) -> None:
        if offset == self.length:
            self.state.update(data)
            self.length += len(data)


class Contents:
    """Takes contents in and gives them out, over the stores that keep them."""

    def __init__(self, blobs: BlobStore, objects: ObjectStore | None = None, *, hashes: int = HASHES) -> None:
        self._blobs = blobs
        self._objects = objects
        self._hashes: OrderedDict[UUID, _Hash] = OrderedDict()
        self._most = hashes

    async def take(self, blob_id: UUID, offset: int, data: bytes) -> int | Misplaced:
        """Keep a part; how many bytes there are now."""
        received = await self._blobs.append(blob_id, offset, data)
        if not isinstance(received, Misplaced):
            self._hash(blob_id).feed(offset, data)
        return received

    async def finish(self, blob: Blob) -> bool:
        """Verify a content of which all parts came; False, and it is thrown away, when its hash is another.

        Parts that other nodes took are read again. Cancelled, it goes on where it was at the next call.
        """
        if blob.state is not BlobState.OPEN:
            return blob.state is BlobState.KEPT
        known = self._hash(blob.id)
        while known.length < blob.size:
            whole, into = divmod(known.length, CHUNK_BYTES)
            chunk = await self._blobs.chunk(blob.id, whole)
            if chunk is None:
                return False
            known.feed(known.length, chunk[into:])
        intact = known.state.digest() == blob.sha256
        del self._hashes[blob.id]
        return await self._blobs.settle(blob.id, intact=intact) and intact

    async def require(self, blob: Blob) -> None:
        """See that the bytes can be had, before anybody is promised them. Raises ObjectStoreFault."""
        if blob.place is Place.DATABASE:
            return
        length = await self._store().measure(blob.id)
        if length != blob.size:
            raise ObjectStoreFault(f"the store of files has {length} bytes of {blob.id}, not {blob.size}")

    async def read(self, blob: Blob, start: int, end: int) -> AsyncGenerator[bytes, None]:
        """Give the bytes from ``start`` to before ``end``. Raises ContentGone, and ObjectStoreFault."""
        whole = start == 0 and end == blob.size
        while start < end:
            if blob.place is not Place.DATABASE:
                async with aclosing(self._from_store(blob, start, end, whole=whole)) as pieces:
                    async for piece in pieces:
                        yield piece
                return
            number, into = divmod(start, CHUNK_BYTES)
            chunk = await self._blobs.chunk(blob.id, number)
            if chunk is None:
                blob = await self._moved(blob, number)
                whole = False
                continue
            piece = chunk[into : into + end - start]
            start += len(piece)
            yield piece

    async def _moved(self, blob: Blob, number: int) -> Blob:
        """What was in the database a moment ago is in the store now, or nowhere."""
        now = await self._blobs.load(blob.id)
        if now is None or now.place is Place.DATABASE:
            raise ContentGone(f"chunk {number} of blob {blob.id}")
        return now

    async def _from_store(
        self, blob: Blob, start: int, end: int, *, whole: bool
    ) -> AsyncGenerator[bytes, None]:
        known, last = hashlib.sha256(), b""
        async with aclosing(self._store().read(blob.id, start, end)) as pieces:
            async for piece in pieces:
                if last:
                    yield last
                known.update(piece)
                last = piece
        # The last piece is kept back: of a content that is another, nobody gets all that was promised.
        if whole and known.digest() != blob.sha256:
            raise ObjectStoreFault(f"the store of files gave other bytes of {blob.id} than it took")
        yield last

    def _store(self) -> ObjectStore:
        if self._objects is None:
            raise ObjectStoreFault(
                "the file is in a store of files, and this server has none: start it with --files-store"
            )
        return self._objects

    def _hash(self, blob_id: UUID) -> _Hash:
        known = self._hashes.setdefault(blob_id, _Hash())
        self._hashes.move_to_end(blob_id)
        if len(self._hashes) > self._most:
            self._hashes.popitem(last=False)
        return known
