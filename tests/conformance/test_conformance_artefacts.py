"""Files of runs: kept under the lease that holds the agent, never overwritten, and gone in time."""

import hashlib
from typing import Any
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.contents import Contents
from sexton_storage.paging import Page
from sexton_storage.records.artefacts import Artefact, NotKept
from sexton_storage.records.blobs import Blob
from sexton_storage.records.events import EventStatus
from sexton_storage.records.leases import Lease, LeaseToken
from sexton_storage.writes import EventEnd
from tests.worlds.storage import StorageWorld, new_id


async def blob_of(world: StorageWorld, lease: Lease, content: bytes = b"a report") -> Blob:
    blobs = world.storage.blobs
    opened = await blobs.open(
        new_id(),
        world.workspace_id,
        lease.id,
        sha256=hashlib.sha256(content).digest(),
        size=len(content),
        quota=None,
    )
    assert isinstance(opened, Blob)
    contents = Contents(blobs)
    await contents.take(opened.id, 0, content)
    assert await contents.finish(replace(opened, received=len(content)))
    return opened


def artefact_of(
    world: StorageWorld, lease: Lease, blob: Blob, name: str = "report.txt", **changes: Any
) -> Artefact:
    made = Artefact(
        new_id(),
        lease.zombie_id,
        lease.workspace_id,
        lease.event_id,
        lease.id,
        lease.attempt,
        name,
        "text/plain",
        blob.id,
        blob.sha256,
        blob.size,
        world.now,
    )
    return replace(made, **changes)


async def keep(
    world: StorageWorld, artefact: Artefact, lease: Lease, token: int | None = None
) -> Artefact | NotKept:
    held = LeaseToken(lease.id, lease.fencing_token if token is None else token)
    return await world.storage.artefacts.keep(artefact, held)


async def owners(world: StorageWorld, blob_id: UUID) -> int:
    blob = await world.storage.blobs.load(blob_id)
    assert blob is not None
    return blob.owners


async def test_a_file_is_kept_once_and_not_overwritten(world: StorageWorld) -> None:
    lease = await world.lease()
    blob = await blob_of(world, lease)
    made = artefact_of(world, lease, blob)

    assert await keep(world, made, lease) == made
    assert await keep(world, artefact_of(world, lease, blob), lease) == made

    other = await blob_of(world, lease, b"another")
    assert await keep(world, artefact_of(world, lease, other), lease) is NotKept.TAKEN
    assert (await owners(world, blob.id), await owners(world, other.id)) == (1, 0)
    assert await world.storage.artefacts.load(made.id) == made


async def test_a_late_runner_adds_nothing(world: StorageWorld) -> None:
    lease = await world.lease()
    blob = await blob_of(world, lease)
    made = artefact_of(world, lease, blob)

    assert await keep(world, made, lease, lease.fencing_token - 1) is NotKept.FENCED

    await world.end(lease, EventEnd(EventStatus.PROCESSED))
    assert await keep(world, made, lease) is NotKept.FENCED

    assert list(await world.storage.artefacts.list(lease.event_id, after=None, limit=9)) == []
    assert await owners(world, blob.id) == 0


async def test_only_what_this_lease_has_sent_whole_is_kept(world: StorageWorld) -> None:
    lease, other = await world.lease(), await world.lease()
    theirs = await blob_of(world, other)
    half = await world.storage.blobs.open(
        new_id(), world.workspace_id, lease.id, sha256=bytes(32), size=9, quota=None
    )
    assert isinstance(half, Blob)

    for blob in (theirs, half, replace(half, id=new_id())):
        assert await keep(world, artefact_of(world, lease, blob), lease) is NotKept.NOT_SENT


async def test_files_are_listed_in_order_and_paged(world: StorageWorld) -> None:
    lease = await world.lease()
    blob = await blob_of(world, lease)
    names = ["b", "a/z", "Z", "a", "\u00e9"]
    for name in names:
        await keep(world, artefact_of(world, lease, blob, name), lease)
    listed = world.storage.artefacts.list

    first = await listed(lease.event_id, after=None, limit=2)
    rest = await listed(lease.event_id, after=Page(first[-1].created_at, first[-1].id), limit=9)

    assert [row.name for row in (*first, *rest)] == names
    assert await owners(world, blob.id) == len(names)


async def test_a_file_that_goes_lets_its_content_go(world: StorageWorld) -> None:
    lease = await world.lease()
    blob = await blob_of(world, lease)
    files = [artefact_of(world, lease, blob, name) for name in ("one", "two", "three")]
    for made in files:
        await keep(world, made, lease)
    store = world.storage.artefacts

    assert not await store.delete(new_id(), files[0].id)
    assert await store.delete(world.workspace_id, files[0].id)
    assert await owners(world, blob.id) == 2
    assert await store.prune(keep_ms=60_000, limit=9) == 0
    assert await store.prune(keep_ms=-1, limit=1) == 1
    assert await world.storage.zombies.delete(lease.zombie_id)

    assert await owners(world, blob.id) == 0
    assert [await store.load(made.id) for made in files] == [None, None, None]
