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
from tests.actors.plant import Later, Plant


async def test_a_kill_is_told_at_once_on_the_open_poll(plant: Plant, autojump_clock: MockClock) -> None:
    zombie_id, runner_id = await plant.install(), await plant.enrol()
    await plant.deliver(zombie_id)
    grant = await plant.grant(runner_id)
    async with trio.open_nursery() as nursery:
        poll = Later(nursery, lambda: plant.poll(runner_id, 30))
        await trio.sleep(2)
        await plant.change_status(zombie_id, "killed")
        killed_at = trio.current_time()
        assert await poll.value() == Leases((), 0, (grant.lease.id,))
        assert poll.at == killed_at


async def test_a_kill_is_told_by_the_next_call_of_any_kind(plant: Plant, autojump_clock: MockClock) -> None:
    zombie_id, runner_id = await plant.install(), await plant.enrol()
    event_id = await plant.deliver(zombie_id)
    grant = await plant.grant(runner_id)
    await plant.change_status(zombie_id, "killed")
    lease_id = grant.lease.id
    assert (await plant.renewed(grant)).state == "cancelling"
    beat = await plant.system.ask("runner", runner_id, Heartbeat((lease_id,)))
    assert beat == Beat("ok", (lease_id,))
    assert await plant.poll(runner_id, 30) == Leases((), 0, (lease_id,))
    await plant.nothing(runner_id, 1)
    assert await plant.report(grant) == Reported(duplicate=False, status="cancelled", charged_nanos=100_000)
    assert plant.event(event_id).status is EventStatus.CANCELLED
    beat = await plant.system.ask("runner", runner_id, Heartbeat(()))
    assert beat == Beat("ok", ())
    plant.everything_adds_up()


async def test_a_kill_ends_what_waits(plant: Plant, autojump_clock: MockClock) -> None:
    zombie_id, runner_id = await plant.install(), await plant.enrol()
    running, waiting = await plant.deliver(zombie_id), await plant.deliver(zombie_id)
    grant = await plant.grant(runner_id)
    gate = await plant.ask_approval(grant)
    await plant.change_status(zombie_id, "killed")
    closed = plant.storage.tables.gates[gate.id]
    assert (closed.status, closed.resolved_by) == (GateStatus.AUTO_KILLED, "system:kill")
    assert plant.event(waiting).status is EventStatus.CANCELLED
    assert plant.event(running).status is EventStatus.RUNNING
    refused = await plant.resolve(gate.id)
    assert isinstance(refused, Refusal)
    assert refused.code == "UZ-APPROVAL-002"
    assert refused.facts["outcome"] == "auto_killed"
    await plant.report(grant)
    await plant.nothing(runner_id, 5)


async def test_a_run_that_parks_after_the_kill_ends(plant: Plant, autojump_clock: MockClock) -> None:
    zombie_id, runner_id = await plant.install(), await plant.enrol()
    event_id = await plant.deliver(zombie_id)
    grant = await plant.grant(runner_id)
    gate = await plant.ask_approval(grant)
    await plant.change_status(zombie_id, "killed")
    assert await plant.park(grant, gate.id) == Parked()
    assert plant.event(event_id).status is EventStatus.CANCELLED
    assert plant.storage.tables.leases[grant.lease.id].status is LeaseStatus.RELEASED
    plant.everything_adds_up()


async def test_a_run_that_is_released_after_the_kill_ends(plant: Plant, autojump_clock: MockClock) -> None:
    zombie_id, runner_id = await plant.install(), await plant.enrol()
    event_id = await plant.deliver(zombie_id)
    grant = await plant.grant(runner_id)
    await plant.change_status(zombie_id, "killed")
    await plant.release(grant)
    assert plant.event(event_id).status is EventStatus.CANCELLED
    plant.everything_adds_up()


async def test_a_stop_lets_the_running_event_finish_and_the_others_wait(
    plant: Plant, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await plant.install(), await plant.enrol()
    running, waiting = await plant.deliver(zombie_id), await plant.deliver(zombie_id)
    grant = await plant.grant(runner_id)
    await plant.change_status(zombie_id, "stopped")
    assert (await plant.renewed(grant)).state == "active"
    await plant.report(grant)
    assert plant.event(running).status is EventStatus.PROCESSED
    await plant.nothing(runner_id, 5)
    assert plant.event(waiting).status is EventStatus.RECEIVED
    async with trio.open_nursery() as nursery:
        poll = Later(nursery, lambda: plant.grant(runner_id, 30))
        await trio.sleep(1)
        await plant.change_status(zombie_id, "active")
        resumed_at = trio.current_time()
        assert (await poll.value()).event.id == waiting
        assert poll.at == resumed_at


async def test_nothing_wakes_an_agent_that_is_not_active(plant: Plant, autojump_clock: MockClock) -> None:
    zombie_id = await plant.install()
    await plant.change_status(zombie_id, "stopped")
    refused = await plant.system.ask("zombie", zombie_id, plant.webhook())
    assert isinstance(refused, Refusal)
    assert refused.code == "UZ-WH-003"
    refused = await plant.system.ask("zombie", zombie_id, Steer("hello", "ada"))
    assert isinstance(refused, Refusal)
    assert refused.code == "UZ-ZMB-012"
    await plant.change_status(zombie_id, "killed")
    refused = await plant.system.ask("zombie", zombie_id, plant.webhook())
    assert isinstance(refused, Refusal)
    assert refused.code == "UZ-WH-004"
    assert plant.storage.tables.events == {}


async def test_a_kill_during_the_claim_is_heard_by_the_runner(
    plant: Plant, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await plant.install(), await plant.enrol()
    event_id = await plant.deliver(zombie_id)
    await trio.sleep(2)
    async with trio.open_nursery() as nursery:
        plant.faults.latency_s = 0.05
        poll = Later(nursery, lambda: plant.poll(runner_id, 5))
        await trio.sleep(0.2)
        await plant.change_status(zombie_id, "killed")
        leases = await poll.value()
        plant.faults.latency_s = 0
        assert isinstance(leases, Leases)
        if leases.grants:
            assert (await plant.renewed(leases.grants[0])).state == "cancelling"
            await plant.report(leases.grants[0])
    await trio.sleep(1)
    assert plant.event(event_id).status is EventStatus.CANCELLED
    plant.everything_adds_up()
