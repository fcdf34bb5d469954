"""Erasures at a real database, with replays and other transactions that are open at the same moment."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import asyncpg
import pytest
import trio

from sexton_actors.zombie import brought_files
from sexton_storage.decisions.erasure import ERASED_DOCUMENT
from sexton_storage.decisions.sources import source_event
from sexton_storage.postgres import PostgresStorage
from sexton_storage.postgres.stores import erasure_pages
from sexton_storage.records.erasures import OVER, Erasure, ErasureStatus
from sexton_storage.records.events import EventStatus
from sexton_storage.records.leases import Lease
from sexton_storage.refusals import SOURCE_CHANGED, Lost
from sexton_storage.writes import Appended, AppendEvent, EventEnd
from tests.conformance.test_conformance_erasures import (
    HERS,
    begun,
    ended,
    erasure_of,
    event_of,
    stepped,
    through,
    to_its_end,
)
from tests.http.test_http_bulk_jobs import begin, events, over, run_all, send
from tests.worlds.http import HttpWorld, open_http_world_on
from tests.worlds.storage import StorageWorld

ANNS = "number 0"
"""What the first of the events that ``send`` makes says."""
WAITS = (
    "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
)


@pytest.fixture
async def world(postgres_storage: PostgresStorage) -> StorageWorld:
    return await StorageWorld(postgres_storage).found()


@asynccontextmanager
async def session(storage: PostgresStorage, dsn: str) -> AsyncIterator[Callable[..., Awaitable[Any]]]:
    """Another session in a transaction, which is rolled back unless it says COMMIT."""
    run = storage._portal.run
    connection: asyncpg.Connection = await run(lambda: asyncpg.connect(dsn))

    async def execute(query: str, *args: Any) -> Any:
        return await run(lambda: connection.fetch(query, *args))

    await execute("BEGIN")
    try:
        yield execute
    finally:
        with trio.CancelScope(shield=True):
            await run(connection.close)


async def replay_of(world: StorageWorld, lease: Lease) -> AppendEvent:
    """A replay of the event, made of it as it is now."""
    event = await event_of(world, lease)
    agent = await world.storage.zombies.load(event.zombie_id)
    assert agent is not None
    made = world.event_of(agent, request_json=event.request_json, resumes_event_id=event.id)
    return AppendEvent(made, None, None, None, (), source=source_event(event))


async def test_an_event_that_is_being_erased_at_this_moment_is_not_replayed_and_nobody_waits(
    world: StorageWorld, postgres_storage: PostgresStorage, quick_dsn: str
) -> None:
    agent = await world.agent()
    replay = await replay_of(world, lease := await ended(world, agent, HERS, "Dear Ann"))
    change = "UPDATE events SET request_json = $1 WHERE id = $2"

    async with session(postgres_storage, quick_dsn) as execute:
        await execute(change, ERASED_DOCUMENT, lease.event_id)
        refused = await world.storage.journal.write(replay)
        await execute("ROLLBACK")
    kept = await world.storage.journal.write(replay)

    assert refused == Lost(SOURCE_CHANGED)
    assert kept == Appended(replay.event.id)


async def test_a_replay_that_commits_while_its_event_is_erased_goes_in_the_pass_that_confirms(
    world: StorageWorld, postgres_storage: PostgresStorage, quick_dsn: str
) -> None:
    agent = await world.agent()
    lease = await ended(world, agent, HERS, "Dear Ann")
    erasure_id = await begun(world, erasure_of(world))
    # A bulk job names its events by when it was asked, so that a pass may have gone by already.
    older = UUID(int=lease.event_id.int - (1 << 96))
    columns = (
        "zombie_id, workspace_id, tenant_id, actor, event_type, status, request_json, created_at, updated_at"
    )
    copy = f"""
