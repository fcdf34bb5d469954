"""What the journal and the stores do when their database goes away in the middle of something."""

import asyncio
import logging
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import pytest
import trio
from msgspec.structs import replace

from sexton_storage.errors import StorageUnavailable
from sexton_storage.postgres import PostgresSettings, PostgresStorage, open_postgres_storage
from sexton_storage.records.events import EventStatus
from sexton_storage.records.frames import NewFrame
from sexton_storage.records.zombies import Zombie
from sexton_storage.refusals import GONE, Lost
from sexton_storage.startup import ConnectFailed
from sexton_storage.writes import Appended, AppendEvent, Duplicate, EventEnd, OverBudget, Renewed
from tests.fakes.database_proxy import Cut, Proxy, open_proxy
from tests.worlds.storage import StorageWorld, metered

PATIENT = PostgresSettings(patience_s=60, drain_s=1)
"""However busy the machine is, an outage that ends is waited for."""
IMPATIENT = PostgresSettings(patience_s=0.3, statement_s=5, drain_s=1)
"""For outages that the writer is to be told of."""


@pytest.fixture
def socket_folder() -> Iterator[Path]:
    """Short enough for a socket's path."""
    with tempfile.TemporaryDirectory(prefix="sx") as folder:
        yield Path(folder)


@pytest.fixture
async def proxy(postgres_dsn: str, socket_folder: Path) -> AsyncIterator[Proxy]:
    async with open_proxy(postgres_dsn, socket_folder) as proxy:
        yield proxy


@pytest.fixture
async def storage(proxy: Proxy) -> AsyncIterator[PostgresStorage]:
    """Storage behind the proxy, which waits until the database is back."""
    async with open_postgres_storage(proxy.dsn, settings=PATIENT) as storage:
        yield storage


@pytest.fixture
async def impatient(proxy: Proxy) -> AsyncIterator[PostgresStorage]:
    """Storage behind the proxy, which soon says that the database is away."""
    async with open_postgres_storage(proxy.dsn, settings=IMPATIENT) as storage:
        yield storage


def arrival(world: StorageWorld, agent: Zombie, **changes: Any) -> AppendEvent:
    """An event with its frame and nothing else, as a webhook brings it."""
    event = world.event_of(agent)
    frame = NewFrame(agent.id, event.id, "event_received", world.now, {"n": 1})
    return replace(AppendEvent(event, None, None, None, (frame,)), **changes)


