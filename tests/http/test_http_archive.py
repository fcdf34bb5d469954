"""A server with an archive: charged events go by way of it, and stay while it is away, which is told."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import trio
from structlog.testing import capture_logs

from sexton_actors.periodic import archive_rounds
from sexton_actors.periodic.archive_rounds import ArchiveOld
from sexton_actors.periodic.delivery_rounds import WriteDeliveries
from sexton_actors.periodic.retention_rounds import DropOld
from sexton_actors.periodic.sweeper import Prune, PruneTranscripts
from sexton_storage.archives.folder_place import FolderPlace
from sexton_storage.objects import s3_calls
from sexton_storage.postgres import PostgresStorage
from tests.fakes.s3 import Mood
from tests.http.test_http_retention import charged_event
from tests.storage.test_storage_archive_places import s3_place
from tests.storage.test_storage_retention import by_hand
from tests.worlds.archives import ArchiveWorld
from tests.worlds.http import HttpWorld, open_http_world_on
from tests.worlds.s3 import needs_fake, open_store
from tests.worlds.storage import StorageWorld

AGED = ("UPDATE events SET created_at = created_at - $1, completed_at = completed_at - $1",)
DAYS_MS = 40 * 24 * 3600 * 1000


@pytest.fixture(autouse=True)
def by_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds come when a test asks for them."""
    for name in ("FIRST_S", "RETRY_S", "REST_S"):
        monkeypatch.setattr(archive_rounds, name, 3600.0)


def archive_in(storage: PostgresStorage, folder: Path) -> ArchiveWorld:
    return ArchiveWorld(StorageWorld(storage), storage, FolderPlace(folder))


async def aged(dsn: str) -> None:
    async def work(connection: asyncpg.Connection) -> None:
        for statement in AGED:
            await connection.execute(statement, DAYS_MS)
        await connection.execute("UPDATE transcripts SET began_at = began_at - $1", DAYS_MS)
        await connection.execute("UPDATE webhook_deliveries SET at = at - $1", DAYS_MS)

    await trio.to_thread.run_sync(lambda: by_hand(dsn, work))


async def metric(world: HttpWorld, name: str) -> float:
    text = (await world.get("/metrics")).text
    return next(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name))


async def rounds(world: HttpWorld) -> list[Any]:
    """All rounds that delete by age; gives the lines of the log."""
    with capture_logs() as lines:
        await world.system.ask("retention_rounds", "", DropOld())
        await world.system.ask("sweeper", "", Prune())
        await world.system.ask("sweeper", "", PruneTranscripts())
        await world.system.ask("archive_rounds", "", ArchiveOld())
    return [line["event"] for line in lines]


async def test_charged_events_go_by_way_of_the_archive_and_not_while_it_is_away(
    postgres_storage: PostgresStorage, postgres_dsn: str, tmp_path: Path
) -> None:
    folder = tmp_path / "archive"
    archive = archive_in(postgres_storage, folder)
    async with open_http_world_on(postgres_storage, archive=archive.node()) as world:
        event_id = await charged_event(world)
        event, periods = f"{world.ws}/events/{event_id}", f"billing/charges/{event_id}/metering-periods"
        billed = (await world.get(f"/v1/tenants/me/{periods}")).json()["items"]
        await world.system.ask("delivery_rounds", "", WriteDeliveries())
        await aged(postgres_dsn)
        put = await world.call(
            "PUT", f"{world.ws}/retention", world.admin_token(), json={"event_days": 2, "transcript_days": 2}
        )

        away = await rounds(world)
        still_away = await rounds(world)
        kept = await world.get(event)
        deliveries = await postgres_storage.deliveries.list(world.installation.workspace_id, limit=9)
        failed, waits = (
            await metric(world, 'sexton_archived_total{what="failed"'),
            await metric(world, "sexton_archive_waiting_seconds"),
        )
        folder.mkdir()
        again = await rounds(world)
        gone = await world.get(event)
        stays = (await world.get(f"/v1/tenants/me/{periods}")).json()["items"]
        batches, well = (
            await metric(world, 'sexton_archived_total{what="batches"'),
            await metric(world, "sexton_archive_waiting_seconds"),
        )
        whole, wrong = await archive.verified()

    assert put.status_code == 200, put.text
    assert (away, still_away) == (["archive_failed"], [])
    assert (kept.status_code, gone.status_code) == (200, 404)
    assert deliveries != []
    assert (failed, waits > 0, well) == (2, True, 0)
    assert again.count("archived") == batches == len(whole)
    assert "archive_works_again" in again
    assert (stays, wrong) == (billed, [])
    assert {str(read.manifest.kind) for read in whole} == {"events", "deliveries"}


@needs_fake
async def test_while_the_archive_s_store_stands_still_all_other_rounds_go_on_and_nothing_is_dropped(
    postgres_storage: PostgresStorage, postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store takes the call and says nothing; in the end it hangs up."""
    monkeypatch.setattr(s3_calls, "WAITS_S", ())
    async with AsyncExitStack() as stack:
        store, fake = await stack.enter_async_context(open_store())
        archive = ArchiveWorld(StorageWorld(postgres_storage), postgres_storage, s3_place(store, fake))
        opening = open_http_world_on(postgres_storage, archive=archive.node())
        world = await stack.enter_async_context(opening)
        event = f"{world.ws}/events/{await charged_event(world)}"
        await aged(postgres_dsn)
        keep = {"event_days": 2, "transcript_days": 2}
        await world.call("PUT", f"{world.ws}/retention", world.admin_token(), json=keep)
        fake.mood, before = Mood.STANDS_STILL, len(fake.calls)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(world.system.ask, "archive_rounds", "", ArchiveOld())
            while len(fake.calls) == before:
                await trio.sleep(0.01)
            await world.system.ask("retention_rounds", "", DropOld())
            await world.system.ask("sweeper", "", Prune())
            await world.system.ask("sweeper", "", PruneTranscripts())
            kept = await world.get(event)
            fake.gives_up.set()
        failed = await metric(world, 'sexton_archived_total{what="failed"')
        fake.mood = Mood.WELL
        await world.system.ask("archive_rounds", "", ArchiveOld())
        gone = await world.get(event)
        whole, wrong = await archive.verified()

    assert (kept.status_code, failed, gone.status_code) == (200, 1, 404)
    assert "events" in {str(read.manifest.kind) for read in whole}
    assert wrong == []
