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
from tests.actors.plant import Later, Plant, clock


async def set_state(plant: Plant, runner_id: UUID, state: str) -> Runner:
    changed = await plant.system.ask("runner", runner_id, SetAdminState(state))
    assert isinstance(changed, Runner), changed
    return changed


async def test_a_draining_runner_finishes_and_is_drained_with_its_last_lease(
    plant: Plant, autojump_clock: MockClock
) -> None:
    runner_id = await plant.enrol()
    grants = []
    for n in range(2):
        await plant.deliver(await plant.install(f"doctor-{n}"))
        grants.append(await plant.grant(runner_id))
    await plant.deliver(await plant.install("doctor-3"))
    assert (await set_state(plant, runner_id, "draining")).admin_state is AdminState.DRAINING
    assert await plant.system.ask("runner", runner_id, Heartbeat(())) == Beat("drain", ())
    assert await plant.poll(runner_id, 30) == Leases((), 5000)
    await plant.renewed(grants[0])
    await plant.report(grants[0])
    await plant.release(grants[1])
    await trio.sleep(0.1)
    assert plant.storage.tables.runners[runner_id].admin_state is AdminState.DRAINED
    assert await plant.system.ask("runner", runner_id, Heartbeat(())) == Beat("stop", ())
    assert (await set_state(plant, runner_id, "active")).admin_state is AdminState.ACTIVE
    await plant.grant(runner_id)


async def test_a_runner_that_holds_nothing_is_drained_at_once(
    plant: Plant, autojump_clock: MockClock
) -> None:
    runner_id = await plant.enrol()
    assert (await set_state(plant, runner_id, "draining")).admin_state is AdminState.DRAINED


async def test_the_open_poll_of_a_cordoned_runner_ends_empty(plant: Plant, autojump_clock: MockClock) -> None:
    zombie_id, runner_id = await plant.install(), await plant.enrol()
    async with trio.open_nursery() as nursery:
        poll = Later(nursery, lambda: plant.poll(runner_id, 30))
        await trio.sleep(1)
        await set_state(plant, runner_id, "cordoned")
        cordoned_at = trio.current_time()
        assert await poll.value() == Leases((), 0)
        assert poll.at == cordoned_at
    event_id = await plant.deliver(zombie_id)
    assert await plant.poll(runner_id, 30) == Leases((), 5000)
    assert plant.event(event_id).status is EventStatus.RECEIVED


async def test_a_revoked_runner_is_refused_at_once_and_its_leases_go_to_others(
    plant: Plant, autojump_clock: MockClock
) -> None:
    revoked, other = await plant.enrol("r1"), await plant.enrol("r2")
    zombie_id = await plant.install()
    event_id = await plant.deliver(zombie_id)
    grant = await plant.grant(revoked)
    async with trio.open_nursery() as nursery:
        open_poll = Later(nursery, lambda: plant.poll(revoked, 30))
        taken = Later(nursery, lambda: plant.grant(other, 30))
        await trio.sleep(5)
        await set_state(plant, revoked, "revoked")
        revoked_at = trio.current_time()
        refused = await open_poll.value()
        assert isinstance(refused, Refusal)
        assert refused.code == "UZ-RUN-009"
        assert (await taken.value()).event.id == event_id
        assert taken.at == revoked_at
    for message in (Poll(1, 0), Heartbeat(()), Describe()):
        again = await plant.system.ask("runner", revoked, message)
        assert isinstance(again, Refusal)
        assert again.code == "UZ-RUN-009"
    late = await plant.report(grant)
    assert isinstance(late, Refusal)
    assert late.code == "UZ-RUN-005"
    assert plant.storage.tables.leases[grant.lease.id].status is LeaseStatus.RECLAIMED
    back = await plant.system.ask("runner", revoked, SetAdminState("active"))
    assert isinstance(back, Refusal)
    plant.everything_adds_up()


@pytest.mark.parametrize("state", ["cordoned", "draining", "revoked"])
async def test_a_lease_that_is_being_claimed_while_the_standing_changes_is_lost_to_nobody(
    plant: Plant, autojump_clock: MockClock, state: str
) -> None:
    zombie_id = await plant.install()
    leaving, other = await plant.enrol("r1"), await plant.enrol("r2")
    await plant.system.ask("runner", leaving, Describe())
    async with trio.open_nursery() as nursery:
        poll = Later(nursery, lambda: plant.poll(leaving, 5))
        await trio.sleep(1)
        plant.faults.latency_s = 0.1
        event_id = await plant.deliver(zombie_id)
        Later(nursery, lambda: set_state(plant, leaving, state))
        answer = await poll.value()
    await trio.sleep(2)
    plant.faults.latency_s = 0
    if isinstance(answer, Leases) and answer.grants and state != "revoked":
        await plant.report(answer.grants[0])
        assert plant.event(event_id).status is EventStatus.PROCESSED
    else:
        assert (await plant.grant(other)).event.id == event_id
    await trio.sleep(2)
    if state == "draining":
        assert plant.storage.tables.runners[leaving].admin_state is AdminState.DRAINED
    plant.everything_adds_up()


async def test_a_drain_is_finished_by_a_lease_that_another_node_ended(
    plant: Plant, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await plant.install(), await plant.enrol()
    await plant.deliver(zombie_id)
    grant = await plant.grant(runner_id)
    await set_state(plant, runner_id, "draining")
    del plant.storage.tables.leases[grant.lease.id]
    await trio.sleep(2.1)
    assert plant.storage.tables.runners[runner_id].admin_state is AdminState.DRAINED


async def test_a_runner_is_seen_when_it_calls_but_not_written_each_time(
    plant: Plant, autojump_clock: MockClock
) -> None:
    runner_id = await plant.enrol()
    assert plant.storage.tables.runners[runner_id].last_seen_at is None
    seen = set()
    for _ in range(20):
        await plant.system.ask("runner", runner_id, Heartbeat(()))
        seen.add(plant.storage.tables.runners[runner_id].last_seen_at)
        await trio.sleep(1)
    assert len(seen) == 4
    assert clock() - max(at for at in seen if at) <= 5000


async def test_an_unknown_runner_or_state_is_refused(plant: Plant, autojump_clock: MockClock) -> None:
    unknown = await plant.poll(plant.world.new_id())
    assert isinstance(unknown, Refusal)
    assert unknown.code == "UZ-RUN-014"
    runner_id = await plant.enrol()
    for state in ("drained", "asleep", ""):
        refused = await plant.system.ask("runner", runner_id, SetAdminState(state))
        assert isinstance(refused, Refusal)
        assert refused.code == "UZ-REQ-001"


async def test_a_heartbeat_is_not_told_of_a_cancelled_lease_that_ended_at_another_node(
    plant: Plant, autojump_clock: MockClock
) -> None:
    """Whoever waits here would be answered again and again, as long as it is remembered."""
    runner_id = await plant.enrol()
    working, ended = await plant.install("one"), plant.world.new_id()
    await plant.deliver(working)
    lease_id = (await plant.grant(runner_id)).lease.id
    cancelled = Signal(Topic.CANCEL, runner_id, about=ended)
    plant.storage.signals.hear([cancelled])

    beat = await plant.system.ask("runner", runner_id, Heartbeat((lease_id,)))

    assert beat == Beat("ok", ())