async def _revoke(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    name = await connection.fetchval("SELECT current_database()")
    await connection.execute(f"REVOKE TEMPORARY ON DATABASE {name} FROM PUBLIC, CURRENT_USER")
    await connection.close()


@pytest.mark.parametrize("cut", list(Cut))
async def test_a_commit_of_unknown_outcome_is_settled_not_guessed(
    storage: PostgresStorage, proxy: Proxy, cut: Cut
) -> None:
    world = await StorageWorld(storage).found()
    leases = [await world.lease() for _ in range(5)]
    before = await world.balance()
    proxy.cut_next_commit(cut)
    answers: list[Renewed] = []

    async def renew(number: int) -> None:
        answers.append((await world.renew(leases[number], 100))[1])

    async with trio.open_nursery() as nursery:
        for number in range(len(leases)):
            nursery.start_soon(renew, number)

    assert proxy.cut == 1
    assert [a.charged_nanos for a in answers] == [100] * 5
    assert await metered(world, [lease.event_id for lease in leases]) == 500
    assert before - await world.balance() == 500
    assert storage.journal.statistics().hot.settled == 1


@pytest.mark.parametrize("revoked", [False, True])
async def test_renewals_commit_with_their_one_message_where_the_role_may_have_a_function_of_its_own(
    postgres_dsn: str, proxy: Proxy, *, revoked: bool
) -> None:
    if revoked:
        await trio.to_thread.run_sync(lambda: asyncio.run(_revoke(postgres_dsn)))
    async with open_postgres_storage(proxy.dsn) as storage:
        world = await StorageWorld(storage).found()
        lease = await world.lease()
        before = proxy.commits
        charged = []
        for _ in range(3):
            lease, renewed = await world.renew(lease, 7)
            charged.append(renewed.charged_nanos)

        assert (charged, await metered(world, [lease.event_id])) == ([7] * 3, 21)
        assert proxy.commits - before == (3 if revoked else 0)


@pytest.mark.parametrize("revoked", [False, True])
async def test_events_commit_with_their_one_message_where_the_role_may_have_a_function_of_its_own(
    postgres_dsn: str, proxy: Proxy, *, revoked: bool
) -> None:
    if revoked:
        await trio.to_thread.run_sync(lambda: asyncio.run(_revoke(postgres_dsn)))
    async with open_postgres_storage(proxy.dsn) as storage:
        world = await StorageWorld(storage).found()
        agent = await world.agent()
        before = proxy.commits
        for _ in range(3):
            await storage.journal.write(arrival(world, agent))

        assert await storage.frames.bounds(agent.id) == (1, 3)
        assert proxy.commits - before == (3 if revoked else 0)


@pytest.mark.parametrize("cut", list(Cut))
async def test_events_whose_commit_is_in_doubt_are_answered_as_they_were_decided(
    storage: PostgresStorage, proxy: Proxy, cut: Cut
) -> None:
    world = await StorageWorld(storage).found()
    agent, stranger = await world.agent(), world.agent_record()
    first = arrival(world, agent, dedup_key=b"k")
    await storage.journal.write(first)
    told: list[tuple[UUID, int]] = []
    storage.on_frames(told.extend)
    writes = [
        arrival(world, agent, dedup_key=b"new"),
        arrival(world, agent, dedup_key=b"k"),
        arrival(world, stranger),
        arrival(world, agent, budget_daily_nanos=0),
        arrival(world, agent, events_limit=1),
        arrival(world, agent),
    ]
    proxy.cut_next_commit(cut)
    answers: list[object] = []
    all_told = trio.Event()

    def told_one(answer: object) -> None:
        answers.append(answer)
        if len(answers) == len(writes):
            all_told.set()

    storage.journal.submit_all([(write, told_one) for write in writes])
    await all_told.wait()
    kept = await storage.events.list(world.workspace_id, limit=9)

    assert proxy.cut == 1
    assert answers == [
        Appended(writes[0].event.id),
        Duplicate(first.event.id),
        Lost(GONE),
        OverBudget("day"),
        OverBudget("plan"),
        Appended(writes[5].event.id),
    ]
    assert await storage.frames.bounds(agent.id) == (1, 3)
    assert max(head for zombie_id, head in told if zombie_id == agent.id) == 3
    assert {event.id for event in kept} == {first.event.id, writes[0].event.id, writes[5].event.id}
    assert storage.journal.statistics().hot.settled == 1


@pytest.mark.parametrize("cut", list(Cut))
async def test_a_store_s_commit_of_unknown_outcome_happens_once(
    storage: PostgresStorage, proxy: Proxy, cut: Cut
) -> None:
    world = await StorageWorld(storage).found(10)
    agent = await world.agent()
    proxy.cut_next_commit(cut)
    credited = await storage.tenants.credit(world.tenant_id, 5, "gift", "user:1")
    assert credited is not None
    assert (credited.balance_nanos, await world.balance()) == (15, 15)

    proxy.cut_next_commit(cut)
    await storage.zombies.save(replace(agent, version=2), (world.frame(agent),))
    loaded = await storage.zombies.load(agent.id)
    assert loaded is not None
    assert loaded.version == 2
    assert await storage.frames.bounds(agent.id) == (1, 1)

    proxy.cut_next_commit(cut)
    assert await storage.zombies.delete(agent.id)
    assert proxy.cut == 3


async def test_two_commits_in_a_row_may_be_lost(storage: PostgresStorage, proxy: Proxy) -> None:
    world = await StorageWorld(storage).found()
    lease = await world.lease()
    for cut in (Cut.BEFORE, Cut.BEFORE, Cut.AFTER):
        proxy.cut_next_commit(cut)
    lease, renewed = await world.renew(lease, 7)

    assert (renewed.charged_nanos, await metered(world, [lease.event_id])) == (7, 7)
    assert proxy.cut == 3


async def test_a_database_that_stays_away_is_waited_for_a_while_then_said_to_be_away(
    impatient: PostgresStorage, proxy: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    world = await StorageWorld(impatient).found()
    lease = await world.lease()
    proxy.away = True
    proxy.hang_up()
    with caplog.at_level(logging.WARNING, "sexton.storage"):
        for _ in range(3):
            with pytest.raises(StorageUnavailable):
                await world.renew(lease)
        with pytest.raises(StorageUnavailable):
            await impatient.tenants.load(world.tenant_id)
        with pytest.raises(StorageUnavailable):
            await impatient.tenants.credit(world.tenant_id, 1, "gift", "user:1")
        assert not await impatient.healthy()

        proxy.away = False
        _, renewed = await world.renew(lease)
        assert await impatient.healthy()

    assert renewed.charged_nanos == 100
    assert len(await impatient.metering.list(world.tenant_id, lease.event_id)) == 1
    # One line at its beginning and one at its end, however many noticed it.
    assert [r.message.split(":")[0].split(" after ")[0] for r in caplog.records] == [
        "the database went away",
        "the database is back",
    ]
    assert impatient.journal.statistics().hot.outages == 1


async def test_a_short_outage_is_not_noticed_by_the_writer(storage: PostgresStorage, proxy: Proxy) -> None:
    world = await StorageWorld(storage).found()
    lease = await world.lease()
    for _ in range(5):
        proxy.hang_up()
        lease, _ = await world.renew(lease)

    assert len(await storage.metering.list(world.tenant_id, lease.event_id)) == 5


async def test_writers_who_wait_behind_an_outage_are_not_kept_waiting(
    impatient: PostgresStorage, proxy: Proxy
) -> None:
    world = await StorageWorld(impatient).found()
    agent = await world.agent()
    proxy.away = True
    proxy.hang_up()
    outcomes: list[object] = []

    async def append() -> None:
        try:
            outcomes.append(
                await impatient.journal.write(AppendEvent(world.event_of(agent), None, None, None, ()))
            )
        except StorageUnavailable as away:
            outcomes.append(away)

    async with trio.open_nursery() as nursery:
        for _ in range(1_500):
            nursery.start_soon(append)
    assert {type(o) for o in outcomes} == {StorageUnavailable}

    proxy.away = False
    assert await impatient.events.list(world.workspace_id, limit=5) == []


async def test_killed_backends_lose_nothing_and_double_nothing(
    storage: PostgresStorage, postgres_dsn: str
) -> None:
    world = await StorageWorld(storage).found()
    leases = [await world.lease() for _ in range(16)]
    renewals = 0
    stop = trio.Event()

    async def renew(number: int) -> None:
        nonlocal renewals
        while not stop.is_set():
            leases[number], _ = await world.renew(leases[number], 10)
            renewals += 1

    async def kill() -> None:
        query = (
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE pid <> pg_backend_pid() AND datname = current_database()"
        )

        async def once() -> None:
            connection = await asyncpg.connect(postgres_dsn)
            await connection.execute(query)
            await connection.close()

        for _ in range(8):
            before = renewals
            while renewals < before + 20:
                await trio.sleep(0.001)
            await storage._portal.run(once)
        stop.set()

    async with trio.open_nursery() as nursery:
        for number in range(len(leases)):
            nursery.start_soon(renew, number)
        nursery.start_soon(kill)

    assert await metered(world, [lease.event_id for lease in leases]) == 10 * renewals
    assert storage.journal.statistics().hot.retries > 0


async def test_probes_that_meet_a_server_which_has_said_goodbye_are_answered(
    storage: PostgresStorage, proxy: Proxy, postgres_dsn: str
) -> None:
    """Between a server's last word and its hanging up, the driver takes no further query."""
    answers: list[bool] = []

    async def probe() -> None:
        answers.append(await storage.healthy())

    async def probes() -> list[bool]:
        answers.clear()
        async with trio.open_nursery() as nursery:
            for _ in range(50):
                nursery.start_soon(probe)
        return answers

    async def end_sessions() -> None:
        connection = await asyncpg.connect(postgres_dsn)
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE pid <> pg_backend_pid() AND datname = current_database()"
        )
        await connection.close()

    for _ in range(3):
        assert all(await probes())
        proxy.keeps_open, ended = True, proxy.hung_up
        await storage._portal.run(end_sessions)
        while proxy.hung_up == ended:
            await trio.sleep(0.001)
        await probes()
        proxy.keeps_open = False
        while not all(await probes()):  # The pool has more than one connection to make again.
            await trio.lowlevel.checkpoint()


async def test_a_host_that_is_silent_does_not_keep_us_from_the_next(postgres_dsn: str) -> None:
    address, _, folder = postgres_dsn.partition("host=")
    silent = trio.socket.socket()
    await silent.bind(("127.0.0.1", 0))
    silent.listen()
    port = silent.getsockname()[1]
    dsn = f"{address}host=127.0.0.1,{folder}&port={port},5432"
    patient = replace_settings(PATIENT, patience_s=2.0)
    with silent:
        async with open_postgres_storage(dsn, settings=patient) as storage:
            await StorageWorld(storage).found()
            assert await storage.healthy()


async def test_a_server_that_takes_no_writes_is_not_ready_and_is_left(
    impatient: PostgresStorage, postgres_dsn: str
) -> None:
    world = await StorageWorld(impatient).found()
    lease = await world.lease()
    name = postgres_dsn.partition("?")[0].rpartition("/")[2]

    async def set_read_only(on: str) -> None:
        async def ask() -> None:
            connection = await asyncpg.connect(postgres_dsn)
            await connection.execute("SET default_transaction_read_only = off")
            await connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = {on}")
            # Sessions take it from here on, as they would from a server that was demoted.
            await connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE pid <> pg_backend_pid() AND datname = current_database()"
            )
            await connection.close()

        await impatient._portal.run(ask)

    await set_read_only("on")
    with pytest.raises(StorageUnavailable):
        await world.renew(lease)
    with pytest.raises(StorageUnavailable):
        await impatient.tenants.credit(world.tenant_id, 1, "gift", "user:1")
    assert not await impatient.healthy()

    await set_read_only("off")
    await world.renew(lease)
    assert await impatient.healthy()


