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
from tests.engine.cast import (
    Clock,
    Do,
    Note,
    Player,
    Stage,
    Wait,
    player,
    players,
    tree,
)

ABC = ("a", "b", "c")


def lines(stage: Stage, *words: str) -> list[str]:
    return [note for note in stage.notes if note.split()[0] in words]


async def test_stop_ends_after_the_message_being_handled(autojump_clock: Clock) -> None:
    stage = Stage()
    async with open_system(tree(players(stage, shutdown_s=60))) as system:
        system.tell("player", "a", Wait(10, "finished"))
        await trio.testing.wait_all_tasks_blocked()
        system.tell("player", "a", Note("behind"))
        assert await system.stop("player", "a")
        assert stage.notes == ["start player/a", "finished", "stop player/a"]
        assert system.dead_letters.count(Reason.STOPPED) == 1
        assert not await system.stop("player", "a")


async def test_a_stop_that_takes_too_long_becomes_a_kill(autojump_clock: Clock) -> None:
    stage = Stage()
    async with open_system(tree(players(stage, shutdown_s=3))) as system:
        before = trio.current_time()
        async with trio.open_nursery() as nursery:

            async def ask() -> None:
                with pytest.raises(ActorStopped, match="was killed"):
                    await system.ask("player", "a", Wait(1000), timeout=2000)

            nursery.start_soon(ask)
            await trio.testing.wait_all_tasks_blocked()
            assert await system.stop("player", "a")
        assert trio.current_time() - before == 3
        assert "waited" not in stage.notes


async def test_kill_cancels_the_handler_and_runs_no_on_stop(autojump_clock: Clock) -> None:
    stage = Stage()
    async with open_system(tree(players(stage))) as system:
        system.tell("player", "a", Wait(10, "never"))
        await trio.testing.wait_all_tasks_blocked()
        assert system.kill("player", "a")
        assert not system.kill("player", "b")
        await trio.sleep(20)
        assert stage.notes == ["start player/a"]
        assert await system.ask("player", "a", Note("a new activation")) == 1


async def test_an_actor_may_kill_itself(autojump_clock: Clock) -> None:
    async def suicide(me: Player) -> None:
        me.context.system.kill("player", "a")
        await trio.sleep(1)
        pytest.fail("it lived on")

    async with open_system(tree(players(Stage()))) as system:
        with pytest.raises(ActorStopped):
            await system.ask("player", "a", Do(suicide))


async def test_a_worker_whose_actor_was_killed_serves_others(autojump_clock: Clock) -> None:
    stage = Stage()
    async with open_system(tree(players(stage))) as system:
        for number in range(20):
            system.tell("player", number, Wait(100))
            await trio.testing.wait_all_tasks_blocked()
            system.kill("player", number)
            assert await system.ask("player", f"other {number}", Note("x")) == 1
        assert system.statistics().workers <= 3


async def test_the_tree_starts_in_order_and_stops_in_reverse(autojump_clock: Clock) -> None:
    stage = Stage()
    inner = SupervisorSpec("inner", Strategy.ONE_FOR_ONE, (player(stage, "b"), player(stage, "c")))
    async with open_system(tree(player(stage, "a"), inner, player(stage, "d"))):
        assert stage.notes == [f"start {kind}/" for kind in "abcd"]
        stage.notes.clear()
    assert stage.notes == [f"stop {kind}/" for kind in "dcba"]


async def test_mail_from_an_earlier_sibling_does_not_start_an_actor_before_its_turn(
    autojump_clock: Clock,
) -> None:
    class Eager(Player):
        async def on_start(self) -> None:  # type: ignore[override]  # pykka annotates its hooks for threads
            for kind in ("d", "c", "b"):
                self.context.tell(kind, "x" if kind == "d" else "", Note(f"mail {kind}"))
            await trio.sleep(1)
            await super().on_start()

    stage = Stage()
    spec = tree(
        ActorSpec("a", lambda context: Eager(context, stage)),
        player(stage, "b"),
        player(stage, "c"),
        players(stage, "d"),
    )
    async with open_system(spec):
        await trio.testing.wait_all_tasks_blocked()
        assert lines(stage, "start") == ["start a/", "start b/", "start c/", "start d/x"]
        assert sorted(lines(stage, "mail")) == ["mail b", "mail c", "mail d"]


