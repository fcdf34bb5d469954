"""Each kind of actor crashes in the middle of its work: it is restarted, and nothing is lost."""

import logging
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from sexton_actors.protocol.gate import Await, Resolved
from sexton_actors.protocol.hub import AwaitFrames, FramesWritten
from sexton_actors.protocol.lease import Reported
from sexton_actors.protocol.ledger import ReadBalance
from sexton_actors.protocol.runner import Leases
from sexton_engine import ActorCrashed, ActorStopped, EngineFault
from sexton_storage.records.events import EventStatus
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.records.leases import LeaseStatus
from sexton_storage.records.tenants import Tenant
from sexton_storage.writes import ClaimEvent, EndLease, RenewLease, ResolveGate, Write
from tests.worlds.actors import ActorsWorld, Later, crash_commit_once, crash_once, open_actors_world


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Crashes are logged, and here they are ordered."""
    caplog.set_level(logging.CRITICAL, "sexton_engine")


def of_kind(kind: type[Write[Any]]) -> Any:
    return lambda write: isinstance(write, kind)


def restarts(world: ActorsWorld, kind: str) -> int:
    return next(node.restarts for node in world.system.statistics().kinds if node.kind == kind)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("kind", [ClaimEvent, RenewLease, EndLease, ResolveGate])
async def test_a_crash_around_a_commit_loses_nothing_and_doubles_nothing(
    world: ActorsWorld, autojump_clock: MockClock, kind: type[Write[Any]], *, after: bool
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    event_id = await world.deliver(zombie_id)
    done = crash_commit_once(world.storage.journal, after=after, when=of_kind(kind))
    grant = await world.grant(runner_id, 30)
    await trio.sleep(10)
    await world.renewed(grant, (1000, 0, 0))
    gate = await world.ask_approval(grant)
    await world.resolve(gate.id)
    reported = await world.report(grant, tokens=(1500, 0, 0))
    assert done
    assert isinstance(reported, Reported)
    assert world.event(event_id).status is EventStatus.PROCESSED
    assert world.storage.tables.gates[gate.id].status is GateStatus.APPROVED
    assert sum(row.d_input_tokens for row in world.rows(event_id)) == 1500

    world.everything_adds_up()


async def test_a_zombie_that_crashes_takes_the_delivery_at_the_second_try(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id = await world.install()
    await trio.sleep(2)
    done = crash_once(world.storage.zombies, "load_with_pause")
    event_id = await world.deliver(zombie_id)

    assert done
    assert restarts(world, "zombie") == 1
    assert list(world.storage.tables.events) == [event_id]


async def test_a_lease_that_crashes_is_still_reclaimed_in_time(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    event_id = await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    done = crash_commit_once(world.storage.journal, when=of_kind(RenewLease))
    await world.renewed(grant)
    assert done

    await trio.sleep(30.9)
    assert world.storage.tables.leases[grant.lease.id].status is LeaseStatus.RECLAIMED
    assert world.event(event_id).status is EventStatus.RECEIVED


async def test_a_lease_that_crashes_at_its_deadline_is_reclaimed_by_the_next_round(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    done = crash_once(world.storage.events, "load")
    await trio.sleep(31)
    assert done
    assert world.storage.tables.leases[grant.lease.id].status is LeaseStatus.RECLAIMED

    world.everything_adds_up()


async def test_a_gate_that_crashes_tells_those_who_wait_and_answers_them_again(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    await world.deliver(zombie_id)
    gate = await world.ask_approval(await world.grant(runner_id))

    async def wait_for_it() -> Gate:
        try:
            answer = await world.system.ask("gate", gate.id, Await(20_000))
        except (ActorCrashed, ActorStopped):
            answer = await world.system.ask("gate", gate.id, Await(20_000))
        assert isinstance(answer, Gate)
        return answer

    async with trio.open_nursery() as nursery:
        waiting = Later(nursery, wait_for_it)
        await trio.sleep(2)
        done = crash_commit_once(world.storage.journal, when=of_kind(ResolveGate))

        assert isinstance(await world.resolve(gate.id), Resolved)
        assert (await waiting.value()).status is GateStatus.APPROVED
        assert done


async def test_a_runner_that_crashes_knows_again_what_it_holds(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    await trio.sleep(2)
    done = crash_once(world.storage.runners, "load")
    await world.change_status(zombie_id, "killed")
    await trio.sleep(1)

    assert done
    assert await world.poll(runner_id, 5) == Leases((), 0, (grant.lease.id,))


async def test_polls_that_wait_are_told_when_the_dispatcher_crashes_and_come_again(
    world: ActorsWorld, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()

    async def poll() -> Any:
        while True:
            try:
                return await world.grant(runner_id, 30)
            except (ActorCrashed, ActorStopped):
                await trio.sleep(0.2)

    async with trio.open_nursery() as nursery:
        polling = Later(nursery, poll)
        await trio.sleep(2)
        done = crash_once(world.storage.events, "ready")
        await trio.sleep(2)
        assert done
        assert restarts(world, "dispatcher") == 1
        assert not polling.is_there

        event_id = await world.deliver(zombie_id)
        delivered_at = trio.current_time()
        assert (await polling.value()).event.id == event_id
        assert polling.at == delivered_at


async def test_a_lease_that_was_claimed_for_a_dispatcher_that_crashed_comes_back(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    event_id = await world.deliver(zombie_id)
    await trio.sleep(1.2)
    async with trio.open_nursery() as nursery:

        async def poll() -> None:
            with pytest.raises(ActorStopped):
                await world.poll(runner_id, 30)

        world.faults.latency_s = 0.1
        Later(nursery, poll)
        await trio.sleep(0.3)
        world.system.kill("dispatcher", "")
    await trio.sleep(2)
    world.faults.latency_s = 0
    grant = await world.grant(runner_id, 5)
    assert (grant.event.id, grant.event.attempts) == (event_id, 1)

    world.everything_adds_up()


async def test_readers_come_again_when_the_hub_crashes(world: ActorsWorld, autojump_clock: MockClock) -> None:
    zombie_id = await world.install()
    async with trio.open_nursery() as nursery:

        async def read() -> int:
            while True:
                try:
                    return (await world.system.ask("hub", "", AwaitFrames(zombie_id, 0, 15))).head
                except (ActorCrashed, ActorStopped):
                    await trio.sleep(0.1)

        reader = Later(nursery, read)
        await trio.sleep(1.5)
        world.system.tell("hub", "", FramesWritten(((zombie_id, "not a number"),)))  # type: ignore[arg-type]
        await trio.sleep(2)
        assert restarts(world, "hub") >= 1

        await world.deliver(zombie_id)
        assert await reader.value() == 1


async def test_a_ledger_that_crashes_reads_again(world: ActorsWorld, autojump_clock: MockClock) -> None:
    done = crash_once(world.storage.tenants, "load")

    assert isinstance(await world.system.ask("ledger", world.tenant_id, ReadBalance()), Tenant)
    assert done


async def test_the_rounds_go_on_after_a_crash(world: ActorsWorld, autojump_clock: MockClock) -> None:
    zombie_id, runner_id = await world.install(config="gates: {timeout_ms: 5000}"), await world.enrol()
    event_id = await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    gate = await world.ask_approval(grant)
    await world.system.stop("gate", gate.id)
    await world.system.stop("lease", grant.lease.id)
    done = [crash_once(world.storage.gates, "overdue"), crash_once(world.storage.leases, "expired")]
    await trio.sleep(6)
    assert all(done)
    assert world.storage.tables.gates[gate.id].status is GateStatus.TIMED_OUT

    await trio.sleep(26)
    assert world.event(event_id).status is EventStatus.RECEIVED
    assert (restarts(world, "reclaimer"), restarts(world, "sweeper")) == (1, 1)


async def test_a_queue_whose_every_claim_crashes_leaves_the_others_alone(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    poisoned, healthy = await world.install("poisoned"), await world.install("healthy")
    runner_id = await world.enrol()
    original = world.storage.zombies.load_with_pause

    async def load(zombie_id: object, known: Any = None) -> Any:
        if zombie_id == poisoned:
            raise ValueError("its record cannot be read")
        return await original(zombie_id, known)  # type: ignore[arg-type]

    await world.deliver(poisoned)
    await trio.sleep(2)
    world.storage.zombies.load_with_pause = load  # type: ignore[method-assign]
    for _ in range(20):
        event_id = await world.deliver(healthy)
        leases = await world.poll(runner_id, 10)
        assert isinstance(leases, Leases)
        (grant,) = leases.grants
        assert grant.event.id == event_id
        await world.report(grant)
        await trio.sleep(1)


async def test_a_dispatcher_that_cannot_live_ends_the_server(autojump_clock: MockClock) -> None:
    async def ready(**_: object) -> None:
        raise ValueError("what the database says makes no sense")

    async def live() -> None:
        async with open_actors_world() as world:
            world.storage.events.ready = ready  # type: ignore[method-assign,assignment]
            await trio.sleep(3600)

    with pytest.raises(EngineFault):
        await live()

    assert trio.current_time() < 120