async def test_a_writer_who_gives_up_waiting_has_written_all_the_same(storage: PostgresStorage) -> None:
    world = await StorageWorld(storage).found()
    agent = await world.agent()
    event = world.event_of(agent)
    write = AppendEvent(event, b"k", None, None, ())
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(storage.journal.write, write)
            await trio.lowlevel.checkpoint()
            await trio.lowlevel.checkpoint()
            scope.cancel()
    again = AppendEvent(world.event_of(agent), b"k", None, None, ())

    assert await storage.journal.write(again) == Duplicate(event.id)


async def test_a_cancelled_save_is_let_finish(storage: PostgresStorage) -> None:
    world = await StorageWorld(storage).found(10)
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(storage.tenants.credit, world.tenant_id, 5, "gift", "user:1")
            await trio.lowlevel.checkpoint()
            await trio.lowlevel.checkpoint()
            scope.cancel()

    assert await world.balance() == 15


async def test_a_cancelled_read_leaves_its_connection_fit_for_the_next(storage: PostgresStorage) -> None:
    world = await StorageWorld(storage).found(10)
    for _ in range(30):
        with trio.move_on_after(0):
            await storage.tenants.load(world.tenant_id)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(storage.tenants.load, world.tenant_id)
            await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()

    assert await world.balance() == 10


