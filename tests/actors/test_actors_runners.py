"""A runner's standing, and what it gets for it."""

from uuid import UUID

import pytest
import trio
from trio.testing import MockClock

from sexton_actors.protocol.runner import Beat, Describe, Heartbeat, Leases, Poll, SetAdminState
from sexton_actors.refusal import Refusal
from sexton_storage.records.events import EventStatus
from sexton_storage.records.leases import LeaseStatus
from sexton_storage.records.runners import AdminState, Runner
from sexton_storage.signals import Signal, Topic
from tests.worlds.actors import ActorsWorld, Later, clock


async def set_state(world: ActorsWorld, runner_id: UUID, state: str) -> Runner:
    changed = await world.system.ask("runner", runner_id, SetAdminState(state))
    assert isinstance(changed, Runner), changed
    return changed


async def test_a_draining_runner_finishes_and_is_drained_with_its_last_lease(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    runner_id = await world.enrol()
    grants = []
    for n in range(2):
        await world.deliver(await world.install(f"doctor-{n}"))
        grants.append(await world.grant(runner_id))
    await world.deliver(await world.install("doctor-3"))
    assert (await set_state(world, runner_id, "draining")).admin_state is AdminState.DRAINING
    assert await world.system.ask("runner", runner_id, Heartbeat(())) == Beat("drain", ())
    assert await world.poll(runner_id, 30) == Leases((), 5000)

    await world.renewed(grants[0])
    await world.report(grants[0])
    await world.release(grants[1])
    await trio.sleep(0.1)
    assert world.storage.tables.runners[runner_id].admin_state is AdminState.DRAINED
    assert await world.system.ask("runner", runner_id, Heartbeat(())) == Beat("stop", ())
    assert (await set_state(world, runner_id, "active")).admin_state is AdminState.ACTIVE

    await world.grant(runner_id)


async def test_a_runner_that_holds_nothing_is_drained_at_once(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    runner_id = await world.enrol()
    assert (await set_state(world, runner_id, "draining")).admin_state is AdminState.DRAINED


async def test_the_open_poll_of_a_cordoned_runner_ends_empty(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    async with trio.open_nursery() as nursery:
        poll = Later(nursery, lambda: world.poll(runner_id, 30))
        await trio.sleep(1)
        await set_state(world, runner_id, "cordoned")
        cordoned_at = trio.current_time()

        assert await poll.value() == Leases((), 0)
        assert poll.at == cordoned_at
    event_id = await world.deliver(zombie_id)

    assert await world.poll(runner_id, 30) == Leases((), 5000)
    assert world.event(event_id).status is EventStatus.RECEIVED


async def test_a_revoked_runner_is_refused_at_once_and_its_leases_go_to_others(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    revoked, other = await world.enrol("r1"), await world.enrol("r2")
    zombie_id = await world.install()
    event_id = await world.deliver(zombie_id)
    grant = await world.grant(revoked)
    async with trio.open_nursery() as nursery:
        open_poll = Later(nursery, lambda: world.poll(revoked, 30))
        taken = Later(nursery, lambda: world.grant(other, 30))
        await trio.sleep(5)
        await set_state(world, revoked, "revoked")
        revoked_at = trio.current_time()
        refused = await open_poll.value()

        assert isinstance(refused, Refusal)
        assert refused.code == "UZ-RUN-009"
        assert (await taken.value()).event.id == event_id
        assert taken.at == revoked_at
    for message in (Poll(1, 0), Heartbeat(()), Describe()):
        again = await world.system.ask("runner", revoked, message)
        assert isinstance(again, Refusal)
        assert again.code == "UZ-RUN-009"
    late = await world.report(grant)
    assert isinstance(late, Refusal)
    assert late.code == "UZ-RUN-005"
    assert world.storage.tables.leases[grant.lease.id].status is LeaseStatus.RECLAIMED

    back = await world.system.ask("runner", revoked, SetAdminState("active"))
    assert isinstance(back, Refusal)

    world.everything_adds_up()


@pytest.mark.parametrize("state", ["cordoned", "draining", "revoked"])
async def test_a_lease_that_is_being_claimed_while_the_standing_changes_is_lost_to_nobody(
    world: ActorsWorld, autojump_clock: MockClock, state: str
) -> None:
    zombie_id = await world.install()
    leaving, other = await world.enrol("r1"), await world.enrol("r2")
    await world.system.ask("runner", leaving, Describe())
    async with trio.open_nursery() as nursery:
        poll = Later(nursery, lambda: world.poll(leaving, 5))
        await trio.sleep(1)
        world.faults.latency_s = 0.1
        event_id = await world.deliver(zombie_id)
        Later(nursery, lambda: set_state(world, leaving, state))
        answer = await poll.value()
    await trio.sleep(2)
    world.faults.latency_s = 0
    if isinstance(answer, Leases) and answer.grants and state != "revoked":
        await world.report(answer.grants[0])
        assert world.event(event_id).status is EventStatus.PROCESSED
    else:
        assert (await world.grant(other)).event.id == event_id
    await trio.sleep(2)
    if state == "draining":
        assert world.storage.tables.runners[leaving].admin_state is AdminState.DRAINED
    world.everything_adds_up()


async def test_a_drain_is_finished_by_a_lease_that_another_node_ended(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    await set_state(world, runner_id, "draining")
    del world.storage.tables.leases[grant.lease.id]
    await trio.sleep(2.1)

    assert world.storage.tables.runners[runner_id].admin_state is AdminState.DRAINED


async def test_a_runner_is_seen_when_it_calls_but_not_written_each_time(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    runner_id = await world.enrol()
    assert world.storage.tables.runners[runner_id].last_seen_at is None

    seen = set()
    for _ in range(20):
        await world.system.ask("runner", runner_id, Heartbeat(()))
        seen.add(world.storage.tables.runners[runner_id].last_seen_at)
        await trio.sleep(1)
    assert len(seen) == 4
    assert clock() - max(at for at in seen if at) <= 5000


async def test_an_unknown_runner_or_state_is_refused(world: ActorsWorld, autojump_clock: MockClock) -> None:
    unknown = await world.poll(world.actors_world.new_id())
    assert isinstance(unknown, Refusal)
    assert unknown.code == "UZ-RUN-014"

    runner_id = await world.enrol()
    for state in ("drained", "asleep", ""):
        refused = await world.system.ask("runner", runner_id, SetAdminState(state))
        assert isinstance(refused, Refusal)
        assert refused.code == "UZ-REQ-001"


async def test_a_heartbeat_is_not_told_of_a_cancelled_lease_that_ended_at_another_node(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    """Whoever waits here would be answered again and again, as long as it is remembered."""
    runner_id = await world.enrol()
    working, ended = await world.install("one"), world.actors_world.new_id()
    await world.deliver(working)
    lease_id = (await world.grant(runner_id)).lease.id
    cancelled = Signal(Topic.CANCEL, runner_id, about=ended)
    world.storage.signals.hear([cancelled])

    beat = await world.system.ask("runner", runner_id, Heartbeat((lease_id,)))

    assert beat == Beat("ok", ())
