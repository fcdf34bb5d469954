"""How work and runners come together."""

import trio
from msgspec.structs import replace
from trio.testing import MockClock

from sexton_actors.protocol.dispatcher import QueueView, ViewQueue
from sexton_actors.protocol.runner import Leases
from sexton_storage.records.events import EventStatus
from sexton_storage.records.workspaces import Workspace
from tests.actors.plant import Later, Plant, clock


async def test_a_long_poll_is_answered_the_moment_work_is_there(
    plant: Plant, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await plant.install(), await plant.enrol()
    async with trio.open_nursery() as nursery:
        poll = Later(nursery, lambda: plant.grant(runner_id, 30))
        await trio.sleep(7)
        assert not poll.is_there
        event_id = await plant.deliver(zombie_id)
        assert (await poll.value()).event.id == event_id
        assert trio.current_time() == poll.at
        assert poll.at is not None
        assert round(poll.at - 7, 3) == 0


async def test_a_poll_that_finds_nothing_ends_when_it_said(plant: Plant, autojump_clock: MockClock) -> None:
    runner_id = await plant.enrol()
    began = trio.current_time()
    await plant.nothing(runner_id, 12)
    assert round(trio.current_time() - began, 3) == 12


async def test_a_poll_without_waiting_is_answered_at_once(plant: Plant, autojump_clock: MockClock) -> None:
    runner_id = await plant.enrol()
    began = trio.current_time()
    await plant.nothing(runner_id)
    assert trio.current_time() == began


async def test_work_that_waited_is_given_to_a_poll_that_does_not(
    plant: Plant, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await plant.install(), await plant.enrol()
    event_id = await plant.deliver(zombie_id)
    assert (await plant.grant(runner_id, 0)).event.id == event_id


async def test_an_agents_events_run_one_at_a_time_and_in_order(
    plant: Plant, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await plant.install(), await plant.enrol()
    events = [await plant.deliver(zombie_id) for _ in range(3)]
    for event_id in events:
        grant = await plant.grant(runner_id)
        assert grant.event.id == event_id
        await plant.nothing(runner_id, 2)
        await plant.report(grant)
    plant.everything_adds_up()


async def test_one_poll_may_bring_several_agents_but_no_agent_twice(
    plant: Plant, autojump_clock: MockClock
) -> None:
    zombies = [await plant.install(f"doctor-{n}") for n in range(3)]
    runner_id = await plant.enrol()
    for zombie_id in zombies * 2:
        await plant.deliver(zombie_id)
    leases = await plant.poll(runner_id, most=8)
    assert isinstance(leases, Leases)
    assert {grant.lease.zombie_id for grant in leases.grants} == set(zombies)
    assert len(leases.grants) == 3
    plant.everything_adds_up()


async def test_a_poll_brings_no_more_than_it_asked_for(plant: Plant, autojump_clock: MockClock) -> None:
    for n in range(3):
        await plant.deliver(await plant.install(f"doctor-{n}"))
    leases = await plant.poll(await plant.enrol(), most=2)
    assert isinstance(leases, Leases)
    assert len(leases.grants) == 2


async def test_only_a_runner_with_all_the_labels_gets_the_agent(
    plant: Plant, autojump_clock: MockClock
) -> None:
    zombie_id = await plant.install(tags="gpu, linux")
    plain, gpu = await plant.enrol("r1", ("linux",)), await plant.enrol("r2", ("linux", "gpu", "eu"))
    await plant.deliver(zombie_id)
    await plant.nothing(plain, 3)
    assert (await plant.grant(gpu)).lease.runner_id == gpu


async def test_a_runner_without_a_sandbox_gets_only_agents_that_allow_it(
    plant: Plant, autojump_clock: MockClock
) -> None:
    careful = await plant.install("careful")
    careless = await plant.install("careless", "allow_unsandboxed: true")
    bare = await plant.enrol(tier="none")
    await plant.deliver(careful)
    await plant.deliver(careless)
    assert (await plant.grant(bare)).lease.zombie_id == careless
    await plant.nothing(bare, 2)


async def test_work_goes_to_another_when_the_runner_that_polled_has_gone(
    plant: Plant, autojump_clock: MockClock
) -> None:
    zombie_id = await plant.install()
    gone, there = await plant.enrol("r1"), await plant.enrol("r2")
    async with trio.open_nursery() as nursery:
        lost = Later(nursery, lambda: plant.poll(gone, 30))
        await trio.sleep(1)
        poll = Later(nursery, lambda: plant.grant(there, 30))
        await trio.sleep(1)
        lost.scope.cancel()
        await trio.sleep(1)
        await plant.deliver(zombie_id)
        grant = await poll.value()
        assert grant.lease.runner_id == there
        assert grant.lease.fencing_token == 1, "nothing was claimed for the one that has gone"


async def test_a_lease_that_is_claimed_for_a_runner_that_has_gone_comes_back_at_once_and_unbilled(
    plant: Plant, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await plant.install(), await plant.enrol()
    async with trio.open_nursery() as nursery:
        lost = Later(nursery, lambda: plant.poll(runner_id, 30))
        await trio.sleep(1)
        plant.faults.latency_s = 0.2
        event_id = await plant.deliver(zombie_id)
        await trio.sleep(0.3)
        lost.scope.cancel()
        await trio.sleep(2)
        plant.faults.latency_s = 0
    assert plant.event(event_id).status is EventStatus.RECEIVED
    assert plant.event(event_id).attempts == 0
    assert plant.rows(event_id) == []
    grant = await plant.grant(runner_id)
    assert (grant.lease.fencing_token, grant.event.attempts) == (2, 1)
    plant.everything_adds_up()


async def test_an_offer_whose_time_is_over_waits_for_the_claim_that_is_being_committed(
    plant: Plant, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await plant.install(), await plant.enrol()
    await plant.deliver(zombie_id)
    await trio.sleep(2)
    plant.faults.latency_s = 0.3
    grant = await plant.grant(runner_id, 0.1)
    assert grant.lease.fencing_token == 1


async def test_workspaces_take_turns_under_a_flood(plant: Plant, autojump_clock: MockClock) -> None:
    other = Workspace(plant.world.new_id(), plant.tenant_id, "quiet", paused=False, created_at=clock())
    await plant.storage.workspaces.create(other)
    await plant.world.secrets.put(other.id, "github-hook", {"webhook_secret": "It's a Secret to Everybody"})
    noisy = [await plant.install(f"noisy-{n}") for n in range(6)]
    for zombie_id in noisy:
        await plant.deliver(zombie_id)
    await trio.sleep(5)
    quiet = [await plant.install(f"quiet-{n}", workspace_id=other.id) for n in range(2)]
    for zombie_id in quiet:
        await plant.deliver(zombie_id)
    runner_id = await plant.enrol()
    order = [(await plant.grant(runner_id)).lease.zombie_id for _ in range(8)]
    assert [zombie_id in quiet for zombie_id in order[:4]].count(True) == 2
    assert set(order) == {*noisy, *quiet}


async def test_an_agent_goes_home_to_the_runner_that_ran_it_last(
    plant: Plant, autojump_clock: MockClock
) -> None:
    zombie_id = await plant.install()
    away, home = await plant.enrol("r1"), await plant.enrol("r2")
    await plant.deliver(zombie_id)
    await plant.report(await plant.grant(home))
    async with trio.open_nursery() as nursery:
        first = Later(nursery, lambda: plant.poll(away, 30))
        await trio.sleep(1)
        second = Later(nursery, lambda: plant.grant(home, 30))
        await trio.sleep(1)
        await plant.deliver(zombie_id)
        assert (await second.value()).lease.runner_id == home
        assert not first.is_there
        nursery.cancel_scope.cancel()


async def test_work_that_another_node_made_ready_is_found_within_a_second(
    plant: Plant, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await plant.install(), await plant.enrol()
    event_id = await plant.deliver(zombie_id)
    grant = await plant.grant(runner_id)
    # Another node's runner ends it, and nobody here hears of that.
    tables = plant.storage.tables
    lease = tables.leases[grant.lease.id]
    async with trio.open_nursery() as nursery:
        poll = Later(nursery, lambda: plant.grant(runner_id, 30))
        await trio.sleep(3)
        began = trio.current_time()
        del tables.leases[lease.id]
        tables.heads[zombie_id] = replace(tables.heads[zombie_id], live_lease_id=None)
        tables.put_event(replace(tables.events[event_id], status=EventStatus.RECEIVED))
        assert (await poll.value()).event.id == event_id
        assert trio.current_time() - began <= 1.01


async def test_the_view_tells_what_waits_and_forgets_what_another_node_has_taken(
    plant: Plant, autojump_clock: MockClock
) -> None:
    zombie_id = await plant.install(tags="gpu")
    event_id = await plant.deliver(zombie_id)
    created_at = plant.event(event_id).created_at
    await trio.sleep(0.1)
    view = await plant.system.ask("dispatcher", "", ViewQueue())
    assert view == QueueView(1, created_at, {("gpu",): 1}, 0)
    plant.storage.tables.waiting[zombie_id].clear()
    await trio.sleep(2.1)
    assert await plant.system.ask("dispatcher", "", ViewQueue()) == QueueView(0, None, {}, 0)
