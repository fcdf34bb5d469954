"""How work and runners come together."""

from collections.abc import Sequence
from uuid import UUID

import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock

from sexton_actors.dispatcher import actor as dispatcher
from sexton_actors.protocol.dispatcher import QueueView, ViewQueue
from sexton_actors.protocol.runner import Leases
from sexton_storage.records.events import EventStatus, ReadyAgent
from sexton_storage.records.workspaces import Workspace
from sexton_storage.records.zombies import Zombie
from tests.worlds.actors import ActorsWorld, Later, clock


async def test_a_long_poll_is_answered_the_moment_work_is_there(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    async with trio.open_nursery() as nursery:
        poll = Later(nursery, lambda: world.grant(runner_id, 30))
        await trio.sleep(7)
        assert not poll.is_there

        event_id = await world.deliver(zombie_id)
        assert (await poll.value()).event.id == event_id
        assert trio.current_time() == poll.at
        assert poll.at is not None
        assert round(poll.at - 7, 3) == 0


async def test_a_poll_that_finds_nothing_ends_when_it_said(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    runner_id = await world.enrol()
    began = trio.current_time()
    await world.nothing(runner_id, 12)

    assert round(trio.current_time() - began, 3) == 12


async def test_a_poll_without_waiting_is_answered_at_once(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    runner_id = await world.enrol()
    began = trio.current_time()
    await world.nothing(runner_id)

    assert trio.current_time() == began


async def test_work_that_waited_is_given_to_a_poll_that_does_not(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    event_id = await world.deliver(zombie_id)

    assert (await world.grant(runner_id, 0)).event.id == event_id


async def test_an_agents_events_run_one_at_a_time_and_in_order(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    events = [await world.deliver(zombie_id) for _ in range(3)]
    for event_id in events:
        grant = await world.grant(runner_id)
        assert grant.event.id == event_id
        await world.nothing(runner_id, 2)
        await world.report(grant)
    world.everything_adds_up()


async def test_one_poll_may_bring_several_agents_but_no_agent_twice(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombies = [await world.install(f"doctor-{n}") for n in range(3)]
    runner_id = await world.enrol()
    for zombie_id in zombies * 2:
        await world.deliver(zombie_id)
    leases = await world.poll(runner_id, most=8)
    assert isinstance(leases, Leases)
    assert {grant.lease.zombie_id for grant in leases.grants} == set(zombies)
    assert len(leases.grants) == 3

    world.everything_adds_up()


async def test_a_poll_brings_no_more_than_it_asked_for(world: ActorsWorld, autojump_clock: MockClock) -> None:
    for n in range(3):
        await world.deliver(await world.install(f"doctor-{n}"))
    leases = await world.poll(await world.enrol(), most=2)

    assert isinstance(leases, Leases)
    assert len(leases.grants) == 2


async def test_only_a_runner_with_all_the_labels_gets_the_agent(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id = await world.install(tags="gpu, linux")
    plain, gpu = await world.enrol("r1", ("linux",)), await world.enrol("r2", ("linux", "gpu", "eu"))
    await world.deliver(zombie_id)
    await world.nothing(plain, 3)

    assert (await world.grant(gpu)).lease.runner_id == gpu


async def test_a_runner_without_a_sandbox_gets_only_agents_that_allow_it(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    careful = await world.install("careful")
    careless = await world.install("careless", "allow_unsandboxed: true")
    bare = await world.enrol(tier="none")
    await world.deliver(careful)
    await world.deliver(careless)
    assert (await world.grant(bare)).lease.zombie_id == careless

    await world.nothing(bare, 2)


async def test_work_goes_to_another_when_the_runner_that_polled_has_gone(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id = await world.install()
    gone, there = await world.enrol("r1"), await world.enrol("r2")
    async with trio.open_nursery() as nursery:
        lost = Later(nursery, lambda: world.poll(gone, 30))
        await trio.sleep(1)
        poll = Later(nursery, lambda: world.grant(there, 30))
        await trio.sleep(1)
        lost.scope.cancel()
        await trio.sleep(1)
        await world.deliver(zombie_id)
        grant = await poll.value()

        assert grant.lease.runner_id == there
        assert grant.lease.fencing_token == 1, "nothing was claimed for the one that has gone"


async def test_a_lease_that_is_claimed_for_a_runner_that_has_gone_comes_back_at_once_and_unbilled(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    async with trio.open_nursery() as nursery:
        lost = Later(nursery, lambda: world.poll(runner_id, 30))
        await trio.sleep(1)
        world.faults.latency_s = 0.2
        event_id = await world.deliver(zombie_id)
        await trio.sleep(0.3)
        lost.scope.cancel()
        await trio.sleep(2)
        world.faults.latency_s = 0
    assert world.event(event_id).status is EventStatus.RECEIVED
    assert world.event(event_id).attempts == 0
    assert world.rows(event_id) == []

    grant = await world.grant(runner_id)
    assert (grant.lease.fencing_token, grant.event.attempts) == (2, 1)

    world.everything_adds_up()


async def test_an_offer_whose_time_is_over_waits_for_the_claim_that_is_being_committed(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    await world.deliver(zombie_id)
    await trio.sleep(2)
    world.faults.latency_s = 0.3
    grant = await world.grant(runner_id, 0.1)

    assert grant.lease.fencing_token == 1


async def test_workspaces_take_turns_under_a_flood(world: ActorsWorld, autojump_clock: MockClock) -> None:
    other = Workspace(world.actors_world.new_id(), world.tenant_id, "quiet", paused=False, created_at=clock())
    await world.storage.workspaces.create(other)
    await world.actors_world.secrets.put(
        other.id, "github-hook", {"webhook_secret": "It's a Secret to Everybody"}
    )
    noisy = [await world.install(f"noisy-{n}") for n in range(6)]
    for zombie_id in noisy:
        await world.deliver(zombie_id)
    await trio.sleep(5)
    quiet = [await world.install(f"quiet-{n}", workspace_id=other.id) for n in range(2)]
    for zombie_id in quiet:
        await world.deliver(zombie_id)
    runner_id = await world.enrol()
    order = [(await world.grant(runner_id)).lease.zombie_id for _ in range(8)]

    assert [zombie_id in quiet for zombie_id in order[:4]].count(True) == 2
    assert set(order) == {*noisy, *quiet}


async def test_an_agent_goes_home_to_the_runner_that_ran_it_last(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id = await world.install()
    away, home = await world.enrol("r1"), await world.enrol("r2")
    await world.deliver(zombie_id)
    await world.report(await world.grant(home))
    async with trio.open_nursery() as nursery:
        first = Later(nursery, lambda: world.poll(away, 30))
        await trio.sleep(1)
        second = Later(nursery, lambda: world.grant(home, 30))
        await trio.sleep(1)
        await world.deliver(zombie_id)
        assert (await second.value()).lease.runner_id == home
        assert not first.is_there

        nursery.cancel_scope.cancel()


async def test_work_that_another_node_made_ready_is_found_within_a_second(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    event_id = await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    # Another node's runner ends it, and nobody here hears of that.
    tables = world.storage.tables
    lease = tables.leases[grant.lease.id]
    async with trio.open_nursery() as nursery:
        poll = Later(nursery, lambda: world.grant(runner_id, 30))
        await trio.sleep(3)
        began = trio.current_time()
        del tables.leases[lease.id]
        tables.heads[zombie_id] = replace(tables.heads[zombie_id], live_lease_id=None)
        tables.put_event(replace(tables.events[event_id], status=EventStatus.RECEIVED))

        assert (await poll.value()).event.id == event_id
        assert trio.current_time() - began <= 1.01


async def test_the_view_tells_what_waits_and_forgets_what_another_node_has_taken(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id = await world.install(tags="gpu")
    event_id = await world.deliver(zombie_id)
    created_at = world.event(event_id).created_at
    await trio.sleep(0.1)
    view = await world.system.ask("dispatcher", "", ViewQueue())
    assert view == QueueView(1, created_at, {("gpu",): 1}, 0)

    world.storage.tables.waiting[zombie_id].clear()
    await trio.sleep(2.1)
    assert await world.system.ask("dispatcher", "", ViewQueue()) == QueueView(0, None, {}, 0)


async def test_the_agent_that_comes_next_is_read_before_a_runner_asks_for_it(
    world: ActorsWorld, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner_id, agents = await world.enrol(), [await world.install(name) for name in ("one", "two", "three")]
    for zombie_id in agents:
        await world.deliver(zombie_id)
    await trio.sleep(5)  # What their queues know of them is out of date by now.
    read: list[UUID] = []
    load = world.storage.zombies.load_with_pause

    async def noted(zombie_id: UUID, known: Zombie | None = None) -> tuple[Zombie, bool] | None:
        read.append(zombie_id)
        return await load(zombie_id, known)

    monkeypatch.setattr(world.storage.zombies, "load_with_pause", noted)
    read_before = []
    for _ in agents:
        before = list(read)
        taken = (await world.grant(runner_id)).event.zombie_id
        read_before.append(taken in before)
        await trio.sleep(0.1)

    assert read_before == [False, True, True]


async def test_a_long_queue_that_is_known_is_walked_through_at_leisure(
    world: ActorsWorld, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "SCAN_PAGE", 2)
    looks: list[float] = []
    ready = world.storage.events.ready

    async def noted(*, after: UUID | None, limit: int) -> Sequence[ReadyAgent]:
        looks.append(trio.current_time())
        return await ready(after=after, limit=limit)

    monkeypatch.setattr(world.storage.events, "ready", noted)
    for number in range(9):
        await world.deliver(await world.install(f"agent-{number}"))
    await trio.sleep(2)
    known = len(looks)
    await trio.sleep(10)

    assert len(looks) - known <= 10 / dispatcher.KNOWN_INTERVAL_S + 2
