"""Contents of any length: sent in parts, verified, bounded by a quota, and deleted when nothing owns them."""

import hashlib
from uuid import UUID

import pytest

from sexton_storage.contents import ContentGone, Contents
from sexton_storage.records.blobs import CHUNK_BYTES, PART_BYTES, Blob, BlobState, Misplaced, NoRoom
from tests.worlds.storage import StorageWorld, new_id

CONTENT = bytes(range(256)) * (PART_BYTES // 256) + b"and a little more"


async def open_blob(
    world: StorageWorld, content: bytes = CONTENT, *, lease_id: UUID | None = None, quota: int | None = None
) -> Blob | NoRoom:
    return await world.storage.blobs.open(
        new_id(),
        world.workspace_id,
        lease_id or new_id(),
        sha256=hashlib.sha256(content).digest(),
        size=len(content),
        quota=quota,
    )


async def opened(world: StorageWorld, content: bytes = CONTENT, lease_id: UUID | None = None) -> Blob:
    blob = await open_blob(world, content, lease_id=lease_id)
    assert isinstance(blob, Blob)
    return blob


async def loaded(world: StorageWorld, blob: Blob) -> Blob:
    found = await world.storage.blobs.load(blob.id)
    assert found is not None
    return found


async def sent(world: StorageWorld, contents: Contents, content: bytes = CONTENT) -> Blob:
    blob = await opened(world, content)
    for start in range(0, len(content), PART_BYTES):
        assert await contents.take(blob.id, start, content[start : start + PART_BYTES]) == min(
            start + PART_BYTES, len(content)
        )
    return await loaded(world, blob)


async def read(contents: Contents, blob: Blob, start: int, end: int) -> bytes:
    return b"".join([piece async for piece in contents.read(blob, start, end)])


async def test_a_content_comes_in_parts_and_is_read_from_anywhere(world: StorageWorld) -> None:
    contents = Contents(world.storage.blobs)
    blob = await sent(world, contents)

    assert await contents.finish(blob)

    kept = await loaded(world, blob)
    assert kept.state is BlobState.KEPT
    assert await read(contents, kept, 0, kept.size) == CONTENT
    assert (
        await read(contents, kept, CHUNK_BYTES - 3, CHUNK_BYTES + 5)
        == CONTENT[CHUNK_BYTES - 3 : CHUNK_BYTES + 5]
    )
    assert await contents.finish(kept)


async def test_parts_may_come_again_but_not_out_of_place(world: StorageWorld) -> None:
    blobs = world.storage.blobs
    blob = await opened(world)
    rest = CONTENT[PART_BYTES:]

    assert await blobs.append(blob.id, PART_BYTES, rest) is Misplaced.GAP
    assert await blobs.append(blob.id, 0, b"odd") is Misplaced.UNALIGNED
    assert await blobs.append(blob.id, 0, CONTENT[:PART_BYTES]) == PART_BYTES
    assert await blobs.append(blob.id, 0, bytes(PART_BYTES)) == PART_BYTES
    assert await blobs.append(blob.id, PART_BYTES, rest + b"!") is Misplaced.BEYOND
    assert await blobs.append(new_id(), 0, b"x") is Misplaced.CLOSED

    assert await blobs.append(blob.id, PART_BYTES, rest) == len(CONTENT)
    assert await read(Contents(blobs), blob, 0, len(CONTENT)) == CONTENT


async def test_what_is_not_what_was_declared_is_thrown_away(world: StorageWorld) -> None:
    contents = Contents(world.storage.blobs)
    blob = await opened(world, b"as declared")
    await contents.take(blob.id, 0, b"as it came!")

    assert not await contents.finish(await loaded(world, blob))

    assert (await loaded(world, blob)).state is BlobState.DOOMED
    assert await world.storage.blobs.sweep(limit=10) == 1
    assert await world.storage.blobs.load(blob.id) is None


async def test_parts_that_another_node_took_are_hashed_too(world: StorageWorld) -> None:
    blob = await sent(world, Contents(world.storage.blobs))

    assert await Contents(world.storage.blobs).finish(blob)


async def test_the_same_content_of_a_lease_goes_on_where_it_was(world: StorageWorld) -> None:
    lease_id = new_id()
    blob = await opened(world, lease_id=lease_id)
    await world.storage.blobs.append(blob.id, 0, CONTENT[:PART_BYTES])

    again = await opened(world, lease_id=lease_id)

    assert (again.id, again.received) == (blob.id, PART_BYTES)
    assert (await opened(world)).id != blob.id


async def test_a_workspace_keeps_no_more_than_its_quota_and_a_lease_no_more_than_its_number(
    world: StorageWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease_id = new_id()
    assert isinstance(await open_blob(world, b"x" * 60, lease_id=lease_id, quota=100), Blob)

    assert await open_blob(world, b"y" * 41, quota=100) is NoRoom.QUOTA
    assert isinstance(await open_blob(world, b"y" * 40, quota=100), Blob)
    assert isinstance(await open_blob(world, b"x" * 60, lease_id=lease_id, quota=1), Blob)
    assert await world.storage.blobs.used(world.workspace_id) == 100
    assert await world.storage.blobs.held() == (2, 100)

    monkeypatch.setattr("sexton_storage.decisions.blobs.BLOBS_OF_LEASE", 1)
    assert await open_blob(world, b"z", lease_id=lease_id) is NoRoom.NUMBER


async def test_what_nothing_owns_goes_in_portions_after_its_time(
    world: StorageWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents, blobs = Contents(world.storage.blobs), world.storage.blobs
    blob = await sent(world, contents)
    assert await contents.finish(blob)
    assert await blobs.sweep(limit=10) == 0

    reading = contents.read(blob, 0, blob.size)
    assert await anext(reading) == CONTENT[:CHUNK_BYTES]

    for module in ("decisions.blobs", "postgres.stores.blobs"):
        monkeypatch.setattr(f"sexton_storage.{module}.UNOWNED_KEEP_MS", 0)

    assert [await blobs.sweep(limit=2) for _ in range(4)] == [2, 2, 1, 0]
    assert await blobs.load(blob.id) is None
    assert await blobs.used(world.workspace_id) == 0

    with pytest.raises(ContentGone):
        await anext(reading)
    assert await blobs.append(blob.id, 0, CONTENT[:PART_BYTES]) is Misplaced.CLOSED


async def test_a_content_of_unknown_length_is_closed_once_and_kept_once(world: StorageWorld) -> None:
    blobs, contents, sender = world.storage.blobs, Contents(world.storage.blobs), new_id()
    digest = hashlib.sha256(CONTENT).digest()
    half = await opened(world, lease_id=sender)

    async def close(end: bytes, sha256: bytes) -> Blob | None:
        blob = await blobs.open(
            new_id(), world.workspace_id, sender, sha256=new_id().bytes * 2, size=4 * PART_BYTES, quota=None
        )
        assert isinstance(blob, Blob)
        assert await blobs.append(blob.id, 0, CONTENT[:PART_BYTES]) == PART_BYTES
        assert await blobs.close(blob.id, tail=bytes(3 * PART_BYTES + 1), sha256=sha256) is None
        return await blobs.close(blob.id, tail=end, sha256=sha256)

    first = await close(CONTENT[PART_BYTES:], digest)

    assert first is not None
    assert (first.size, first.received, first.state) == (len(CONTENT), len(CONTENT), BlobState.KEPT)
    assert await read(contents, first, 0, first.size) == CONTENT
    assert (await loaded(world, half)).state is BlobState.DOOMED, "it was not whole, and gives way"
    assert await close(CONTENT[PART_BYTES:], digest) == first, "the same again is the same content"
    assert await opened(world, lease_id=sender) == first, "and so it is declared"
    assert await blobs.close(first.id, tail=b"", sha256=digest) is None
    assert await blobs.close(new_id(), tail=b"", sha256=digest) is None

    whole = await close(b"", hashlib.sha256(CONTENT[:PART_BYTES]).digest())
    assert whole is not None
    assert (whole.size, whole.state) == (PART_BYTES, BlobState.KEPT)

    left = await opened(world)
    for blob, state in ((left, BlobState.DOOMED), (first, BlobState.KEPT)):
        await blobs.give_up(blob.id)
        assert (await loaded(world, blob)).state is state
    await blobs.give_up(new_id())
    while await blobs.sweep(limit=9):
        pass
    assert await blobs.held() == (2, first.size + whole.size)
