"""An archive in a folder or an S3 store: what it does wrong has nothing deleted, and no write is half."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from sexton_storage.archives.folder_place import CALL_S, FolderPlace
from sexton_storage.archives.place import OWNER
from sexton_storage.archives.s3_place import S3Place
from sexton_storage.objects import s3_calls, s3_store
from sexton_storage.objects.s3_address import read_address
from sexton_storage.objects.store import ObjectMissing, ObjectStoreFault
from sexton_storage.postgres import PostgresStorage
from tests.fakes import s3 as fakes_s3
from tests.fakes.s3 import BUCKET, REGION, FakeS3, Mood
from tests.storage.test_storage_backup_kills import each_step
from tests.thorough import amount
from tests.worlds.archives import INSTALLATION, ArchiveWorld, Killed, let_go_at_once
from tests.worlds.s3 import PREFIX, needs_fake, open_store

NAME = "batches/0000000001-00000000abcd.1/events.00001.jsonl.gz"
CONTENT = bytes(range(256)) * 64
FEWEST = 3
MOST_CALLS = 120
STRIDE = amount(5, 1, variable="SEXTON_ARCHIVE_STRIDE")
"""Of the calls at which the store begins to do wrong, every one or some."""
WRONGS = (
    Mood.REFUSES,
    Mood.BREAKS,
    Mood.STANDS_STILL,
    Mood.LIES,
    Mood.CHANGES,
    Mood.SHORTENS,
    Mood.CUTS,
    Mood.FAILS_LATE,
)
IN_PARTS = frozenset({Mood.FAILS_LATE})
"""What goes wrong only with objects that are sent in several parts."""
PATIENCE_S = 0.5


def s3_place(store: object, fake: FakeS3) -> S3Place:
    return S3Place(store, read_address(f"s3://{BUCKET}/{PREFIX}", fake.endpoint, REGION))  # type: ignore[arg-type]


async def test_objects_are_put_read_listed_and_deleted_in_a_folder_and_in_a_store(tmp_path: Path) -> None:
    async with open_store() as (store, fake):
        for place in (FolderPlace(tmp_path), s3_place(store, fake)):
            await place.put(NAME, CONTENT)
            await place.put(OWNER, b"")

            assert (await place.read(NAME), await place.read(OWNER)) == (CONTENT, b"")
            assert await place.names("batches/") == await place.names(NAME[:24]) == [NAME]
            assert await place.names("manifests/") == []

            for _ in range(2):
                await place.delete(NAME)
            assert await place.names("batches/") == []
            with pytest.raises(ObjectMissing):
                await place.read(NAME)


@needs_fake
@pytest.mark.parametrize("mood", WRONGS, ids=lambda mood: mood.name)
async def test_a_store_that_does_wrong_at_any_call_has_nothing_deleted_and_is_gone_on_with(
    postgres_storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch, mood: Mood
) -> None:
    monkeypatch.setattr(s3_calls, "WAITS_S", ())
    if mood is Mood.STANDS_STILL:
        for name in ("CALL_S", "PIECE_S"):
            monkeypatch.setattr(s3_calls, name, PATIENCE_S)
    if mood in IN_PARTS:
        monkeypatch.setattr(s3_store, "PART_BYTES", 64)
        monkeypatch.setattr(fakes_s3, "LEAST_PART", 1)
    async with open_store() as (store, fake):
        archive = await ArchiveWorld.found(postgres_storage, s3_place(store, fake))
        (event_id,) = await archive.ended()
        refused, done = 0, None
        for calls in range(0, MOST_CALLS, STRIDE):
            fake.mood, fake.spares = mood, calls
            try:
                done = await archive.go()
            except ObjectStoreFault:
                refused += 1
                assert await archive.storage.events.load(event_id) is not None
            else:
                break
        fake.mood = Mood.WELL
        whole, wrong = await archive.verified()

    assert refused >= FEWEST
    assert done is not None
    assert await archive.storage.events.load(event_id) is None
    assert (len(whole), wrong) == (1, [])


async def test_a_folder_that_is_away_full_swapped_or_anothers_has_nothing_deleted(
    postgres_storage: PostgresStorage, tmp_path: Path
) -> None:
    folder = tmp_path / "archive"
    archive = await ArchiveWorld.found(postgres_storage, FolderPlace(folder))
    (first,) = await archive.ended()
    with pytest.raises(ObjectStoreFault, match="is not there"):
        await archive.go()
    folder.mkdir()
    assert await archive.go() is not None

    (event_id,) = await archive.ended()
    folder.rename(tmp_path / "moved")
    folder.mkdir()
    with pytest.raises(ObjectStoreFault, match="another disk"):
        await archive.go()
    (folder / OWNER).write_text('{"format": 1, "installation": "somebody else"}\n')
    with pytest.raises(ObjectStoreFault, match="another installation"):
        await archive.go()
    (folder / OWNER).write_text(f'{{"format": 1, "installation": "{INSTALLATION}"}}\n')
    (folder / "batches").write_text("no folder")
    with pytest.raises(ObjectStoreFault, match="batches"):
        await archive.go()
    left = await archive.storage.events.load(event_id)
    (folder / "batches").unlink()
    done = await archive.go()

    assert left is not None
    assert done is not None
    assert await archive.storage.events.load(first) is None
    assert await archive.storage.events.load(event_id) is None


async def test_an_object_that_is_altered_before_it_was_read_back_is_written_again(
    postgres_storage: PostgresStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go_at_once(monkeypatch)
    archive = await ArchiveWorld.found(postgres_storage, FolderPlace(tmp_path))
    (event_id,) = await archive.ended()
    written = archive.storage.archives.written

    async def die_after(*args: object) -> None:
        await written(*args)  # type: ignore[arg-type]
        raise Killed

    monkeypatch.setattr(archive.storage.archives, "written", die_after)
    with pytest.raises(Killed):
        await archive.go()
    monkeypatch.undo()
    let_go_at_once(monkeypatch)
    (found,) = tmp_path.rglob("events.00001.jsonl.gz")
    found.write_bytes(found.read_bytes()[:-1])

    with pytest.raises(ObjectStoreFault, match="not what was written"):
        await archive.go()
    left = await archive.storage.events.load(event_id)
    done = await archive.go()

    assert left is not None
    assert done is not None
    assert (await archive.verified())[1] == []
    assert not found.exists()


def test_a_write_to_a_folder_that_is_killed_at_any_step_is_whole_or_not_there(tmp_path: Path) -> None:
    def put(folder: Path) -> Callable[[], object]:
        folder.mkdir(parents=True)
        return lambda: trio.run(FolderPlace(folder).put, NAME, CONTENT)

    seen = set()
    for folder in each_step(put, tmp_path):
        place = FolderPlace(folder)
        found = trio.run(place.names, "")
        seen.add(tuple(found))
        if found:
            assert trio.run(place.read, NAME) == CONTENT
        trio.run(place.put, NAME, CONTENT)
        assert trio.run(place.names, "") == [NAME]

    assert seen == {(), (NAME,)}


async def test_a_folder_that_stands_still_is_given_up_and_takes_one_thread_however_often_it_is_tried(
    tmp_path: Path, mock_clock: MockClock
) -> None:
    """As the disk of a server that is gone: whoever opens a file there is never answered."""
    place = FolderPlace(tmp_path)
    stuck = "archive.json"
    os.mkfifo(tmp_path / stuck)
    refused = list[str]()

    async def try_it() -> None:
        with pytest.raises(ObjectStoreFault) as told:
            await place.read(stuck)
        refused.append(str(told.value))

    before = {thread.ident for thread in threading.enumerate()}
    for tries in range(1, 4):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(try_it)
            await wait_all_tasks_blocked(0.0)
            mock_clock.jump(CALL_S + 1)
        assert len(refused) == tries
    new = [thread for thread in threading.enumerate() if thread.ident not in before]
    (tmp_path / stuck).write_bytes(CONTENT)

    assert {text.rpartition(": ")[2] for text in refused} == {"it took too long"}
    assert len(new) <= 1
