"""How actors end: stop, kill, the order of start and stop, and what a close leaves behind."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from sexton_engine import (
    ActorSpec,
    ActorStopped,
    AskTimeout,
    FamilySpec,
    Reason,
    Strategy,
    SupervisorSpec,
    open_system,
)
from tests.worlds.engine import (
    Clock,
    Do,
    EngineWorld,
    Note,
    ScriptedActor,
    Wait,
    scripted,
    scripted_family,
    tree,
)

ABC = ("a", "b", "c")


def lines(world: EngineWorld, *words: str) -> list[str]:
    return [note for note in world.notes if note.split()[0] in words]


async def test_stop_ends_after_the_message_being_handled(autojump_clock: Clock) -> None:
    world = EngineWorld()
    async with open_system(tree(scripted_family(world, shutdown_s=60))) as system:
        system.tell("scripted", "a", Wait(10, "finished"))
        await trio.testing.wait_all_tasks_blocked()
        system.tell("scripted", "a", Note("behind"))

        assert await system.stop("scripted", "a")
        assert world.notes == ["start scripted/a", "finished", "stop scripted/a"]
        assert system.dead_letters.count(Reason.STOPPED) == 1
        assert not await system.stop("scripted", "a")


async def test_a_stop_that_takes_too_long_becomes_a_kill(autojump_clock: Clock) -> None:
    world = EngineWorld()
    async with open_system(tree(scripted_family(world, shutdown_s=3))) as system:
        before = trio.current_time()
        async with trio.open_nursery() as nursery:

            async def ask() -> None:
                with pytest.raises(ActorStopped, match="was killed"):
                    await system.ask("scripted", "a", Wait(1000), timeout=2000)

            nursery.start_soon(ask)
            await trio.testing.wait_all_tasks_blocked()

            assert await system.stop("scripted", "a")

        assert trio.current_time() - before == 3
        assert "waited" not in world.notes


async def test_kill_cancels_the_handler_and_runs_no_on_stop(autojump_clock: Clock) -> None:
    world = EngineWorld()
    async with open_system(tree(scripted_family(world))) as system:
        system.tell("scripted", "a", Wait(10, "never"))
        await trio.testing.wait_all_tasks_blocked()
        assert system.kill("scripted", "a")
        assert not system.kill("scripted", "b")

        await trio.sleep(20)
        assert world.notes == ["start scripted/a"]
        assert await system.ask("scripted", "a", Note("a new activation")) == 1


async def test_an_actor_may_kill_itself(autojump_clock: Clock) -> None:
    async def suicide(me: ScriptedActor) -> None:
        me.context.system.kill("scripted", "a")
        await trio.sleep(1)
        pytest.fail("it lived on")

    async with open_system(tree(scripted_family(EngineWorld()))) as system:
        with pytest.raises(ActorStopped):
            await system.ask("scripted", "a", Do(suicide))


async def test_a_worker_whose_actor_was_killed_serves_others(autojump_clock: Clock) -> None:
    world = EngineWorld()
    async with open_system(tree(scripted_family(world))) as system:
        for number in range(20):
            system.tell("scripted", number, Wait(100))
            await trio.testing.wait_all_tasks_blocked()
            system.kill("scripted", number)
            assert await system.ask("scripted", f"other {number}", Note("x")) == 1
        assert system.statistics().workers <= 3


async def test_the_tree_starts_in_order_and_stops_in_reverse(autojump_clock: Clock) -> None:
    world = EngineWorld()
    inner = SupervisorSpec("inner", Strategy.ONE_FOR_ONE, (scripted(world, "b"), scripted(world, "c")))
    async with open_system(tree(scripted(world, "a"), inner, scripted(world, "d"))):
        assert world.notes == [f"start {kind}/" for kind in "abcd"]
        world.notes.clear()

    assert world.notes == [f"stop {kind}/" for kind in "dcba"]


async def test_mail_from_an_earlier_sibling_does_not_start_an_actor_before_its_turn(
    autojump_clock: Clock,
) -> None:
    class Eager(ScriptedActor):
        async def on_start(self) -> None:  # type: ignore[override]  # pykka annotates its hooks for threads
            for kind in ("d", "c", "b"):
                self.context.tell(kind, "x" if kind == "d" else "", Note(f"mail {kind}"))
            await trio.sleep(1)
            await super().on_start()

    world = EngineWorld()
    spec = tree(
        ActorSpec("a", lambda context: Eager(context, world)),
        scripted(world, "b"),
        scripted(world, "c"),
        scripted_family(world, "d"),
    )
    async with open_system(spec):
        await trio.testing.wait_all_tasks_blocked()

        assert lines(world, "start") == ["start a/", "start b/", "start c/", "start d/x"]
        assert sorted(lines(world, "mail")) == ["mail b", "mail c", "mail d"]


async def test_actors_stop_in_order_even_when_the_body_is_cancelled_or_fails(autojump_clock: Clock) -> None:
    world = EngineWorld()
    with trio.move_on_after(5):
        async with open_system(tree(scripted(world, "a"), scripted(world, "b"))):
            await trio.sleep_forever()
    assert lines(world, "stop") == ["stop b/", "stop a/"]

    world.notes.clear()
    with pytest.raises(KeyError):
        async with open_system(tree(scripted(world, "a"), scripted(world, "b"))):
            raise KeyError
    assert lines(world, "stop") == ["stop b/", "stop a/"]


async def test_an_opening_that_is_cancelled_stops_what_was_started(autojump_clock: Clock) -> None:
    class Slow(ScriptedActor):
        async def on_start(self) -> None:  # type: ignore[override]  # pykka annotates its hooks for threads
            await trio.sleep_forever()

    world = EngineWorld()
    spec = tree(scripted(world, "a"), ActorSpec("slow", lambda context: Slow(context, world)))
    with trio.move_on_after(5) as scope:
        async with open_system(spec):
            pytest.fail("it opened")

    assert scope.cancelled_caught
    assert world.notes == ["start a/", "stop a/"]


async def test_the_shutdown_budget_bounds_the_stop_of_the_whole_tree(autojump_clock: Clock) -> None:
    class Stubborn(ScriptedActor):
        async def on_stop(self) -> None:  # type: ignore[override]  # pykka annotates its hooks for threads
            await trio.sleep_forever()

    world = EngineWorld()
    spec = SupervisorSpec(
        "root",
        Strategy.ONE_FOR_ONE,
        tuple(
            ActorSpec(kind, lambda context: Stubborn(context, world), shutdown_s=4)
            for kind in ("a", "b", "c")
        ),
        shutdown_s=10,
    )
    async with open_system(spec):
        before = trio.current_time()

    assert trio.current_time() - before <= 10 + 1


async def test_messages_that_wait_when_the_system_closes_become_dead_letters(autojump_clock: Clock) -> None:
    world = EngineWorld()
    async with open_system(tree(scripted_family(world), scripted(world, "one"))) as system:
        system.tell("scripted", "a", Wait(3))
        system.tell("one", "", Wait(1))
        await trio.testing.wait_all_tasks_blocked()
        system.tell("scripted", "a", Note("x"))
        system.tell("one", "", Note("x"))

    assert system.dead_letters.count(Reason.STOPPED) == 2


async def test_a_hook_that_fails_at_the_stop_is_logged_and_the_actor_ends(
    autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    class Clumsy(ScriptedActor):
        async def on_stop(self) -> None:  # type: ignore[override]  # pykka annotates its hooks for threads
            raise ValueError("clumsy")

    async with open_system(
        tree(FamilySpec("clumsy", lambda context: Clumsy(context, EngineWorld())))
    ) as system:
        await system.ask("clumsy", "a", Note("x"))

        assert await system.stop("clumsy", "a")
        assert system.statistics().kind("clumsy").live == 0

    assert any("on_stop of clumsy/a failed" in record.message for record in caplog.records)


async def test_an_actor_that_shields_itself_is_left_behind_by_the_stop(autojump_clock: Clock) -> None:
    async def shielded(me: ScriptedActor) -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(50)

    async with open_system(tree(scripted_family(EngineWorld(), shutdown_s=2))) as system:
        system.tell("scripted", "a", Do(shielded))
        await trio.testing.wait_all_tasks_blocked()
        before = trio.current_time()
        await system.stop("scripted", "a")
        assert trio.current_time() - before == 3

        with pytest.raises(AskTimeout):
            await system.ask("scripted", "a", Note("still the old one's mailbox"), timeout=1)


async def test_a_kind_that_stands_twice_in_the_tree_is_refused(autojump_clock: Clock) -> None:
    world = EngineWorld()
    inner = SupervisorSpec("inner", Strategy.ONE_FOR_ONE, (scripted(world, "a"),))
    with pytest.raises(ValueError, match="stands in the tree twice"):
        async with open_system(tree(scripted(world, "a"), inner)):
            pytest.fail("it opened")
