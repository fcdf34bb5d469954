"""Moves files to the store of files, where there is one, and deletes there what is deleted here."""

from collections.abc import Sequence
from typing import Final

import msgspec
import structlog
import trio

from sexton_actors.rounds import Round, RoundsActor
from sexton_engine import Message
from sexton_storage.errors import StorageUnavailable
from sexton_storage.file_moves import HOLD_MS, move, put_off, remove_doomed, remove_strays
from sexton_storage.objects.store import ObjectStore, ObjectStoreFault
from sexton_storage.records.blobs import Blob

MOVE_EVERY_S: Final = 5.0
TIDY_EVERY_S: Final = 300.0
MOVES_AT_ONCE: Final = 4
"""Each has at most a part of 8 MiB in memory."""
CHUNKS_AT_ONCE: Final = 256
REMOVALS: Final = 100
STRAY_KEEP_MS: Final = 7 * 24 * 3600 * 1000
"""Time to restore the database from a newer backup, which may know of the object again."""
OWNER_SETTING: Final = "files_store_owner"

log = structlog.get_logger()


class MoveFiles(msgspec.Struct, Message[None], frozen=True):
    """Send what is whole and owned."""


class TidyStore(msgspec.Struct, Message[None], frozen=True):
    """Delete in the store what is doomed, and what no row knows of, a page at a time."""


class FileMover(RoundsActor):
    """Every node has one: a content is claimed by one of them for as long as it shows signs of life.

    Without a store it does nothing. One that belongs to another installation is left alone.
    """

    kind = "file_mover"
    _is_ours = False
    _is_down = False
    _after = ""

    def rounds(self) -> Sequence[Round]:
        """Tidying can wait: what is doomed is kept for an hour anyway."""
        if self._world.objects is None:
            return ()
        return (
            Round(MoveFiles(), MOVE_EVERY_S, self._move),
            Round(TidyStore(), TIDY_EVERY_S, self._tidy, first_s=TIDY_EVERY_S),
        )

    async def _move(self) -> float | None:
        store, blobs = await self._store(), self._world.storage.blobs
        if store is None:
            return None
        claimed = await blobs.claim_moves(limit=MOVES_AT_ONCE, hold_ms=HOLD_MS)
        moved: list[bool] = []
        async with trio.open_nursery() as nursery:
            for blob in claimed:
                nursery.start_soon(self._move_one, store, blob, moved)
        while await blobs.clear_moved(limit=CHUNKS_AT_ONCE):
            pass
        return 0.0 if len(moved) == MOVES_AT_ONCE and all(moved) else None

    async def _move_one(self, store: ObjectStore, blob: Blob, moved: list[bool]) -> None:
        blobs, moves = self._world.storage.blobs, self._world.meters.file_moves
        try:
            try:
                done = await move(blobs, store, blob)
            except ObjectStoreFault as fault:
                moves["failed"] += 1
                self._failed(fault)
                await put_off(blobs, blob)
                return
        except StorageUnavailable:
            return  # The claim ends by itself, and the next round tells of the database.
        if done:
            moves["moved"] += 1
            self._well()
        moved.append(True)

    async def _tidy(self) -> float | None:
        store, blobs = await self._store(), self._world.storage.blobs
        if store is None:
            return None
        moves = self._world.meters.file_moves
        try:
            removed = await remove_doomed(blobs, store, limit=REMOVALS)
            moves["removed"] += removed
            strays, self._after = await remove_strays(
                blobs, store, self._after, before_ms=self._world.now_ms() - STRAY_KEEP_MS
            )
            moves["stray"] += strays
        except ObjectStoreFault as fault:
            self._failed(fault)
            return None
        self._well()
        return 1.0 if removed == REMOVALS else None

    async def _store(self) -> ObjectStore | None:
        """The store, once it is known to be of this installation."""
        store = self._world.objects
        if store is None or self._is_ours:
            return store
        owner = await self._world.storage.instance.settle_setting(
            OWNER_SETTING, str(self._world.new_id()).encode()
        )
        try:
            found = await store.settle_owner(owner)
        except ObjectStoreFault as fault:
            self._failed(fault)
            return None
        if found != owner:
            self._failed(
                ObjectStoreFault("another installation keeps its files there; give each a prefix of its own")
            )
            return None
        self._is_ours = True
        return store

    def _failed(self, fault: ObjectStoreFault) -> None:
        if not self._is_down:
            log.warning("files_store_failed", why=str(fault), kept="in the database, and tried again")
        self._is_down = True

    def _well(self) -> None:
        if self._is_down:
            log.warning("files_store_works_again")
        self._is_down = False