async def test_actors_stop_in_order_even_when_the_body_is_cancelled_or_fails(autojump_clock: Clock) -> None:
    stage = Stage()
    with trio.move_on_after(5):
        async with open_system(tree(player(stage, "a"), player(stage, "b"))):
            await trio.sleep_forever()
    assert lines(stage, "stop") == ["stop b/", "stop a/"]
    stage.notes.clear()
    with pytest.raises(KeyError):
        async with open_system(tree(player(stage, "a"), player(stage, "b"))):
            raise KeyError
    assert lines(stage, "stop") == ["stop b/", "stop a/"]


async def test_an_opening_that_is_cancelled_stops_what_was_started(autojump_clock: Clock) -> None:
    class Slow(Player):
        async def on_start(self) -> None:  # type: ignore[override]  # pykka annotates its hooks for threads
            await trio.sleep_forever()

    stage = Stage()
    spec = tree(player(stage, "a"), ActorSpec("slow", lambda context: Slow(context, stage)))
    with trio.move_on_after(5) as scope:
        async with open_system(spec):
            pytest.fail("it opened")
    assert scope.cancelled_caught
    assert stage.notes == ["start a/", "stop a/"]


async def test_the_shutdown_budget_bounds_the_stop_of_the_whole_tree(autojump_clock: Clock) -> None:
    class Stubborn(Player):
        async def on_stop(self) -> None:  # type: ignore[override]  # pykka annotates its hooks for threads
            await trio.sleep_forever()

    stage = Stage()
    spec = SupervisorSpec(
        "root",
        Strategy.ONE_FOR_ONE,
        tuple(
            ActorSpec(kind, lambda context: Stubborn(context, stage), shutdown_s=4)
            for kind in ("a", "b", "c")
        ),
        shutdown_s=10,
    )
    async with open_system(spec):
        before = trio.current_time()
    assert trio.current_time() - before <= 10 + 1


async def test_messages_that_wait_when_the_system_closes_become_dead_letters(autojump_clock: Clock) -> None:
    stage = Stage()
    async with open_system(tree(players(stage), player(stage, "one"))) as system:
        system.tell("player", "a", Wait(3))
        system.tell("one", "", Wait(1))
        await trio.testing.wait_all_tasks_blocked()
        system.tell("player", "a", Note("x"))
        system.tell("one", "", Note("x"))
    assert system.dead_letters.count(Reason.STOPPED) == 2


async def test_a_hook_that_fails_at_the_stop_is_logged_and_the_actor_ends(
    autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    class Clumsy(Player):
        async def on_stop(self) -> None:  # type: ignore[override]  # pykka annotates its hooks for threads
            raise ValueError("clumsy")

    async with open_system(tree(FamilySpec("clumsy", lambda context: Clumsy(context, Stage())))) as system:
        await system.ask("clumsy", "a", Note("x"))
        assert await system.stop("clumsy", "a")
        assert system.statistics().kind("clumsy").live == 0
    assert any("on_stop of clumsy/a failed" in record.message for record in caplog.records)


async def test_an_actor_that_shields_itself_is_left_behind_by_the_stop(autojump_clock: Clock) -> None:
    async def shielded(me: Player) -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(50)

    async with open_system(tree(players(Stage(), shutdown_s=2))) as system:
        system.tell("player", "a", Do(shielded))
        await trio.testing.wait_all_tasks_blocked()
        before = trio.current_time()
        await system.stop("player", "a")
        assert trio.current_time() - before == 3
        with pytest.raises(AskTimeout):
            await system.ask("player", "a", Note("still the old one's mailbox"), timeout=1)


async def test_a_kind_that_stands_twice_in_the_tree_is_refused(autojump_clock: Clock) -> None:
    stage = Stage()
    inner = SupervisorSpec("inner", Strategy.ONE_FOR_ONE, (player(stage, "a"),))
    with pytest.raises(ValueError, match="stands in the tree twice"):
        async with open_system(tree(player(stage, "a"), inner)):
            pytest.fail("it opened")
