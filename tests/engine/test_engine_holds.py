"""Actors that keep a message without a task until somebody finishes it."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from sexton_engine import (
    DEFERRED,
    ActorCrashed,
    ActorSpec,
    ActorStopped,
    ActorSystem,
    AskTimeout,
    Context,
    EngineError,
    Lane,
    Reason,
    Strategy,
    open_system,
)
from tests.worlds.engine import Clock, OutageError, tree
from tests.worlds.engine_holds import (
    AsyncHoldingActor,
    HoldingActor,
    HoldWorld,
    Make,
    Note,
    Run,
    StartHold,
    asked,
    finish,
    holding_family,
    release,
    settled,
)


@pytest.fixture(params=[HoldingActor, AsyncHoldingActor], ids=["plain", "async"])
def make(request: pytest.FixtureRequest) -> Make:
    """Each kind of handler."""
    kind: Make = request.param
    return kind


async def test_a_held_actor_takes_no_message_and_holds_no_worker(make: Make, autojump_clock: Clock) -> None:
    world = HoldWorld()
    async with open_system(tree(holding_family(world, make))) as system, trio.open_nursery() as nursery:
        await system.ask("holder", "a", Note("awake"))
        kept = await asked(system, nursery, StartHold())
        await settled()
        statistics = system.statistics()
        assert statistics.workers == statistics.workers_idle

        later = await asked(system, nursery, Note("later"))
        system.tell("holder", "a", Note("above"), lane=Lane.CONTROL)
        await trio.sleep(5)
        assert world.notes == ["awake", "begin kept"]
        assert system.statistics().kind("holder").mailbox_depth == 2
        assert system.statistics().kind("holder").mailbox_age_s == 5
        assert finish(world.holds[0], world.note, "finished", "reply")

        await settled()
        assert world.notes == ["awake", "begin kept", "finished", "above", "later"]
        assert (kept.answers, later.answers) == (["reply"], ["later"])


async def test_what_finishes_a_hold_returns_the_reply(make: Make, autojump_clock: Clock) -> None:
    world = HoldWorld()
    async with open_system(tree(holding_family(world, make))) as system, trio.open_nursery() as nursery:
        kept = await asked(system, nursery, StartHold())  # the first message: handled by a worker
        await trio.sleep(3)
        assert finish(world.holds[0], world.note, "finished", ["the reply"])

        await settled()
        assert kept.answers == [["the reply"]]

        again = await asked(
            system, nursery, StartHold("again")
        )  # by the asker's own task, where the handler is plain
        await trio.sleep(4)
        assert finish(world.holds[1], world.note, "finished", 2)

        await settled()
        assert again.answers == [2]

        # A message that is told has nobody to hear the reply.
        system.tell("holder", "a", StartHold("told"))
        await settled()
        assert finish(world.holds[2], world.note, "finished", 3)

        (message,) = system.statistics().kind("holder").messages
        assert (message.count, message.seconds) == (3, 7.0)

    assert world.notes == [
        "begin kept",
        "finished",
        "begin again",
        "finished",
        "begin told",
        "finished",
        "stop",
    ]


async def test_what_is_given_to_a_hold_goes_to_the_rest_that_it_was_taken_with(
    make: Make, autojump_clock: Clock
) -> None:
    world = HoldWorld()

    def hold(actor: HoldingActor) -> Any:
        world.holds.append(actor.context.hold(None if world.holds else lambda value: 2 * value))
        return DEFERRED

    async with open_system(tree(holding_family(world, make))) as system, trio.open_nursery() as nursery:
        await system.ask("holder", "a", Note("awake"))
        doubled = await asked(system, nursery, Run(hold))
        await settled()
        world.holds[0].give(21)
        await settled()
        as_given = await asked(system, nursery, Run(hold))
        await settled()
        world.holds[1].give("as it is")
        world.holds[1].give("too late")
        await settled()

        assert (doubled.answers, as_given.answers) == ([42], ["as it is"])
        assert system.dead_letters.count(Reason.LATE_FINISH) == 1


async def test_an_actor_answers_at_once_again_after_a_hold(autojump_clock: Clock) -> None:
    world = HoldWorld()
    async with open_system(tree(holding_family(world))) as system, trio.open_nursery() as nursery:
        await system.ask("holder", "a", Note("awake"))
        await asked(system, nursery, StartHold())
        await settled()
        finish(world.holds[0], world.note, "finished")
        await settled()
        me = trio.lowlevel.current_task()

        assert await system.ask("holder", "a", Run(lambda _: trio.lowlevel.current_task())) is me


async def test_what_finishes_a_hold_may_wait_or_hold_again(make: Make, autojump_clock: Clock) -> None:
    world = HoldWorld()

    async def wait(actor: HoldingActor) -> Any:
        await trio.sleep(1)
        world.holds.append(actor.context.hold())
        return DEFERRED

    def hold(actor: HoldingActor) -> Any:
        world.holds.append(actor.context.hold())
        return DEFERRED

    async with open_system(tree(holding_family(world, make))) as system, trio.open_nursery() as nursery:
        await system.ask("holder", "a", Note("awake"))
        kept = await asked(system, nursery, Run(hold))
        await settled()
        actor = await _instance(world, system, nursery)
        later = await asked(system, nursery, Note("later"))
        finish(world.holds[0], wait, actor)
        await trio.sleep(2)
        finish(world.holds[1], hold, actor)
        finish(world.holds[2], hold, actor)
        await trio.sleep(2)
        assert later.answers == kept.answers == []

        finish(world.holds[3], world.note, "finished", 1)
        await settled()
        assert (kept.answers, later.answers) == ([1], ["later"])
        assert world.notes == ["awake", "finished", "later"]


async def _instance(world: HoldWorld, system: ActorSystem, nursery: trio.Nursery) -> Any:
    """The actor behind the hold, as a script of its own would get it."""
    del system, nursery
    return world.holds[0]._cell.instance()  # type: ignore[attr-defined]


async def test_a_hold_may_be_finished_before_its_handler_returns(make: Make, autojump_clock: Clock) -> None:
    world = HoldWorld()

    def at_once(actor: HoldingActor) -> Any:
        hold = actor.context.hold()
        assert finish(hold, world.note, "finished", "reply")
        assert not finish(hold, world.note, "twice")
        world.notes.append("returns")
        return DEFERRED

    async with open_system(tree(holding_family(world, make))) as system:
        for _ in range(2):
            assert await system.ask("holder", "a", Run(at_once)) == "reply"

        assert world.notes == ["returns", "finished"] * 2
        assert system.dead_letters.count(Reason.LATE_FINISH) == 2


async def test_a_reply_may_be_taken_over_and_the_actor_released_by_itself(
    make: Make, autojump_clock: Clock
) -> None:
    world, ports = HoldWorld(), []

    def defer(actor: HoldingActor) -> Any:
        ports.append(actor.context.defer())
        world.holds.append(actor.context.hold())
        return DEFERRED

    async with open_system(tree(holding_family(world, make))) as system, trio.open_nursery() as nursery:
        for reply_first in (True, False):
            kept = await asked(system, nursery, Run(defer))
            later = await asked(system, nursery, Note("later"))
            await settled()
            for reply in (reply_first, not reply_first):
                assert ports[-1].set("reply") if reply else release(world.holds[-1])
                await settled()
                assert bool(kept.answers) is (reply or reply_first)
            assert (kept.answers, later.answers) == (["reply"], ["later"])
        # Without a reply that was taken over there is nobody to answer the asker.
        kept = await asked(system, nursery, StartHold())
        await settled()
        world.holds[-1].release()
        await trio.sleep(2)  # the back-off
        world.holds[-1].release()
        await settled()

        assert kept.answers == [ActorCrashed]


async def test_a_transparent_exception_out_of_a_finish_reaches_the_asker(
    make: Make, autojump_clock: Clock
) -> None:
    world = HoldWorld()

    def fail() -> None:
        raise OutageError

    async with open_system(tree(holding_family(world, make))) as system, trio.open_nursery() as nursery:
        kept = await asked(system, nursery, StartHold())
        later = await asked(system, nursery, Note("later"))
        await settled()
        assert finish(world.holds[0], fail)

        await settled()
        assert (kept.answers, later.answers) == ([OutageError], ["later"])
        assert system.statistics().kind("holder").crashes == 0


async def test_a_crash_out_of_a_finish_delivers_the_message_once_more(
    make: Make, autojump_clock: Clock
) -> None:
    world = HoldWorld()

    def fail() -> None:
        raise ValueError

    async with open_system(tree(holding_family(world, make))) as system, trio.open_nursery() as nursery:
        await system.ask("holder", "a", Note("awake"))
        for crashes, answer in ((1, "reply"), (2, ActorCrashed)):
            world.holds.clear()
            kept = await asked(system, nursery, StartHold())
            later = await asked(system, nursery, Note("later"))
            for _ in range(crashes):
                await settled()
                assert (kept.answers, later.answers) == ([], [])
                assert finish(world.holds[-1], fail)
                await trio.sleep(9)
            if crashes == 1:
                assert finish(world.holds[-1], world.note, "finished", "reply")
            await trio.sleep(9)
            assert (kept.answers, later.answers) == ([answer], ["later"])

        assert system.dead_letters.count(Reason.CRASHED) == 1
        assert system.statistics().kind("holder").crashes == 3


async def test_an_exception_out_of_a_handler_that_holds_ends_the_hold(
    make: Make, autojump_clock: Clock
) -> None:
    world = HoldWorld()

    def hold_and_fail(actor: HoldingActor) -> Any:
        world.holds.append(actor.context.hold())
        raise OutageError

    async with open_system(tree(holding_family(world, make))) as system, trio.open_nursery() as nursery:
        for _ in range(2):
            kept = await asked(system, nursery, Run(hold_and_fail))
            await settled()
            assert kept.answers == [OutageError]
            assert not finish(world.holds[-1], world.note, "late")
            assert await system.ask("holder", "a", Note("lives on")) == "lives on"
        assert world.notes == ["lives on"] * 2


async def test_a_handler_that_holds_must_not_reply_itself(make: Make, autojump_clock: Clock) -> None:
    def hold_and_reply(actor: HoldingActor) -> Any:
        actor.context.hold()
        return "reply"

    async with open_system(tree(holding_family(HoldWorld(), make))) as system:
        await system.ask("holder", "a", Note("awake"))
        with pytest.raises(ActorCrashed, match="returns DEFERRED"):
            await system.ask("holder", "a", Run(hold_and_reply))


async def test_a_message_is_held_once_and_only_while_it_is_handled(make: Make, autojump_clock: Clock) -> None:
    contexts = []

    def hold_twice(actor: HoldingActor) -> Any:
        contexts.append(actor.context)
        actor.context.hold()
        actor.context.hold()
        return DEFERRED

    async with open_system(tree(holding_family(HoldWorld(), make))) as system:
        with pytest.raises(ActorCrashed, match="held already"):
            await system.ask("holder", "a", Run(hold_twice))
        await system.ask("holder", "a", Note("idle"))
        with pytest.raises(EngineError, match="no message"):
            contexts[-1].hold()


async def test_an_asker_runs_out_of_time_while_the_actor_is_held(make: Make, autojump_clock: Clock) -> None:
    world = HoldWorld()
    async with open_system(tree(holding_family(world, make))) as system, trio.open_nursery() as nursery:
        kept = await asked(system, nursery, StartHold(), 2)
        later = await asked(system, nursery, Note("later"), 3)
        await trio.sleep(5)
        assert kept.answers == later.answers == [AskTimeout]
        assert finish(world.holds[0], world.note, "finished", "late")

        await settled()
        assert world.notes == ["begin kept", "finished"]
        assert system.dead_letters.count(Reason.LATE_REPLY) == 1
        assert system.dead_letters.count(Reason.EXPIRED) == 1


@pytest.mark.parametrize(("finish_after", "notes"), [(2, ["finished", "stop"]), (9, [])])
async def test_a_stop_waits_for_the_hold_within_its_budget(
    finish_after: float, notes: list[str], make: Make, autojump_clock: Clock
) -> None:
    world = HoldWorld()
    spec = holding_family(world, make, shutdown_s=5)
    async with open_system(tree(spec)) as system, trio.open_nursery() as nursery:
        await system.ask("holder", "a", Note("awake"))
        kept = await asked(system, nursery, StartHold())
        later = await asked(system, nursery, Note("later"))
        await settled()
        nursery.start_soon(system.stop, "holder", "a")
        await trio.sleep(finish_after)
        assert world.notes == ["awake", "begin kept"]
        assert finish(world.holds[0], world.note, "finished", "reply") is bool(notes)

        await settled()
        assert world.notes == ["awake", "begin kept", *notes]
        assert kept.answers == (["reply"] if notes else [ActorStopped])
        assert later.answers == [ActorStopped]


async def test_a_kill_drops_the_hold(make: Make, autojump_clock: Clock) -> None:
    world = HoldWorld()
    async with open_system(tree(holding_family(world, make))) as system, trio.open_nursery() as nursery:
        await system.ask("holder", "a", Note("awake"))
        kept = await asked(system, nursery, StartHold())
        later = await asked(system, nursery, Note("later"))
        assert system.kill("holder", "a")

        await settled()
        assert kept.answers == later.answers == [ActorStopped]
        assert not finish(world.holds[-1], world.note, "late")
        assert await system.ask("holder", "a", Note("again")) == "again"
        assert world.notes == ["awake", "begin kept", "again"]
        assert system.dead_letters.count(Reason.LATE_FINISH) == 1


async def test_an_actor_may_kill_itself_while_it_holds(make: Make, autojump_clock: Clock) -> None:
    world = HoldWorld()

    def hold_and_die(actor: HoldingActor) -> Any:
        world.holds.append(actor.context.hold())
        actor.context.system.kill("holder", "a")
        return DEFERRED

    async with open_system(tree(holding_family(world, make))) as system, trio.open_nursery() as nursery:
        for _ in range(2):
            kept = await asked(system, nursery, Run(hold_and_die))
            assert kept.answers == [ActorStopped]
            assert not finish(world.holds[-1], world.note, "late")
            assert await system.ask("holder", "a", Note("again")) == "again"
        assert world.notes == ["again"] * 2


async def test_a_sibling_that_is_held_too_long_gets_the_message_again(
    make: Make, autojump_clock: Clock
) -> None:
    world = HoldWorld()
    children = (
        ActorSpec("crasher", lambda context: HoldingActor(context, HoldWorld())),
        holding_family(world, make, shutdown_s=5),
    )

    def fail(_: Any) -> None:
        raise ValueError

    spec = tree(*children, strategy=Strategy.REST_FOR_ONE)
    async with open_system(spec) as system, trio.open_nursery() as nursery:
        kept = await asked(system, nursery, StartHold(), 60)
        await settled()
        system.tell("crasher", "", Run(fail))
        await trio.sleep(20)
        assert world.notes == ["begin kept", "begin kept"]
        assert not finish(world.holds[0], world.note, "late")
        assert finish(world.holds[1], world.note, "finished", "reply")

        await settled()
        assert kept.answers == ["reply"]


async def test_a_child_task_that_crashes_drops_the_hold(make: Make, autojump_clock: Clock) -> None:
    world = HoldWorld()

    async def fail() -> None:
        await trio.sleep(1)
        raise ValueError

    def hold(actor: HoldingActor) -> Any:
        if not world.holds:
            actor.context.start_task(fail)
        world.holds.append(actor.context.hold())
        return DEFERRED

    async with open_system(tree(holding_family(world, make))) as system, trio.open_nursery() as nursery:
        await system.ask("holder", "a", Note("awake"))
        kept = await asked(system, nursery, Run(hold))
        later = await asked(system, nursery, Note("later"))
        await trio.sleep(5)
        assert not finish(world.holds[0], world.note, "late")
        assert finish(world.holds[1], world.note, "finished", "reply")

        await settled()
        assert (kept.answers, later.answers) == (["reply"], ["later"])
        assert system.statistics().kind("holder").crashes == 1


async def test_an_outage_of_a_child_task_drops_the_hold_and_the_singleton_is_tried_again_later(
    make: Make, autojump_clock: Clock
) -> None:
    world, born = HoldWorld(), []

    async def fail() -> None:
        await trio.sleep(1)
        raise OutageError

    def hold(actor: HoldingActor) -> Any:
        actor.context.start_task(fail)
        world.holds.append(actor.context.hold())
        return DEFERRED

    def start(context: Context) -> HoldingActor:
        born.append(trio.current_time())
        return make(context, world)

    async with open_system(tree(ActorSpec("holder", start))) as system:
        with pytest.raises(OutageError):
            await system.ask("holder", "", Run(hold))
        assert not finish(world.holds[0], world.note, "late")

        await trio.sleep(5)

    assert born == [0, 2], "after a second of back-off"


async def test_a_hold_is_finished_once(make: Make, autojump_clock: Clock) -> None:
    world = HoldWorld()
    async with open_system(tree(holding_family(world, make))) as system, trio.open_nursery() as nursery:
        kept = await asked(system, nursery, StartHold())
        await settled()
        assert finish(world.holds[0], world.note, "finished", 1)
        assert not finish(world.holds[0], world.note, "twice", 2)
        assert not release(world.holds[0])

        await settled()
        assert kept.answers == [1]
        assert world.notes == ["begin kept", "finished"]
        assert system.dead_letters.count(Reason.LATE_FINISH) == 2


async def test_a_held_actor_is_not_put_to_sleep(make: Make, autojump_clock: Clock) -> None:
    world = HoldWorld()
    async with (
        open_system(tree(holding_family(world, make, idle_s=5))) as system,
        trio.open_nursery() as nursery,
    ):
        kept = await asked(system, nursery, StartHold())
        await trio.sleep(20)
        assert system.statistics().kind("holder").passivations == 0

        finish(world.holds[0], world.note, "finished", 1)
        await trio.sleep(20)
        assert system.statistics().kind("holder").passivations == 1
        assert kept.answers == [1]


async def test_a_coroutine_that_was_handed_out_dies_with_a_kill_before_it_began(
    autojump_clock: Clock,
) -> None:
    world = HoldWorld()

    async def wait() -> None:
        await trio.lowlevel.checkpoint()
        world.notes.append("waited")

    async with open_system(tree(holding_family(world))) as system, trio.open_nursery() as nursery:
        kept = await asked(system, nursery, StartHold())
        await settled()
        finish(world.holds[0], wait)
        system.kill("holder", "a")
        await settled()

        assert kept.answers == [ActorStopped]
        assert await system.ask("holder", "a", Note("again")) == "again"
        assert world.notes == ["begin kept", "again"]