async def test_closing_lets_the_queue_finish(postgres_dsn: str) -> None:
    async with open_postgres_storage(postgres_dsn) as storage:
        world = await StorageWorld(storage).found()
        agent = await world.agent()
        answers: list[object] = []
        for _ in range(300):
            storage.journal.submit(AppendEvent(world.event_of(agent), None, None, None, ()), answers.append)
    assert len(answers) == 300
    assert all(isinstance(a, Appended) for a in answers)

    with pytest.raises(StorageUnavailable):
        await storage.journal.write(AppendEvent(world.event_of(agent), None, None, None, ()))
    refused: list[object] = []
    storage.journal.submit(AppendEvent(world.event_of(agent), None, None, None, ()), refused.append)
    while not refused:
        await trio.lowlevel.checkpoint()
    assert isinstance(refused[0], StorageUnavailable)


async def test_closing_during_an_outage_tells_every_writer(proxy: Proxy) -> None:
    answers: list[object] = []
    patient = replace_settings(PATIENT, drain_s=0.1)
    async with open_postgres_storage(proxy.dsn, settings=patient) as storage:
        world = await StorageWorld(storage).found()
        agent = await world.agent()
        proxy.away = True
        proxy.hang_up()
        for _ in range(700):
            storage.journal.submit(AppendEvent(world.event_of(agent), None, None, None, ()), answers.append)

    assert len(answers) == 700
    assert all(isinstance(a, StorageUnavailable) for a in answers)


