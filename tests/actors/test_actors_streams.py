"""Readers of an agent's stream are rung when there is more to read."""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock

from sexton_actors.protocol.hub import GONE, AwaitFrames, News
from sexton_actors.protocol.zombie import Deliver
from tests.worlds.actors import ActorsWorld, Later


def asking(
    world: ActorsWorld, zombie_id: UUID, after: int, wait_s: float = 15
) -> Callable[[], Awaitable[News]]:
    return lambda: world.system.ask("hub", "", AwaitFrames(zombie_id, after, wait_s), timeout=wait_s + 5)


def reading(
    world: ActorsWorld, zombie_id: UUID, after: int, wait_s: float = 15
) -> Callable[[], Awaitable[int]]:
    """The newest number that a reader is told of."""

    async def read() -> int:
        return (await asking(world, zombie_id, after, wait_s)()).head

    return read


async def test_a_reader_is_rung_with_the_commit(world: ActorsWorld, autojump_clock: MockClock) -> None:
    zombie_id = await world.install()
    async with trio.open_nursery() as nursery:
        reader = Later(nursery, reading(world, zombie_id, 0))
        await trio.sleep(3)
        await world.deliver(zombie_id)
        written_at = trio.current_time()

        assert await reader.value() == 1
        assert reader.at == written_at


async def test_a_reader_that_is_behind_is_answered_at_once(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id = await world.install()
    await world.deliver(zombie_id)
    await world.deliver(zombie_id)
    began = trio.current_time()

    assert await reading(world, zombie_id, 1)() == 2
    assert trio.current_time() == began


async def test_a_reader_hears_nothing_of_others_and_waits_out_its_time(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, other = await world.install(), await world.install("other")
    async with trio.open_nursery() as nursery:
        reader = Later(nursery, reading(world, zombie_id, 0, 4))
        await trio.sleep(1)
        await world.deliver(other)

        assert await reader.value() == 0
        assert reader.at == 4


async def test_a_reader_never_hears_a_number_below_its_own(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id = await world.install()
    await world.deliver(zombie_id)
    async with trio.open_nursery() as nursery:
        behind = Later(nursery, reading(world, zombie_id, 1, 8))
        # The hub begins to look where its first reader is, and tasks begin in no order.
        await trio.sleep(0.1)
        ahead = Later(nursery, reading(world, zombie_id, 5, 2))
        assert await ahead.value() == 5

        await world.deliver(zombie_id)
        assert await behind.value() == 2


async def test_what_another_node_wrote_rings_within_a_second(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id = await world.install()
    async with trio.open_nursery() as nursery:
        reader = Later(nursery, reading(world, zombie_id, 0))
        await trio.sleep(3)
        heads = world.storage.tables.heads
        heads[zombie_id] = replace(heads[zombie_id], frame_seq=7)

        assert await reader.value() == 7
        assert reader.at is not None
        assert reader.at <= 4.01


async def test_a_new_reader_is_not_held_up_by_a_look_that_is_under_way(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    early, late = await world.install("early"), await world.install("late")
    await world.deliver(late)
    world.faults.latency_s = 0.1
    async with trio.open_nursery() as nursery:
        Later(nursery, reading(world, early, 0, 1))
        await trio.sleep(0.05)
        reader = Later(nursery, reading(world, late, 0))

        assert await reader.value() == 1
        assert reader.at is not None
        assert reader.at < 0.5


async def test_an_outage_leaves_readers_waiting_and_the_rounds_go_on(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id = await world.install()
    async with trio.open_nursery() as nursery:
        world.faults.away = True
        reader = Later(nursery, reading(world, zombie_id, 0))
        await trio.sleep(5)
        world.faults.away = False
        heads = world.storage.tables.heads
        heads[zombie_id] = replace(heads[zombie_id], frame_seq=1)

        assert await reader.value() == 1
        assert reader.at is not None
        assert reader.at <= 6.1


async def test_a_flood_of_refused_deliveries_leaves_a_trace_and_no_flood_of_frames(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id = await world.install()
    forged = world.webhook()
    forged = Deliver("github", {**forged.headers, "x-hub-signature-256": "sha256=" + "0" * 64}, forged.body)
    for _ in range(100):
        await world.system.ask("zombie", zombie_id, forged)
    await trio.sleep(0.1)
    frames = world.frames(zombie_id)

    assert {frame.kind for frame in frames} == {"webhook_rejected"}
    assert len(frames) == 10
    assert frames[0].data == {"reason": "webhook_rejected: signature_mismatch", "source": "github"}


async def test_a_thousand_readers_cost_the_store_what_one_does(
    world: ActorsWorld, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    zombie_id = await world.install()
    reads: list[int] = []
    read = world.storage.frames.read

    async def counted(*args: Any, **kwargs: Any) -> Any:
        reads.append(kwargs["after"])
        return await read(*args, **kwargs)

    monkeypatch.setattr(world.storage.frames, "read", counted)
    after = 0
    for round_ in range(5):
        async with trio.open_nursery() as nursery:
            readers = [Later(nursery, asking(world, zombie_id, after)) for _ in range(1000)]
            await trio.sleep(0.1)
            await world.deliver(zombie_id)
            answers = [await reader.value() for reader in readers]
        assert {answer.head for answer in answers} == {round_ + 1}
        assert len({id(answer) for answer in answers}) == 1, "made once, for all"
        assert [frame.seq for frame in answers[0].frames] == [round_ + 1]
        after = answers[0].head

    assert len(reads) <= 6


async def test_a_reader_far_behind_reads_for_itself_and_holds_up_nobody(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id = await world.install()
    for _ in range(3):
        await world.deliver(zombie_id)
    async with trio.open_nursery() as nursery:
        ahead = Later(nursery, asking(world, zombie_id, 3))
        await trio.sleep(0.1)
        assert await asking(world, zombie_id, 1)() == News(3)

        await world.deliver(zombie_id)
        assert [frame.seq for frame in (await ahead.value()).frames] == [4]

    assert [frame.seq for frame in (await asking(world, zombie_id, 3)()).frames] == [4]


async def test_readers_of_an_agent_that_is_deleted_are_told(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id = await world.install()
    async with trio.open_nursery() as nursery:
        readers = [Later(nursery, asking(world, zombie_id, 0)) for _ in range(3)]
        await trio.sleep(3)
        await world.storage.zombies.delete(zombie_id)
        deleted_at = trio.current_time()
        for reader in readers:
            assert (await reader.value()).head == GONE
            assert reader.at is not None
            assert reader.at <= deleted_at + 1.01


async def test_a_stream_that_nobody_follows_is_forgotten(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id = await world.install()
    await asking(world, zombie_id, 0, 1)()
    looked: list[tuple[UUID, ...]] = []
    heads = world.storage.frames.heads

    async def noted(zombie_ids: Any) -> Any:
        looked.append(tuple(zombie_ids))
        return await heads(zombie_ids)

    world.storage.frames.__dict__["heads"] = noted
    await trio.sleep(30)

    assert 1 <= len(looked) <= 7
