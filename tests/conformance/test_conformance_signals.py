"""What nodes tell one another: it comes at once, over outages, and nothing depends on it."""

import os
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from signal import SIGCONT, SIGSTOP
from uuid import UUID

import pytest
import trio
import trio.lowlevel

from sexton_storage.postgres import open_postgres_storage, signals
from sexton_storage.postgres.storage import PostgresStorage
from sexton_storage.signals import Signal, Topic
from sexton_storage.stores import Storage
from sexton_storage.writes import AppendFrames
from tests.fakes.database_proxy import open_proxy
from tests.worlds.storage import StorageWorld, new_id

WITHIN_S = 30


async def until(condition: Callable[[], bool]) -> None:
    with trio.fail_after(WITHIN_S):
        while not condition():
            await trio.sleep(0.005)


def heard_by(storage: Storage) -> list[Signal]:
    """What it is told from here on."""
    heard: list[Signal] = []
    storage.signals.listen(heard.extend)
    return heard


@asynccontextmanager
async def two(dsn: str) -> AsyncIterator[tuple[PostgresStorage, PostgresStorage]]:
    """Two nodes that know of one another."""
    async with open_postgres_storage(dsn) as one, open_postgres_storage(dsn) as other:
        await until(lambda: know_each_other(one, other))
        yield one, other


def know_each_other(*nodes: PostgresStorage) -> bool:
    return all(node.statistics().signals.peers == len(nodes) - 1 for node in nodes)


async def test_a_node_does_not_hear_itself(storage: Storage) -> None:
    heard = heard_by(storage)
    storage.signals.send(Signal(Topic.GATE, new_id()))
    await trio.lowlevel.checkpoint()

    assert heard == []


async def test_what_one_node_tells_the_other_hears(postgres_dsn: str) -> None:
    async with two(postgres_dsn) as (one, other):
        heard, own = heard_by(other), heard_by(one)
        lease = Signal(Topic.CANCEL, new_id(), about=new_id())

        one.signals.send(lease)

        await until(lambda: heard == [lease])

        assert own == []


async def test_a_flood_is_told_in_few_words(postgres_dsn: str) -> None:
    async with two(postgres_dsn) as (one, other):
        heard, agents = heard_by(other), [new_id() for _ in range(300)]

        for number in range(1, 11):
            one.signals.send(*(Signal(Topic.FRAMES, agent, number) for agent in agents))

        await until(lambda: {s.id for s in heard if s.number == 10} == set(agents))

        assert len(heard) < 10 * len(agents)


async def test_frames_of_one_node_are_told_to_those_who_listen_at_the_other(postgres_dsn: str) -> None:
    async with two(postgres_dsn) as (one, other):
        world = await StorageWorld(one).found()
        agent = await world.agent()
        told: list[tuple[UUID, int]] = []
        other.on_frames(told.extend)

        await one.journal.write(AppendFrames(agent.id, (world.frame(agent), world.frame(agent))))

        await until(lambda: (agent.id, 2) in told)


async def test_a_node_whose_listening_connection_is_ended_hears_again(postgres_dsn: str) -> None:
    async with two(postgres_dsn) as (one, other):
        await end_connections_that_listen(one)
        await until(lambda: not know_each_other(one, other))
        await until(lambda: know_each_other(one, other))
        heard, signal = heard_by(other), Signal(Topic.READY, new_id())

        one.signals.send(signal)

        await until(lambda: heard == [signal])


async def end_connections_that_listen(storage: PostgresStorage) -> None:
    query = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND (query LIKE 'SELECT pg_notify%' OR query LIKE 'LISTEN%')"
    )
    await storage.instance._rows(query)


async def test_words_that_are_not_ours_are_passed_over(postgres_dsn: str) -> None:
    async with two(postgres_dsn) as (one, other):
        heard, signal = heard_by(other), Signal(Topic.READY, new_id())

        await one.instance._rows("SELECT pg_notify('sexton', 'nonsense')")
        one.signals.send(signal)

        await until(lambda: heard == [signal])


async def test_a_node_that_is_alone_tells_nobody(postgres_dsn: str) -> None:
    async with open_postgres_storage(postgres_dsn) as alone:
        alone.signals.send(Signal(Topic.READY, new_id()))
        assert alone.statistics().signals.sent == 0


async def test_a_connection_for_signals_that_stands_still_is_given_up_and_opened_again(
    postgres_dsn: str,
) -> None:
    """Only that one, and without a word: what the node says to itself in turn is what it notices by."""
    with tempfile.TemporaryDirectory(prefix="sx") as folder:
        async with (
            open_proxy(postgres_dsn, Path(folder)) as proxy,
            open_postgres_storage(postgres_dsn) as one,
            open_postgres_storage(proxy.dsn) as other,
        ):
            await until(lambda: know_each_other(one, other))
            heard = heard_by(other)
            assert proxy.freeze(b"sexton signals") == 1

            one.signals.send(Signal(Topic.GATE, new_id()))
            await until(lambda: other.statistics().signals.lost == 1)
            assert heard == [], "what was told meanwhile is seen at the next look"

            await until(lambda: know_each_other(one, other))
            again = Signal(Topic.GATE, new_id())
            one.signals.send(again)

            await until(lambda: heard == [again])
            assert await other.healthy()


async def test_a_connection_for_signals_whose_server_is_frozen_is_given_up_and_opened_again(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process of the database that serves it stands still; its socket stays, and takes what is sent."""
    monkeypatch.setattr(signals, "BEACON_S", 0.5)
    monkeypatch.setattr(signals, "STATEMENT_S", 1.0)
    async with two(postgres_dsn) as (one, other):
        heard = heard_by(other)
        with frozen_listeners(await listeners(one)):
            await until(lambda: min(node.statistics().signals.lost for node in (one, other)) >= 1)
            await until(lambda: know_each_other(one, other))
            signal = Signal(Topic.GATE, new_id())
            one.signals.send(signal)
            await until(lambda: signal in heard)

            assert await one.healthy()
            assert await other.healthy()


async def listeners(storage: PostgresStorage) -> list[int]:
    """The processes of the database that serve the nodes' connections for signals."""
    query = (
        "SELECT pid FROM pg_stat_activity"
        " WHERE datname = current_database() AND application_name = 'sexton signals'"
    )
    return [pid for [pid] in await storage.instance._rows(query)]


@contextmanager
def frozen_listeners(pids: Sequence[int]) -> Iterator[None]:
    assert len(pids) == 2
    for pid in pids:
        os.kill(pid, SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, SIGCONT)
