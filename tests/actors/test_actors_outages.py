"""The database goes away, loses races and leaves commits in doubt, at each step of the way."""

from collections.abc import Awaitable, Callable
from uuid import UUID

import pytest
import trio
from trio.testing import MockClock

from sexton_actors.protocol.gate import Resolved
from sexton_actors.protocol.lease import Reported
from sexton_actors.protocol.queue import Grant
from sexton_storage.errors import StorageUnavailable
from sexton_storage.records.events import EventStatus
from sexton_storage.records.gates import GateStatus
from sexton_storage.writes import (
    AppendFrames,
    ClaimEvent,
    EndLease,
    OpenGate,
    RenewLease,
    ResolveGate,
)
from tests.worlds.actors import ActorsWorld, Later

Step = Callable[[], Awaitable[object]]


async def again_until_it_works(step: Step) -> object:
    """What a client does that is told 503: it comes again."""
    while True:
        try:
            return await step()
        except StorageUnavailable:
            await trio.sleep(0.5)


async def the_whole_path(world: ActorsWorld, before: Callable[[str], None]) -> tuple[UUID, UUID]:
    """Deliver, poll, renew, ask, approve, report, with something ordered before each step."""
    zombie_id, runner_id = await world.install(), await world.enrol()
    before("deliver")
    delivery = world.webhook()
    await again_until_it_works(lambda: world.system.ask("zombie", zombie_id, delivery))
    before("poll")
    grant = await again_until_it_works(lambda: world.grant(runner_id, 30))
    assert isinstance(grant, Grant)
    await trio.sleep(5)
    before("renew")
    await again_until_it_works(lambda: world.renewed(grant, (1000, 0, 0)))
    await trio.sleep(5)
    before("ask")
    gate = await again_until_it_works(lambda: world.ask_approval(grant))
    gate_id = getattr(gate, "id", None)
    assert isinstance(gate_id, UUID)
    await trio.sleep(5)
    before("approve")
    await again_until_it_works(lambda: world.resolve(gate_id))
    before("report")
    reported = await again_until_it_works(lambda: world.report(grant, tokens=(1500, 0, 0)))
    assert isinstance(reported, Reported), reported
    await trio.sleep(3)
    return zombie_id, grant.event.id


STEPS = ["deliver", "poll", "renew", "ask", "approve", "report"]


@pytest.mark.parametrize("step", STEPS)
async def test_an_outage_at_a_step_delays_it_and_loses_nothing(
    world: ActorsWorld, autojump_clock: MockClock, step: str
) -> None:
    async with trio.open_nursery() as nursery:

        async def back_again() -> None:
            await trio.sleep(4)
            world.faults.away = False

        def before(what: str) -> None:
            if what == step:
                world.faults.away = True
                nursery.start_soon(back_again)

        _, event_id = await the_whole_path(world, before)
    assert world.event(event_id).status is EventStatus.PROCESSED
    assert len(world.storage.tables.events) == 1
    assert sum(row.d_input_tokens for row in world.rows(event_id)) == 1500

    world.everything_adds_up()


@pytest.mark.parametrize("step", ["deliver", "renew", "ask", "approve", "report"])
async def test_a_commit_in_doubt_is_settled_by_asking_again(
    world: ActorsWorld, autojump_clock: MockClock, step: str
) -> None:
    def before(what: str) -> None:
        if what == step:
            world.faults.leave_unknown()

    _, event_id = await the_whole_path(world, before)
    assert world.event(event_id).status is EventStatus.PROCESSED
    assert len(world.storage.tables.events) == 1
    assert sum(row.d_input_tokens for row in world.rows(event_id)) == 1500

    (gate,) = world.storage.tables.gates.values()
    assert gate.status is GateStatus.APPROVED

    world.everything_adds_up()


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("kind", [ClaimEvent, RenewLease, EndLease, OpenGate, ResolveGate])
async def test_a_race_that_was_lost_is_decided_again(
    world: ActorsWorld,
    autojump_clock: MockClock,
    kind: type[ClaimEvent | RenewLease | EndLease | OpenGate | ResolveGate],
    times: int,
) -> None:
    world.faults.lose(kind, times)
    _, event_id = await the_whole_path(world, lambda _: None)
    assert world.event(event_id).status is EventStatus.PROCESSED

    world.everything_adds_up()