async def test_a_full_queue_refuses_the_next(postgres_dsn: str) -> None:
    async with open_postgres_storage(
        postgres_dsn, settings=replace_settings(PATIENT, queue_limit=8)
    ) as storage:
        world = await StorageWorld(storage).found()
        agent = await world.agent()
        answers: list[object] = []
        for _ in range(200):
            storage.journal.submit(AppendEvent(world.event_of(agent), None, None, None, ()), answers.append)
        while len(answers) < 200:
            await trio.sleep(0.001)
        kinds = {type(a) for a in answers}
        assert kinds == {Appended, StorageUnavailable}

        kept = await storage.events.list(world.workspace_id, limit=200)
        assert len(kept) == sum(isinstance(a, Appended) for a in answers)


async def test_a_listener_that_fails_hurts_nobody(
    storage: PostgresStorage, caplog: pytest.LogCaptureFixture
) -> None:
    world = await StorageWorld(storage).found()
    agent = await world.agent()

    def fail(_: object) -> None:
        raise ValueError("a listener of the test's")

    storage.on_frames(fail)
    storage.journal.submit(AppendEvent(world.event_of(agent), None, None, None, (world.frame(agent),)), fail)
    await world.append(agent)

    assert sum("listener" in r.message for r in caplog.records) == 2


async def test_a_database_that_is_not_there_is_said_so_at_start(socket_folder: Path) -> None:
    nowhere = f"postgresql://sexton@/sexton?host={socket_folder}"
    with pytest.raises(ConnectFailed):
        async with open_postgres_storage(nowhere, settings=replace_settings(IMPATIENT, connect_s=0.0)):
            raise AssertionError("it opened")


async def test_a_password_or_name_that_is_wrong_is_said_so_at_once(postgres_dsn: str) -> None:
    with pytest.raises(ConnectFailed, match="does not exist"):
        async with open_postgres_storage(postgres_dsn.replace("/test_", "/no_such_")):
            raise AssertionError("it opened")


async def test_the_lanes_of_a_closed_storage_leave_no_rows(postgres_dsn: str) -> None:
    async with open_postgres_storage(postgres_dsn) as first:
        world = await StorageWorld(first).found()
        await world.end(await world.lease(), EventEnd(EventStatus.PROCESSED))
    async with open_postgres_storage(postgres_dsn) as second:
        lanes = await second._database.read(lambda c: c.fetchval("SELECT count(*) FROM journal_lanes"))

    assert lanes == 0


def replace_settings(settings: PostgresSettings, **changes: float) -> PostgresSettings:
    values = {name: getattr(settings, name) for name in PostgresSettings.__slots__}
    return PostgresSettings(**(values | changes))


async def test_a_lost_race_is_no_fault(postgres_dsn: str) -> None:
    async with open_postgres_storage(postgres_dsn) as storage:
        world = await StorageWorld(storage).found()
        lease = await world.lease()
        await world.renew(lease)
        second = await storage.journal.write(world.renewal(lease))
        retries = storage.journal.statistics().hot.retries

    assert isinstance(second, Lost)
    assert retries == 0