INSERT INTO events (id, completed_at, {columns}) SELECT $1, completed_at, {columns} FROM events WHERE id = $2
"""
    async with session(postgres_storage, quick_dsn) as execute, trio.open_nursery() as nursery:
        await execute("SELECT FROM events WHERE id = $1 FOR SHARE", lease.event_id)
        await execute(copy, older, lease.event_id)
        nursery.start_soon(world.storage.erasures.step, erasure_id)
        while not (await execute(WAITS))[0][0]:
            await trio.sleep(0.01)
        await execute("COMMIT")
    passed = await requests(world, older)
    done = await to_its_end(world, erasure_id)

    assert passed == [HERS]
    assert await requests(world, older) == [ERASED_DOCUMENT]
    assert (done.status, done.passes, done.erased["events"]) == (ErasureStatus.DONE, 3, 2)


async def requests(world: StorageWorld, *event_ids: UUID) -> Sequence[str]:
    found = [await world.storage.events.load(event_id) for event_id in event_ids]
    return [event.request_json for event in found if event is not None]


async def test_a_pass_that_confirms_reads_what_was_written_since_and_what_was_not_there_to_be_read(
    world: StorageWorld, postgres_storage: PostgresStorage, quick_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    look = erasure_pages._look

    def noted(needle: Any, name: str, surface: Any, rows: Any) -> Any:
        seen.extend(row["c0"] for row in rows if name == "events")
        return look(needle, name, surface, rows)

    monkeypatch.setattr(erasure_pages, "_look", noted)
    agent = await world.agent()
    for _ in range(5):
        await world.append(agent, request_json='{"n": 1}')
        await world.end((await world.claim(agent)).lease, EventEnd(EventStatus.PROCESSED))
    await ended(world, agent, HERS, "Dear Ann")
    late = (await world.append(agent, request_json='{"late": 1}')).id
    erasure = erasure_of(world)
    async with session(postgres_storage, quick_dsn) as execute:
        # It was begun before the pass, and ends after it.
        await execute("UPDATE events SET event_type = 'late' WHERE id = $1", late)
        await through(world, erasure)
        await execute("COMMIT")
    whole, seen[:] = list(seen), []
    settled = await stepped(world, erasure.id)

    assert len(whole) == 7
    assert sorted(seen) == [ERASED_DOCUMENT, '{"late": 1}']
    assert settled.status is ErasureStatus.DONE


async def test_a_database_that_counts_its_transactions_from_the_start_again_is_looked_through_again(
    world: StorageWorld, postgres_storage: PostgresStorage, quick_dsn: str
) -> None:
    erasure = await _settled(world)
    agent = await world.agent()
    lease = await ended(world, agent, HERS, "Dear Ann")
    async with session(postgres_storage, quick_dsn) as execute:
        # As in a dump of a database that was older: no row is as young as this.
        await execute("UPDATE erasures SET settled_txid = settled_txid + 1000000")
        await execute("COMMIT")

    await to_its_end(world, erasure.id)

    assert (await event_of(world, lease)).request_json == ERASED_DOCUMENT


async def _settled(world: StorageWorld) -> Erasure:
    """An erasure whose next pass confirms."""
    await ended(world, await world.agent(), HERS, "Dear Ann")
    first = await through(world, erasure_of(world))
    assert first.confirms
    return first


async def erase(world: HttpWorld, storage: PostgresStorage) -> None:
    body = {"path": "message", "value": ANNS, "dry_run": False}
    erasure_id = UUID((await world.post(f"{world.ws}/erasures", body)).json()["erasure_id"])
    # The server works on it too; it only would rest before a pass that confirms.
    while (found := await storage.erasures.load(erasure_id)) is not None and found.status not in OVER:
        await storage.erasures.step(erasure_id)


@pytest.fixture
def erased_in_between(postgres_storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch) -> list[HttpWorld]:
    """Once a world is put in, the first replay to come has its event erased after it has read it."""
    put: list[HttpWorld] = []
    copy = brought_files.copy

    async def slow(*args: Any) -> Any:
        if put:
            await erase(put.pop(), postgres_storage)
        return await copy(*args)

    monkeypatch.setattr(brought_files, "copy", slow)
    return put


async def test_a_replay_that_read_an_event_before_it_was_erased_writes_nothing(
    postgres_storage: PostgresStorage, erased_in_between: list[HttpWorld]
) -> None:
    async with open_http_world_on(postgres_storage) as world:
        zombie, token = await world.install(), await world.enrol()
        [event_id] = await send(world, zombie, 1)
        await run_all(world, token, 1)
        erased_in_between.append(world)

        refused = await world.post(f"{world.ws}/events/{event_id}/replay")
        again = await world.post(f"{world.ws}/events/{event_id}/replay")

        kept = await requests_of(world, postgres_storage)

    assert not erased_in_between
    assert (refused.status_code, refused.json()["error_code"]) == (503, "UZ-API-003")
    assert again.status_code == 202
    assert kept == [ERASED_DOCUMENT] * 2


async def test_a_bulk_job_reads_again_what_was_erased_after_it_had_read_it(
    postgres_storage: PostgresStorage, erased_in_between: list[HttpWorld]
) -> None:
    async with open_http_world_on(postgres_storage) as world:
        zombie, token = await world.install(), await world.enrol()
        await send(world, zombie, 2)
        await run_all(world, token, 2)
        erased_in_between.append(world)

        made = await begin(world, "replay", filter="status:agent_error")
        done = await over(world, made)

        kept = await requests_of(world, postgres_storage)
        waiting = await events(world, "received")

    assert not erased_in_between
    assert (done["status"], done["done"], done["skipped"], done["failed"]) == ("done", 2, 0, 0)
    assert len(waiting) == 2
    assert sorted(kept) == [ERASED_DOCUMENT] * 2 + ['{"message":"number 1"}'] * 2


async def requests_of(world: HttpWorld, storage: PostgresStorage) -> Sequence[str]:
    items = (await world.get(f"{world.ws}/events?limit=50")).json()["items"]
    found = [await storage.events.load(UUID(item["event_id"])) for item in items]
    return [event.request_json for event in found if event is not None]
