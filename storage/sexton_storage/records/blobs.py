"""Blobs: contents of any length, sent in parts and never whole in memory."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, Protocol
from uuid import UUID

import msgspec

CHUNK_BYTES: Final = 256 * 1024
"""The length of a chunk; only the last of a blob may be shorter."""
PART_BYTES: Final = 4 * CHUNK_BYTES
"""The most that is taken in at once."""
BLOBS_OF_LEASE: Final = 1_000
"""Contents that one sender may have sent, or begun, that nothing owns yet; one more is refused."""
COUNTED: Final = 100_000
"""What waits for a store is counted up to here: the first look may find all files that there are."""
UNOWNED_KEEP_MS: Final = 3_600_000
"""A blob that nothing owns goes this long after its last part, or after its last owner.

So a sender may pause, and whoever has begun to read can finish.
"""


class BlobState(StrEnum):
    OPEN = "open"
    """Parts come."""
    KEPT = "kept"
    """It is whole, and its SHA-256 is the one that was declared."""
    DOOMED = "doomed"
    """Nobody reads it any more; its chunks are being deleted."""


class Place(StrEnum):
    """Where the bytes of a content are."""

    DATABASE = "database"
    BOTH = "both"
    """In the store of objects, whole and verified; the chunks are being deleted."""
    STORE = "store"


class Blob(msgspec.Struct, frozen=True, gc=False):
    id: UUID
    workspace_id: UUID
    lease_id: UUID
    """The lease that sends it, or sent it; for a member, what ``senders.sender_of`` gives."""
    sha256: bytes
    """Declared by the sender, and verified before it is ``kept``."""
    size: int
    received: int
    """Bytes from its beginning that have come."""
    state: BlobState
    owners: int
    """Rows elsewhere that name it."""
    created_at: int
    touched_at: int
    place: Place = Place.DATABASE
    store_until: int | None = None
    """None: nothing of it was ever sent to a store. Else one node has it until then, to send or to delete."""


class ToMove(msgspec.Struct, frozen=True):
    """What waits for the store of objects, of at most ``COUNTED`` contents."""

    contents: int = 0
    size: int = 0
    """How many bytes they have together."""
    since: int | None = None
    """When the last part of the one came that waits longest (Unix ms); None where none waits."""


class NoRoom(StrEnum):
    """Why a content is not taken."""

    QUOTA = "quota"
    """The workspace keeps as much as it may."""
    NUMBER = "number"
    """The sender has as many that nothing owns as it may."""


class Misplaced(StrEnum):
    """Why a part is not taken."""

    GAP = "gap"
    """Bytes before it are missing."""
    BEYOND = "beyond"
    """It goes on after the declared end."""
    UNALIGNED = "unaligned"
    """It is no whole number of chunks, and not the last part."""
    CLOSED = "closed"
    """The blob is doomed, or there is none of this id."""


class BlobStore(Protocol):
    """How it goes: ``open``, ``append`` part by part, ``settle``; then a row elsewhere comes to own it."""

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
        """Begin a content, or find the one of this lease that was begun with the same hash and size.

        ``quota`` is in bytes, of all that the workspace keeps or is being sent.
        """
        ...

    async def append(self, blob_id: UUID, offset: int, data: bytes) -> int | Misplaced:
        """Keep a part of ``PART_BYTES`` at most; how many bytes there are now.

        One that came before changes nothing.
        """
        ...

    async def settle(self, blob_id: UUID, *, intact: bool) -> bool:
        """Say of a blob that has come whole whether its hash is right: it is kept, or doomed.

        False when it was neither open and whole, nor settled so before.
        """
        ...

    async def close(self, blob_id: UUID, *, tail: bytes, sha256: bytes) -> Blob | None:
        """End a content whose length and hash nobody knew when it was opened, with what is left of it.

        Until then its size is what it may have at most, and its hash a number by chance. Gives the content,
        or the same one where its sender has sent it before; None when it was not open.
        """
        ...

    async def give_up(self, blob_id: UUID) -> None:
        """Doom a content that is still open: its sender stopped, and nobody could go on with it."""
        ...

    async def load(self, blob_id: UUID) -> Blob | None: ...
    async def chunk(self, blob_id: UUID, number: int) -> bytes | None:
        """One chunk, from 0; None when it has not come, or is gone."""
        ...

    async def used(self, workspace_id: UUID) -> int:
        """Bytes that count against the quota of the workspace."""
        ...

    async def held(self) -> tuple[int, int]:
        """How many blobs there are in all workspaces, and their bytes."""
        ...

    async def sweep(self, *, limit: int) -> int:
        """Delete a bounded number of chunks of what nothing owns for long; how many there were.

        A row goes with its last chunk, but not before ``removed`` where a store may have something of it.
        """
        ...

    async def claim_moves(self, *, limit: int, hold_ms: int) -> Sequence[Blob]:
        """Take contents that somebody owns and that no store has yet, for this node alone and this long."""
        ...

    async def hold_move(self, blob_id: UUID, *, hold_ms: int) -> bool:
        """Hold it for this long from now; False when it is not to be moved any more."""
        ...

    async def moved(self, blob_id: UUID) -> bool:
        """Say that a store has it whole and verified; False when it is not to be moved any more."""
        ...

    async def to_move(self) -> ToMove:
        """Count what belongs in a store and is not there yet, what a node sends just now included."""
        ...

    async def clear_moved(self, *, limit: int) -> int:
        """Delete a bounded number of chunks of what a store has; how many there were."""
        ...

    async def doomed_in_store(self, *, limit: int) -> Sequence[UUID]:
        """Give doomed contents of which a store may have something, and which no node sends."""
        ...

    async def removed(self, blob_ids: Sequence[UUID]) -> None:
        """Say that a store has nothing more of these, which are doomed."""
        ...

    async def known(self, blob_ids: Sequence[UUID]) -> frozenset[UUID]:
        """Give those of them that have a row."""
        ...


def chunks_of(data: bytes) -> Sequence[bytes]:
    """Cut a part into chunks.

    >>> [len(chunk) for chunk in chunks_of(bytes(CHUNK_BYTES + 1))]
    [262144, 1]
    """
    return [data[start : start + CHUNK_BYTES] for start in range(0, len(data), CHUNK_BYTES)]
