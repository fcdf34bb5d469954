"""Agents that are stopped, paused and killed while they work."""

import trio
from trio.testing import MockClock

from sexton_actors.protocol.lease import Parked, Reported
from sexton_actors.protocol.runner import Beat, Heartbeat, Leases
from sexton_actors.protocol.zombie import Steer
from sexton_actors.refusal import Refusal
from sexton_storage.records.events import EventStatus
from sexton_storage.records.gates import GateStatus
from sexton_storage.records.leases import LeaseStatus
from tests.worlds.actors import ActorsWorld, Later


async def test_a_kill_is_told_at_once_on_the_open_poll(world: ActorsWorld, autojump_clock: MockClock) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    async with trio.open_nursery() as nursery:
        poll = Later(nursery, lambda: world.poll(runner_id, 30))
        await trio.sleep(2)
        await world.change_status(zombie_id, "killed")
        killed_at = trio.current_time()

        assert await poll.value() == Leases((), 0, (grant.lease.id,))
        assert poll.at == killed_at


async def test_a_kill_is_told_by_the_next_call_of_any_kind(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    event_id = await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    await world.change_status(zombie_id, "killed")
    lease_id = grant.lease.id
    assert (await world.renewed(grant)).state == "cancelling"

    beat = await world.system.ask("runner", runner_id, Heartbeat((lease_id,)))
    assert beat == Beat("ok", (lease_id,))
    assert await world.poll(runner_id, 30) == Leases((), 0, (lease_id,))

    await world.nothing(runner_id, 1)
    assert await world.report(grant) == Reported(duplicate=False, status="cancelled", charged_nanos=100_000)
    assert world.event(event_id).status is EventStatus.CANCELLED

    beat = await world.system.ask("runner", runner_id, Heartbeat(()))
    assert beat == Beat("ok", ())

    world.everything_adds_up()


async def test_a_kill_ends_what_waits(world: ActorsWorld, autojump_clock: MockClock) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    running, waiting = await world.deliver(zombie_id), await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    gate = await world.ask_approval(grant)
    await world.change_status(zombie_id, "killed")
    closed = world.storage.tables.gates[gate.id]
    assert (closed.status, closed.resolved_by) == (GateStatus.AUTO_KILLED, "system:kill")
    assert world.event(waiting).status is EventStatus.CANCELLED
    assert world.event(running).status is EventStatus.RUNNING

    refused = await world.resolve(gate.id)
    assert isinstance(refused, Refusal)
    assert refused.code == "UZ-APPROVAL-002"
    assert refused.facts["outcome"] == "auto_killed"

    await world.report(grant)
    await world.nothing(runner_id, 5)


async def test_a_run_that_parks_after_the_kill_ends(world: ActorsWorld, autojump_clock: MockClock) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    event_id = await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    gate = await world.ask_approval(grant)
    await world.change_status(zombie_id, "killed")
    assert await world.park(grant, gate.id) == Parked()
    assert world.event(event_id).status is EventStatus.CANCELLED
    assert world.storage.tables.leases[grant.lease.id].status is LeaseStatus.RELEASED

    world.everything_adds_up()


async def test_a_run_that_is_released_after_the_kill_ends(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    event_id = await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    await world.change_status(zombie_id, "killed")
    await world.release(grant)
    assert world.event(event_id).status is EventStatus.CANCELLED

    world.everything_adds_up()


async def test_a_stop_lets_the_running_event_finish_and_the_others_wait(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    running, waiting = await world.deliver(zombie_id), await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    await world.change_status(zombie_id, "stopped")
    assert (await world.renewed(grant)).state == "active"

    await world.report(grant)
    assert world.event(running).status is EventStatus.PROCESSED

    await world.nothing(runner_id, 5)
    assert world.event(waiting).status is EventStatus.RECEIVED

    async with trio.open_nursery() as nursery:
        poll = Later(nursery, lambda: world.grant(runner_id, 30))
        await trio.sleep(1)
        await world.change_status(zombie_id, "active")
        resumed_at = trio.current_time()

        assert (await poll.value()).event.id == waiting
        assert poll.at == resumed_at


async def test_nothing_wakes_an_agent_that_is_not_active(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id = await world.install()
    await world.change_status(zombie_id, "stopped")
    refused = await world.system.ask("zombie", zombie_id, world.webhook())
    assert isinstance(refused, Refusal)
    assert refused.code == "UZ-WH-003"

    refused = await world.system.ask("zombie", zombie_id, Steer("hello", "ada"))
    assert isinstance(refused, Refusal)
    assert refused.code == "UZ-ZMB-012"

    await world.change_status(zombie_id, "killed")
    refused = await world.system.ask("zombie", zombie_id, world.webhook())
    assert isinstance(refused, Refusal)
    assert refused.code == "UZ-WH-004"
    assert world.storage.tables.events == {}


async def test_a_kill_during_the_claim_is_heard_by_the_runner(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    event_id = await world.deliver(zombie_id)
    await trio.sleep(2)
    async with trio.open_nursery() as nursery:
        world.faults.latency_s = 0.05
        poll = Later(nursery, lambda: world.poll(runner_id, 5))
        await trio.sleep(0.2)
        await world.change_status(zombie_id, "killed")
        leases = await poll.value()
        world.faults.latency_s = 0
        assert isinstance(leases, Leases)

        if leases.grants:
            assert (await world.renewed(leases.grants[0])).state == "cancelling"
            await world.report(leases.grants[0])
    await trio.sleep(1)
    assert world.event(event_id).status is EventStatus.CANCELLED

    world.everything_adds_up()
