"""What becomes of a content that is sent in parts, and of one that nothing owns."""

from typing import NamedTuple

from msgspec.structs import replace

from sexton_storage.records.blobs import (
    BLOBS_OF_LEASE,
    CHUNK_BYTES,
    UNOWNED_KEEP_MS,
    Blob,
    BlobState,
    Misplaced,
    NoRoom,
    Place,
)


def room(used: int, of_lease: int, size: int, quota: int | None) -> NoRoom | None:
    """Say why another content of ``size`` bytes is not taken; None: it is.

    >>> room(60, 0, 40, 100), room(60, 0, 41, 100), room(60, BLOBS_OF_LEASE, 0, None)
    (None, <NoRoom.QUOTA: 'quota'>, <NoRoom.NUMBER: 'number'>)
    """
    if of_lease >= BLOBS_OF_LEASE:
        return NoRoom.NUMBER
    return NoRoom.QUOTA if quota is not None and used + size > quota else None


def place(blob: Blob | None, offset: int, length: int) -> int | Misplaced:
    """Give the bytes that there are once the part is in its place; as many as before when it came before.

    >>> from uuid import UUID
    >>> at = lambda received, size=CHUNK_BYTES + 9, state=BlobState.OPEN: Blob(
    ...     UUID(int=1), UUID(int=2), UUID(int=3), bytes(32), size, received, state, 0, 0, 0
    ... )
    >>> place(at(0), 0, CHUNK_BYTES), place(at(CHUNK_BYTES), CHUNK_BYTES, 9)
    (262144, 262153)
    >>> (
    ...     place(at(CHUNK_BYTES), 0, CHUNK_BYTES),
    ...     place(at(CHUNK_BYTES + 9, state=BlobState.KEPT), 0, CHUNK_BYTES),
    ... )
    (262144, 262153)
    >>> place(at(0), CHUNK_BYTES, 9), place(at(0), 0, 9), place(at(0), 0, CHUNK_BYTES + 10)
    (<Misplaced.GAP: 'gap'>, <Misplaced.UNALIGNED: 'unaligned'>, <Misplaced.BEYOND: 'beyond'>)
    >>> place(None, 0, 1), place(at(0, state=BlobState.DOOMED), 0, 1)
    (<Misplaced.CLOSED: 'closed'>, <Misplaced.CLOSED: 'closed'>)
    """
    if blob is None or blob.state is BlobState.DOOMED:
        return Misplaced.CLOSED
    end = offset + length
    if end > blob.size:
        return Misplaced.BEYOND
    if end <= blob.received:
        return blob.received
    if offset != blob.received:
        return Misplaced.GAP
    return Misplaced.UNALIGNED if end < blob.size and length % CHUNK_BYTES else end


def settled(blob: Blob | None, *, intact: bool) -> BlobState | None:
    """Give the state of a blob once its hash is known; None when it is not to be settled so.

    >>> from uuid import UUID
    >>> whole = Blob(UUID(int=1), UUID(int=2), UUID(int=3), bytes(32), 9, 9, BlobState.OPEN, 0, 0, 0)
    >>> settled(whole, intact=True), settled(whole, intact=False)
    (<BlobState.KEPT: 'kept'>, <BlobState.DOOMED: 'doomed'>)
    >>> settled(None, intact=True) is None
    True
    """
    if blob is None:
        return None
    aim = BlobState.KEPT if intact else BlobState.DOOMED
    if blob.state is BlobState.OPEN and blob.received == blob.size:
        return aim
    return aim if blob.state is aim else None


class Closing(NamedTuple):
    """What becomes of a content that ends without having been declared."""

    kept: Blob
    """As it is then, or the one of the same content that its sender has already."""
    doomed: Blob | None = None
    """The other of the two."""


def closed(blob: Blob | None, known: Blob | None, sha256: bytes, tail: int) -> Closing | None:
    """End a content with ``tail`` bytes more; None when it is not open.

    ``known`` is another that the same sender declared with this hash and length.

    >>> from uuid import UUID
    >>> blob = Blob(UUID(int=1), UUID(int=2), UUID(int=3), bytes(32), 99, 4, BlobState.OPEN, 0, 0, 0)
    >>> closing = closed(blob, None, b"h", 5)
    >>> closing.kept.size, closing.kept.received, closing.kept.sha256, closing.kept.state, closing.doomed
    (9, 9, b'h', <BlobState.KEPT: 'kept'>, None)

    What is whole already is not kept twice; what is not gives way.

    >>> known = replace(blob, id=UUID(int=9), state=BlobState.KEPT)
    >>> [(found.kept.id.int, found.doomed.id.int) for found in [closed(blob, known, b"h", 5)]]
    [(9, 1)]
    >>> half = replace(known, state=BlobState.OPEN)
    >>> [(found.kept.id.int, found.doomed.id.int) for found in [closed(blob, half, b"h", 5)]]
    [(1, 9)]
    >>> closed(None, None, b"h", 0), closed(known, None, b"h", 0), closed(blob, None, b"h", 96)
    (None, None, None)
    """
    if blob is None or blob.state is not BlobState.OPEN or blob.received + tail > blob.size:
        return None
    if known is not None and known.state is BlobState.KEPT:
        return Closing(known, blob)
    size = blob.received + tail
    return Closing(replace(blob, sha256=sha256, size=size, received=size, state=BlobState.KEPT), known)


def is_over(blob: Blob, now: int) -> bool:
    """Whether nothing owns it, and nobody is to be waited for any more.

    >>> from uuid import UUID
    >>> left = Blob(UUID(int=1), UUID(int=2), UUID(int=3), bytes(32), 9, 3, BlobState.OPEN, 0, 0, 5)
    >>> is_over(left, UNOWNED_KEEP_MS + 4), is_over(left, UNOWNED_KEEP_MS + 5)
    (False, True)
    """
    if blob.state is BlobState.DOOMED:
        return True
    return blob.owners == 0 and blob.touched_at + UNOWNED_KEEP_MS <= now


def is_moving(blob: Blob | None) -> bool:
    """Whether a content belongs in the store and is not there yet.

    What nothing owns is not sent: it will be deleted within the hour, or be owned.

    >>> from uuid import UUID
    >>> at = lambda owners, size=9, place=Place.DATABASE: Blob(
    ...     UUID(int=1), UUID(int=2), UUID(int=3), bytes(32), size, size, BlobState.KEPT, owners, 0, 0, place
    ... )
    >>> is_moving(at(1)), is_moving(at(0)), is_moving(at(1, size=0)), is_moving(at(1, place=Place.BOTH))
    (True, False, False, False)
    """
    if blob is None or blob.state is not BlobState.KEPT or blob.place is not Place.DATABASE:
        return False
    return blob.owners > 0 and blob.size > 0


def is_free(blob: Blob, now: int) -> bool:
    """Whether no node sends it to the store or deletes it there.

    >>> from uuid import UUID
    >>> held = Blob(
    ...     UUID(int=1), UUID(int=2), UUID(int=3), b"", 9, 9, BlobState.KEPT, 1, 0, 0, Place.DATABASE, 5
    ... )
    >>> is_free(held, 4), is_free(held, 5)
    (False, True)
    """
    return blob.store_until is None or blob.store_until <= now