async def test_a_claim_in_doubt_is_taken_back_within_seconds(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    event_id = await world.deliver(zombie_id)
    await trio.sleep(0.5)
    world.faults.leave_unknown()
    began = trio.current_time()
    grant = await world.grant(runner_id, 30)
    assert grant.event.id == event_id
    assert (grant.lease.fencing_token, grant.event.attempts) == (2, 1), "the first one reached nobody"
    assert trio.current_time() - began < 3
    assert world.rows(event_id) == []

    world.everything_adds_up()


async def test_a_poll_through_an_outage_gets_the_work_when_the_database_is_back(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    event_id = await world.deliver(zombie_id)
    await trio.sleep(0.5)
    async with trio.open_nursery() as nursery:
        await world.storage.runners.load(runner_id)
        world.faults.lose(ClaimEvent)
        poll = Later(nursery, lambda: world.grant(runner_id, 30))
        await trio.sleep(0.2)
        world.faults.away = True
        await trio.sleep(8)
        world.faults.away = False
        back_at = trio.current_time()

        assert (await poll.value()).event.id == event_id
        assert poll.at is not None
        assert poll.at - back_at <= 1.1


async def test_a_poll_that_waits_ends_in_time_while_the_database_is_away(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    runner_id = await world.enrol()
    async with trio.open_nursery() as nursery:
        poll = Later(nursery, lambda: world.poll(runner_id, 10))
        await trio.sleep(1)
        world.faults.away = True
        await poll.value()

        assert poll.at is not None
        assert round(poll.at, 2) == 10


async def test_a_dead_runners_lease_is_reclaimed_as_soon_as_the_database_is_back(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    event_id = await world.deliver(zombie_id)
    await world.grant(runner_id)
    await trio.sleep(25)
    world.faults.away = True
    await trio.sleep(20)
    world.faults.away = False
    await trio.sleep(1)
    assert world.event(event_id).status is EventStatus.RECEIVED

    world.everything_adds_up()


async def test_a_time_out_that_met_an_outage_is_made_up_for(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(config="gates: {timeout_ms: 5000}"), await world.enrol()
    await world.deliver(zombie_id)
    gate = await world.ask_approval(await world.grant(runner_id))
    await trio.sleep(4)
    world.faults.away = True
    await trio.sleep(4)
    world.faults.away = False
    await trio.sleep(1)

    assert world.storage.tables.gates[gate.id].status is GateStatus.TIMED_OUT


async def test_news_that_an_outage_swallowed_reach_the_dispatcher_all_the_same(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    first, second = await world.deliver(zombie_id), await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    async with trio.open_nursery() as nursery:
        poll = Later(nursery, lambda: world.grant(runner_id, 30))
        await trio.sleep(0.5)
        # The report is committed, but the queue cannot look whether there is more.
        original = world.storage.events.ready_agent

        async def away(zombie: UUID) -> None:
            raise StorageUnavailable("away")

        world.storage.events.ready_agent = away  # type: ignore[method-assign,assignment]
        await world.report(grant)
        await trio.sleep(0.1)
        world.storage.events.ready_agent = original  # type: ignore[method-assign]

        assert (await poll.value()).event.id == second

    assert world.event(first).status is EventStatus.PROCESSED


async def test_conflicts_on_the_agents_and_runners_records_are_decided_again(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id = await world.install()
    world.faults.conflict(2)
    await world.change_status(zombie_id, "stopped")
    world.faults.conflict(1)
    await world.change_status(zombie_id, "killed")

    assert world.storage.tables.zombies[zombie_id].status == "killed"


async def test_frames_that_lost_their_race_are_tried_again(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    world.faults.lose(AppendFrames)
    taken = await world.activity(grant, "chunk")

    assert taken.count == 1  # type: ignore[union-attr]
    assert world.kinds(zombie_id)[-1] == "chunk"
    assert isinstance(await world.resolve((await world.ask_approval(grant)).id), Resolved)
