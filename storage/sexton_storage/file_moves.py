"""Moves whole contents to a store of objects, and deletes there what is deleted here.

A row is there before the first byte is in the store, and goes after the last has left it. So a crash at any
point leaves a row whose bytes are in the database still, or an object that a row knows of.
"""

import hashlib
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

import trio

from sexton_storage.contents import ContentGone
from sexton_storage.objects.store import ObjectStore, ObjectStoreFault
from sexton_storage.records.blobs import CHUNK_BYTES, Blob, BlobStore

HOLD_MS: Final = 300_000
"""A node that sends or deletes a content has it for this long after its last sign of life."""
RETRY_MS: Final = 10_000
"""After this a content is tried again that could not be sent."""
SIGN_S: Final = 30.0


async def move(blobs: BlobStore, objects: ObjectStore, blob: Blob) -> bool:
    """Copy a content that this node has claimed to the store, read it back, and have it count.

    False when it is not to be moved any more. Raises ObjectStoreFault; the content is in the database then.
    """
    try:
        async with aclosing(_held(blobs, blob, _chunks(blobs, blob))) as pieces:
            await objects.put(blob.id, blob.size, pieces)
        known = hashlib.sha256()
        # What a store says of itself proves nothing: it has the content once it has given it back.
        async with aclosing(_held(blobs, blob, objects.read(blob.id, 0, blob.size))) as pieces:
            async for piece in pieces:
                known.update(piece)
    except ContentGone:
        return False
    if known.digest() != blob.sha256:
        raise ObjectStoreFault(f"the store of files gave other bytes of {blob.id} than it was sent")
    return await blobs.moved(blob.id)


async def put_off(blobs: BlobStore, blob: Blob) -> None:
    """Have a content that could not be sent tried again in a while, by whichever node."""
    await blobs.hold_move(blob.id, hold_ms=RETRY_MS)


async def remove_doomed(blobs: BlobStore, objects: ObjectStore, *, limit: int) -> int:
    """Delete in the store what is doomed here; how many contents. Raises ObjectStoreFault."""
    doomed = await blobs.doomed_in_store(limit=limit)
    for blob_id in doomed:
        await objects.delete(blob_id)
        await blobs.removed([blob_id])
    return len(doomed)


async def remove_strays(
    blobs: BlobStore, objects: ObjectStore, after: str, *, before_ms: int
) -> tuple[int, str]:
    """Delete objects from before a time (Unix ms) that no row knows of, a page of them.

    Gives how many, and where the next page begins.

    There are none, but where a node was frozen while it sent and woke after the content was deleted, or where
    the database was restored from a backup.
    """
    page = await objects.listed(after)
    old = [object_id for object_id, changed_ms in page.objects if changed_ms < before_ms]
    known = await blobs.known(old)
    strays = [object_id for object_id in old if object_id not in known]
    for object_id in strays:
        await objects.delete(object_id)
    return len(strays), page.following or ""


async def _chunks(blobs: BlobStore, blob: Blob) -> AsyncGenerator[bytes, None]:
    for number in range(-(-blob.size // CHUNK_BYTES)):
        chunk = await blobs.chunk(blob.id, number)
        if chunk is None:
            raise ContentGone(f"chunk {number} of blob {blob.id}")
        yield chunk


async def _held(
    blobs: BlobStore, blob: Blob, pieces: AsyncGenerator[bytes, None]
) -> AsyncGenerator[bytes, None]:
    """Pass the pieces on, and tell the other nodes now and then that this one is at it."""
    signed = trio.current_time()
    async with aclosing(pieces):
        async for piece in pieces:
            if trio.current_time() >= signed + SIGN_S:
                signed = trio.current_time()
                if not await blobs.hold_move(blob.id, hold_ms=HOLD_MS):
                    raise ContentGone(f"blob {blob.id}")
            yield piece
