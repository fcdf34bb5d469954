"""Files over HTTP that an S3 store keeps: moved there, read in ranges, and gone in time."""

from __future__ import annotations

from typing import Any

import pytest

from sexton_actors.periodic import file_mover
from sexton_actors.periodic.census import Count
from sexton_actors.periodic.file_mover import MoveFiles, TidyStore
from sexton_storage.objects import s3_calls
from sexton_storage.postgres import PostgresStorage
from sexton_storage.records.blobs import CHUNK_BYTES
from tests.fakes.s3 import FakeS3, Mood, Stored
from tests.http.test_http_files import CONTENT, code, keep
from tests.http.test_http_kept_workspaces import leave, place, report
from tests.http.test_http_message_files import message, send
from tests.worlds.http import HttpWorld, open_http_world_on
from tests.worlds.s3 import PREFIX, needs_fake, open_store

SNAPSHOT = b"a folder, compressed"
pytestmark = needs_fake


async def moves(world: HttpWorld) -> dict[str, int]:
    """Have the round come as if all claims were over, and give what was done so far."""
    await change(world, "UPDATE blobs SET store_until = 0 WHERE store_until IS NOT NULL")
    await world.system.ask("file_mover", "", MoveFiles())
    return dict(world.actors_world.meters.file_moves)


async def change(world: HttpWorld, statement: str) -> None:
    storage: Any = world.actors_world.storage
    await storage.instance._database.change(lambda connection: connection.execute(statement))


async def where(world: HttpWorld) -> list[tuple[str, int]]:
    """Where the bytes of each content are, and how many chunks of it the database has."""
    storage: Any = world.actors_world.storage
    query = (
        "SELECT place, (SELECT count(*) FROM blob_chunks WHERE blob_id = id) FROM blobs ORDER BY size DESC"
    )
    rows = await storage.instance._database.read(lambda connection: connection.fetch(query))
    return [tuple(row) for row in rows]


@pytest.fixture(autouse=True)
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds come when a test asks for them, and nobody waits before a call is made again."""
    monkeypatch.setattr(s3_calls, "WAITS_S", ())
    monkeypatch.setattr(file_mover, "MOVE_EVERY_S", 3600.0)


async def test_files_and_snapshots_move_to_the_store_and_are_served_from_there(
    postgres_storage: PostgresStorage,
) -> None:
    async with open_store() as (store, fake), open_http_world_on(postgres_storage, objects=store) as world:
        zombie, token, lease = await world.working("workspace: keep\n")
        item = await keep(world, token, lease, CONTENT)
        path = f"{world.ws}/artefacts/{item['artefact_id']}"
        await world.post(f"{place(lease)}/workspace", {}, token)
        assert (await leave(world, token, lease, SNAPSHOT)).status_code == 200

        await report(world, token, lease)
        uploaded = {"name": "a.txt", "upload_id": await send(world, b"brought by a person")}
        assert (await message(world, zombie["zombie_id"], uploaded)).status_code == 202

        fake.mood = Mood.LIES
        assert (await moves(world))["failed"] == 3
        assert await where(world) == [("database", 5), ("database", 1), ("database", 1)]
        assert await waiting(world) == ("3.0", True)

        fake.mood = Mood.WELL
        assert (await moves(world))["moved"] == 3
        assert await where(world) == [("store", 0)] * 3
        assert await waiting(world) == ("0.0", False)

        await is_served(world, f"{path}/content", CONTENT)
        second = await world.lease(token)
        await world.post(f"{place(second)}/workspace", {}, token)
        snapshot = f"{place(second)}/workspace/content"
        assert (await world.get(snapshot, token)).content == SNAPSHOT

        fake.mood = Mood.REFUSES
        brought = f"{place(second)}/files/content"
        for answer in [await world.get(f"{path}/content")] + [
            await world.get(of_lease, token) for of_lease in (snapshot, brought)
        ]:
            assert (*code(answer), "the S3 store answered 403" in answer.text) == (503, "UZ-FILE-013", True)
            assert int(answer.headers["retry-after"]) >= 5
        assert (await world.get(path)).status_code == 200, "what is known of it needs no store"

        again = await keep(world, token, second, b"sent while the store is away")
        assert (await world.get(f"{world.ws}/artefacts/{again['artefact_id']}/content")).status_code == 200

        assert (await world.call("DELETE", path)).status_code == 204

        await the_hour_passes(world, fake)


async def waiting(world: HttpWorld) -> tuple[str, bool]:
    """How many files wait for the store, as the metrics tell, and whether some bytes do."""
    await world.system.ask("census", "", Count())
    lines = dict(line.rsplit(" ", 1) for line in (await world.get("/metrics")).text.splitlines())
    return lines["sexton_files_to_move"], float(lines["sexton_file_bytes_to_move"]) > 0


async def is_served(world: HttpWorld, content: str, expected: bytes) -> None:
    whole, size = await world.get(content), len(expected)
    assert (whole.headers["content-length"], whole.content == expected) == (str(size), True)
    for asked, start, end in (
        ("bytes=0-0", 0, 1),
        (f"bytes={CHUNK_BYTES - 2}-{CHUNK_BYTES + 2}", CHUNK_BYTES - 2, CHUNK_BYTES + 3),
        ("bytes=-9", size - 9, size),
    ):
        answer = await world.get(content, headers={"range": asked})
        assert (answer.status_code, answer.content == expected[start:end]) == (206, True), asked


async def the_hour_passes(world: HttpWorld, fake: FakeS3) -> None:
    """What was deleted goes from the store, and its row after it; what is no file's stays, and is told of."""
    fake.mood = Mood.WELL
    fake.objects[f"{PREFIX}{world.installation.user_id}"] = Stored(b"no row knows it")
    fake.objects[f"{PREFIX}notes.txt"] = Stored(b"not ours")
    await change(world, "UPDATE blobs SET touched_at = 0, store_until = least(store_until, 0)")
    await world.sweep()
    await world.system.ask("file_mover", "", TidyStore())
    await world.sweep()

    assert dict(world.actors_world.meters.file_moves) == {"moved": 3, "failed": 3, "removed": 1, "stray": 1}
    assert len(await where(world)) == 3
    assert len(fake.objects) == 4, "the snapshot, the upload, the owner's name, and the notes"


async def test_what_another_installation_keeps_there_is_left_alone(postgres_storage: PostgresStorage) -> None:
    async with open_store() as (store, fake):
        await store.settle_owner(b"somebody else")
        async with open_http_world_on(postgres_storage, objects=store) as world:
            _, token, lease = await world.working()
            await keep(world, token, lease, b"a report")
            fake.objects[f"{PREFIX}{world.installation.user_id}"] = Stored(b"theirs")

            assert set((await moves(world)).values()) == {0}

            await world.system.ask("file_mover", "", TidyStore())
            assert len(fake.objects) == 2
            assert await where(world) == [("database", 1)]
