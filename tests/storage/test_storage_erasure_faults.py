"""Nodes that work on one erasure, and die in the middle of its pages: each row is erased and counted once."""

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import asyncpg
import pytest
import trio

from sexton_storage.postgres import PostgresSettings, PostgresStorage, open_postgres_storage
from sexton_storage.postgres.stores import erasure_surfaces
from sexton_storage.records.erasures import OVER, Erasure, ErasureStatus
from tests.conformance.test_conformance_erasures import HERS, OTHERS, ended, erasure_of, to_its_end
from tests.fakes.database_proxy import Cut, Proxy, open_proxy
from tests.worlds.storage import StorageWorld

PATIENT = PostgresSettings(patience_s=60, drain_s=1)
EVENTS = 5
PAGE_ROWS = 2


@pytest.fixture
async def proxy(emptied_dsn: str) -> AsyncIterator[Proxy]:
    with tempfile.TemporaryDirectory(prefix="sx") as folder:
        async with open_proxy(emptied_dsn, Path(folder)) as proxy:
            yield proxy


@pytest.fixture
async def node(proxy: Proxy) -> AsyncIterator[PostgresStorage]:
    """A node whose way to the database a test cuts off."""
    async with open_postgres_storage(proxy.dsn, settings=PATIENT) as storage:
        yield storage


@pytest.fixture
async def other(emptied_dsn: str) -> AsyncIterator[PostgresStorage]:
    """A node that nothing happens to."""
    async with open_postgres_storage(emptied_dsn, settings=PATIENT) as storage:
        yield storage


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erasure_surfaces, "PAGE_ROWS", PAGE_ROWS)


async def filled(storage: PostgresStorage) -> StorageWorld:
    """A tenant with events of a person, and one that only names her."""
    world = await StorageWorld(storage).found()
    agent = await world.agent()
    for _ in range(EVENTS):
        await ended(world, agent, HERS, "Dear Ann")
    await ended(world, agent, OTHERS, "Told ann@example.org.")
    return world


async def begun(world: StorageWorld) -> Erasure:
    erasure = erasure_of(world)
    assert await world.storage.erasures.add(erasure, limit=9)
    return erasure


async def undisturbed(storage: PostgresStorage) -> Erasure:
    """What one node does alone with the same content, in a tenant of its own."""
    world = await filled(storage)
    return await to_its_end(world, (await begun(world)).id)


async def stepped_once_free(world: StorageWorld, erasure_id: UUID) -> None:
    """Carry the erasure to its end once PostgreSQL, having seen a session's loss, has let its row go."""
    while (moved := await world.storage.erasures.step(erasure_id)) is None:
        await trio.sleep(0.01)
    if moved.status not in OVER:
        await to_its_end(world, erasure_id)


async def is_as(world: StorageWorld, erasure: Erasure, expected: Erasure, balance: int) -> None:
    after = await world.storage.erasures.load(erasure.id)

    assert after is not None
    assert (after.status, after.passes) == (ErasureStatus.DONE, expected.passes)
    assert (after.erased, after.kept, after.waits) == (expected.erased, expected.kept, expected.waits)
    assert after.erased["events"] == EVENTS + 1
    assert await world.balance() == balance
    [*events] = await world.storage.events.list(world.workspace_id, limit=EVENTS + 1)
    assert len(events) == EVENTS + 1
    assert all("ann" not in f"{event.request_json}{event.response_text}".lower() for event in events)


@pytest.mark.parametrize("cut", list(Cut))
async def test_a_node_that_dies_as_it_commits_a_page_is_followed_by_another_from_where_it_came(
    node: PostgresStorage, other: PostgresStorage, proxy: Proxy, cut: Cut
) -> None:
    expected = await undisturbed(other)
    world = await filled(other)
    erasure, balance = await begun(world), await world.balance()
    assert await node.erasures.step(erasure.id) is not None

    proxy.cut_next_commit(cut)
    proxy.away = True
    async with trio.open_nursery() as nursery:
        nursery.start_soon(node.erasures.step, erasure.id)
        while not proxy.cut:
            await trio.sleep(0.01)
        await stepped_once_free(world, erasure.id)
        # It was not dead, only cut off: what it comes back with changes nothing.
        proxy.away = False

    await is_as(world, erasure, expected, balance)


async def test_while_a_node_has_an_erasures_row_no_other_works_on_it_and_its_end_frees_it(
    other: PostgresStorage, emptied_dsn: str
) -> None:
    expected = await undisturbed(other)
    world = await filled(other)
    erasure, balance = await begun(world), await world.balance()

    async def hold() -> asyncpg.Connection:
        connection = await asyncpg.connect(emptied_dsn)
        await connection.execute("BEGIN")
        await connection.execute("SELECT FROM erasures WHERE id = $1 FOR UPDATE", erasure.id)
        return connection

    async def die(connection: asyncpg.Connection) -> None:
        # As the kernel does for a process that is killed: the socket closes, and nothing is said.
        connection.terminate()

    held = await other._portal.run(hold)
    assert await other.erasures.due(now=world.now, limit=9) == [erasure.id]
    assert await other.erasures.step(erasure.id) is None
    assert await other.erasures.load(erasure.id) == erasure

    await other._portal.run(lambda: die(held))
    await stepped_once_free(world, erasure.id)

    await is_as(world, erasure, expected, balance)


async def test_two_nodes_that_share_an_erasure_count_every_row_once(
    node: PostgresStorage, other: PostgresStorage
) -> None:
    expected = await undisturbed(other)
    world = await filled(other)
    erasure, balance = await begun(world), await world.balance()
    pages: dict[str, int] = {"node": 0, "other": 0}

    async def work(name: str, storage: PostgresStorage) -> None:
        while (found := await storage.erasures.load(erasure.id)) is not None and found.status not in OVER:
            pages[name] += await storage.erasures.step(erasure.id) is not None

    async with trio.open_nursery() as nursery:
        nursery.start_soon(work, "node", node)
        nursery.start_soon(work, "other", other)

    assert min(pages.values()) > 0, pages

    await is_as(world, erasure, expected, balance)
