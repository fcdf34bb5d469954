"""Files move from the database to a store, and there is never a row without bytes."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from sexton_storage.contents import Contents
from sexton_storage.file_moves import move, remove_doomed, remove_strays
from sexton_storage.objects import s3_calls
from sexton_storage.objects.s3_store import S3Store
from sexton_storage.objects.store import ObjectStoreFault
from sexton_storage.records.artefacts import Artefact
from sexton_storage.records.blobs import CHUNK_BYTES, Blob, Place, ToMove
from sexton_storage.records.leases import LeaseToken
from tests.fakes.s3 import FakeS3, Mood, Stored
from tests.worlds.s3 import PREFIX, needs_fake, open_store
from tests.worlds.storage import StorageWorld, new_id

CONTENT = bytes(range(256)) * (CHUNK_BYTES // 256) + b"and a little more"
HOLD_MS = 300_000
pytestmark = needs_fake


@pytest.fixture
async def s3(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[S3Store, FakeS3]]:
    monkeypatch.setattr(s3_calls, "WAITS_S", (0.0, 0.0))
    monkeypatch.setattr(s3_calls, "CALL_S", 0.1)
    monkeypatch.setattr(s3_calls, "PIECE_S", 0.1)
    async with open_store() as opened:
        yield opened


async def kept(world: StorageWorld) -> tuple[Blob, Artefact]:
    """A file of a run, and its content."""
    storage, lease = world.storage, await world.lease()
    digest = hashlib.sha256(CONTENT).digest()
    opened = await storage.blobs.open(
        new_id(), world.workspace_id, lease.id, sha256=digest, size=len(CONTENT), quota=None
    )
    assert isinstance(opened, Blob)
    await storage.blobs.append(opened.id, 0, CONTENT)
    assert await storage.blobs.settle(opened.id, intact=True)
    assert await storage.blobs.claim_moves(limit=9, hold_ms=HOLD_MS) == [], "nobody owns it yet"
    whose = (new_id(), lease.zombie_id, lease.workspace_id, lease.event_id, lease.id, lease.attempt)
    artefact = Artefact(*whose, "a", "text/plain", opened.id, digest, len(CONTENT), world.now)
    assert await storage.artefacts.keep(artefact, LeaseToken(lease.id, lease.fencing_token)) == artefact
    return await loaded(world, opened.id), artefact


async def loaded(world: StorageWorld, blob_id: UUID) -> Blob:
    found = await world.storage.blobs.load(blob_id)
    assert found is not None
    return found


async def read(contents: Contents, blob: Blob, start: int = 0, end: int = len(CONTENT)) -> bytes:
    return b"".join([piece async for piece in contents.read(blob, start, end)])


async def claimed(world: StorageWorld, hold_ms: int = HOLD_MS) -> list[Blob]:
    return list(await world.storage.blobs.claim_moves(limit=9, hold_ms=hold_ms))


async def test_a_file_moves_under_its_readers_and_goes_with_its_owner(
    world: StorageWorld, s3: tuple[S3Store, FakeS3], monkeypatch: pytest.MonkeyPatch
) -> None:
    (store, fake), blobs = s3, world.storage.blobs
    contents = Contents(blobs, store)
    blob, artefact = await kept(world)
    reading = contents.read(blob, 0, blob.size)
    begun = await anext(reading)
    waits = await blobs.to_move()

    assert (waits.contents, waits.size, waits.since) == (1, len(CONTENT), blob.touched_at)

    (mine,) = await claimed(world)
    assert await claimed(world) == [], "another node has it"
    assert await move(blobs, store, mine)
    assert (await loaded(world, blob.id)).place is Place.BOTH
    assert await blobs.to_move() == ToMove()
    assert [await blobs.clear_moved(limit=1) for _ in range(3)] == [1, 1, 0]

    moved = await loaded(world, blob.id)
    assert (moved.place, await blobs.chunk(blob.id, 0)) == (Place.STORE, None)
    assert b"".join([begun, *[piece async for piece in reading]]) == CONTENT
    assert await read(contents, moved) == CONTENT
    assert await read(contents, moved, CHUNK_BYTES - 2, CHUNK_BYTES + 2) == CONTENT[CHUNK_BYTES - 2 :][:4]
    assert await blobs.used(world.workspace_id) == len(CONTENT)

    with pytest.raises(ObjectStoreFault, match="--files-store"):
        await Contents(blobs).require(moved)

    await let_go(world, artefact, monkeypatch)
    await blobs.sweep(limit=9)
    assert await world.storage.blobs.load(blob.id) is not None, "the row stays while the store has the bytes"
    assert await remove_doomed(blobs, store, limit=9) == 0, "whoever has claimed it may be sending it"

    with pytest.raises(ObjectStoreFault, match="took too long"):
        await read_from_a_store_that_stands_still(contents, moved, fake)


async def read_from_a_store_that_stands_still(contents: Contents, blob: Blob, fake: FakeS3) -> None:
    fake.mood = Mood.STANDS_STILL
    await read(contents, blob)


async def let_go(world: StorageWorld, artefact: Artefact, monkeypatch: pytest.MonkeyPatch) -> None:
    """Delete the file, and let the hour pass for which its content is kept all the same."""
    for module in ("decisions.blobs", "postgres.stores.blobs"):
        monkeypatch.setattr(f"sexton_storage.{module}.UNOWNED_KEEP_MS", 0)
    assert await world.storage.artefacts.delete(world.workspace_id, artefact.id)


async def test_what_is_deleted_here_is_deleted_in_the_store_and_then_forgotten(
    world: StorageWorld, s3: tuple[S3Store, FakeS3], monkeypatch: pytest.MonkeyPatch
) -> None:
    (store, fake), blobs = s3, world.storage.blobs
    blob, artefact = await kept(world)
    (mine,) = await claimed(world, hold_ms=0)
    assert await move(blobs, store, mine)

    await let_go(world, artefact, monkeypatch)
    await blobs.sweep(limit=9)

    fake.mood = Mood.REFUSES
    with pytest.raises(ObjectStoreFault):
        await remove_doomed(blobs, store, limit=9)
    fake.mood = Mood.WELL
    assert set(fake.objects) == {f"{PREFIX}{blob.id}"}

    assert await remove_doomed(blobs, store, limit=9) == 1

    await blobs.sweep(limit=9)
    assert (fake.objects, await blobs.load(blob.id)) == ({}, None)
    assert await blobs.used(world.workspace_id) == 0


@pytest.mark.parametrize("mood", [Mood.REFUSES, Mood.BREAKS, Mood.STANDS_STILL, Mood.LIES])
async def test_a_store_that_fails_or_lies_takes_nothing_from_the_database(
    world: StorageWorld, s3: tuple[S3Store, FakeS3], mood: Mood
) -> None:
    (store, fake), blobs = s3, world.storage.blobs
    contents = Contents(blobs, store)
    blob, _ = await kept(world)

    for spares in (0, 1):
        (mine,) = await claimed(world, hold_ms=0)
        fake.mood, fake.spares = (mood, spares) if mood is not Mood.LIES else (mood, 0)
        with pytest.raises(ObjectStoreFault):
            await move(blobs, store, mine)
        now = await loaded(world, blob.id)
        assert (now.place, await read(contents, now)) == (Place.DATABASE, CONTENT)

    fake.mood = Mood.WELL
    (mine,) = await claimed(world, hold_ms=0)
    assert await move(blobs, store, mine)
    assert await blobs.clear_moved(limit=9) == 2

    fake.mood = Mood.CHANGES
    now = await loaded(world, blob.id)
    with pytest.raises(ObjectStoreFault, match="other bytes"):
        await read(contents, now)
    fake.mood = Mood.WELL
    assert await read(contents, now) == CONTENT


async def test_a_node_that_comes_too_late_counts_for_nothing_and_its_object_is_found(
    world: StorageWorld, s3: tuple[S3Store, FakeS3], monkeypatch: pytest.MonkeyPatch
) -> None:
    (store, fake), blobs = s3, world.storage.blobs
    blob, artefact = await kept(world)
    (frozen,) = await claimed(world, hold_ms=0)
    (mine,) = await claimed(world, hold_ms=0)
    assert await move(blobs, store, mine)
    assert not await move(blobs, store, frozen), "what is moved is not moved again"
    assert (await loaded(world, blob.id)).place is Place.BOTH

    await let_go(world, artefact, monkeypatch)
    await blobs.sweep(limit=9)
    assert not await blobs.hold_move(blob.id, hold_ms=HOLD_MS)
    assert await remove_doomed(blobs, store, limit=9) == 1

    await blobs.sweep(limit=9)
    assert not await move(blobs, store, frozen)

    known, _ = await kept(world)
    late, notes = f"{PREFIX}{blob.id}", f"{PREFIX}notes.txt"
    fake.objects |= {late: Stored(CONTENT), notes: Stored(b""), f"{PREFIX}{known.id}": Stored(CONTENT)}
    assert await remove_strays(blobs, store, "", before_ms=0) == (0, "")
    assert await remove_strays(blobs, store, "", before_ms=2**62) == (1, "")
    assert set(fake.objects) == {notes, f"{PREFIX}{known.id}"}
