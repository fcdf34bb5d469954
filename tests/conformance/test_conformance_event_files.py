"""Files that events bring: all or none, owned by the event, copied for a replay, and gone in time."""

import hashlib
from collections.abc import Sequence
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.contents import Contents
from sexton_storage.records.blobs import UNOWNED_KEEP_MS, Blob
from sexton_storage.records.event_files import EventFile, Missing, NewFiles, NotBrought, WantedFile
from sexton_storage.records.events import EventStatus
from sexton_storage.records.zombies import Zombie
from sexton_storage.senders import sender_of
from sexton_storage.writes import EventEnd
from tests.conformance.test_conformance_artefacts import artefact_of, blob_of, keep, owners
from tests.worlds.storage import StorageWorld, new_id

ME = "user:1"


async def sent(world: StorageWorld, content: bytes, by: str = ME) -> Blob:
    blobs = world.storage.blobs
    opened = await blobs.open(
        new_id(),
        world.workspace_id,
        sender_of(world.workspace_id, by),
        sha256=hashlib.sha256(content).digest(),
        size=len(content),
        quota=None,
    )
    assert isinstance(opened, Blob)
    contents = Contents(blobs)
    await contents.take(opened.id, 0, content)
    assert await contents.finish(replace(opened, received=len(content)))
    return opened


async def bring(
    world: StorageWorld, agent: Zombie, event_id: UUID, *wanted: WantedFile, by: str = ME
) -> Sequence[EventFile] | Missing:
    new = NewFiles(
        event_id,
        agent.id,
        agent.workspace_id,
        sender_of(agent.workspace_id, by),
        max_bytes=100,
        now=world.now,
    )
    return await world.storage.event_files.bring(new, wanted)


async def test_all_files_are_brought_or_none(world: StorageWorld) -> None:
    files, lease = world.storage.event_files, await world.lease()
    agent, event_id = await world.agent(), new_id()
    mine, theirs = await sent(world, b"mine"), await sent(world, b"theirs", by="user:2")
    left = await blob_of(world, lease)
    await keep(world, artefact_of(world, lease, left), lease)
    upload, artefact = WantedFile("a", upload_id=mine.id), WantedFile("report.txt", event_id=lease.event_id)

    for wrong, why in (
        (WantedFile("b", upload_id=theirs.id), NotBrought.NOT_SENT),
        (WantedFile("b", upload_id=new_id()), NotBrought.NOT_SENT),
        (WantedFile("b", upload_id=left.id), NotBrought.NOT_SENT),
        (WantedFile("b", event_id=lease.event_id), NotBrought.NOT_LEFT),
        (WantedFile("report.txt", event_id=new_id()), NotBrought.NOT_LEFT),
    ):
        assert await bring(world, agent, event_id, upload, wrong) == Missing(1, why)
    other = await world.beside()
    stranger = await other.agent()
    assert await bring(other, stranger, event_id, artefact) == Missing(0, NotBrought.NOT_LEFT)
    assert await bring(other, stranger, event_id, upload) == Missing(0, NotBrought.NOT_SENT)

    large = await sent(world, bytes(97))
    assert await bring(world, agent, event_id, upload, WantedFile("c", upload_id=large.id)) == Missing(
        1, NotBrought.TOO_LARGE
    )
    assert (list(await files.list(event_id)), await owners(world, mine.id)) == ([], 0)

    brought = await bring(world, agent, event_id, upload, artefact)

    assert not isinstance(brought, Missing)
    assert [(one.number, one.name, one.media_type) for one in brought] == [
        (0, "a", "application/octet-stream"),
        (1, "report.txt", "text/plain"),
    ]
    assert list(await files.list(event_id)) == list(brought)
    assert await files.load(event_id, 1) == brought[1]
    assert await files.load(event_id, 2) is None
    assert (await owners(world, mine.id), await owners(world, left.id)) == (1, 2)


async def test_files_stay_while_their_event_may_run_and_go_in_time(world: StorageWorld) -> None:
    files, agent = world.storage.event_files, await world.agent()
    blob = await sent(world, b"mine")
    upload = WantedFile("a", upload_id=blob.id)
    event = await world.append(agent)
    never, dropped, replay = new_id(), new_id(), new_id()
    for event_id in (event.id, never, dropped):
        assert not isinstance(await bring(world, agent, event_id, upload), Missing)
    assert [one.name for one in await files.copy(event.id, replay)] == ["a"]
    assert list(await files.copy(new_id(), new_id())) == []
    assert await owners(world, blob.id) == 4

    await files.drop(dropped)
    await files.drop(event.id)
    assert (len(await files.list(dropped)), len(await files.list(event.id))) == (0, 1)
    assert await files.prune(keep_ms=0, limit=9) == 0, "it may run yet, or come yet"

    claimed = await world.claim(agent)
    await world.end(claimed.lease, EventEnd(EventStatus.PROCESSED))
    assert await files.prune(keep_ms=UNOWNED_KEEP_MS, limit=9) == 0
    assert await files.prune(keep_ms=0, limit=9) == 1
    assert (len(await files.list(event.id)), await owners(world, blob.id)) == (0, 2)

    assert await world.storage.zombies.delete(agent.id)
    assert (len(await files.list(never)), await owners(world, blob.id)) == (0, 0)
