"""Contents on their way in and out: what comes is hashed as it comes, what goes is read chunk by chunk."""

import hashlib
from collections import OrderedDict
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from sexton_storage.errors import StorageError
from sexton_storage.records.blobs import CHUNK_BYTES, Blob, BlobState, BlobStore, Misplaced

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
    """Takes contents in and gives them out, over the store that keeps them."""

    def __init__(self, blobs: BlobStore, *, hashes: int = HASHES) -> None:
        self._blobs = blobs
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

    async def read(self, blob: Blob, start: int, end: int) -> AsyncGenerator[bytes, None]:
        """Give the bytes from ``start`` to before ``end``. Raises ContentGone."""
        while start < end:
            number, into = divmod(start, CHUNK_BYTES)
            chunk = await self._blobs.chunk(blob.id, number)
            if chunk is None:
                raise ContentGone(f"chunk {number} of blob {blob.id}")
            piece = chunk[into : into + end - start]
            start += len(piece)
            yield piece

    def _hash(self, blob_id: UUID) -> _Hash:
        known = self._hashes.setdefault(blob_id, _Hash())
        self._hashes.move_to_end(blob_id)
        if len(self._hashes) > self._most:
            self._hashes.popitem(last=False)
        return known
