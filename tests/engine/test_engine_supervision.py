"""Crashes, restarts, strategies and escalation."""

from __future__ import annotations

import logging
from random import Random
from typing import Any

import pytest
import trio
import trio.testing

from sexton_engine import (
    Actor,
    ActorCrashed,
    ActorStopped,
    Backoff,
    Context,
    EngineFault,
    FamilySpec,
    Intensity,
    Reason,
    Restart,
    Strategy,
    SupervisorSpec,
    open_system,
)
from tests.engine.cast import (
    PATIENT,
    QUICK,
    Clock,
    Crash,
    Do,
    Note,
    OutageError,
    Player,
    Raise,
    Stage,
    Wait,
    player,
    players,
    tree,
)

ABC = ("a", "b", "c")


def lines(stage: Stage, *words: str) -> list[str]:
    return [note for note in stage.notes if note.split()[0] in words]


async def test_the_message_that_crashed_the_actor_is_delivered_once_more(autojump_clock: Clock) -> None:
    stage = Stage()
    async with open_system(tree(player(stage))) as system:
        before = trio.current_time()
        await system.ask("player", "", Crash(times=1))
        assert trio.current_time() - before == QUICK.first_s
        assert stage.notes == ["start player/", "start player/", "crash"]
        assert system.dead_letters.total() == 0


async def test_a_message_that_crashes_twice_dies_and_its_asker_is_told(autojump_clock: Clock) -> None:
    stage = Stage()
    async with open_system(tree(player(stage))) as system:
        with pytest.raises(ActorCrashed) as caught:
            await system.ask("player", "", Crash(times=9))
        assert isinstance(caught.value.__cause__, ValueError)
        assert stage.crashes["crash"] == 2
        assert await system.ask("player", "", Note("alive")) == 1
        assert system.dead_letters.count(Reason.CRASHED) == 1
        assert system.dead_letters.latest()[0].message == Crash(times=9)


async def test_a_restart_is_a_new_instance_with_the_old_mailbox(autojump_clock: Clock) -> None:
    stage = Stage()
    async with open_system(tree(player(stage))) as system:
        assert await system.ask("player", "", Note("before")) == 1
        system.tell("player", "", Crash(times=1))
        for number in range(3):
            system.tell("player", "", Note(str(number)))
        assert await system.ask("player", "", Note("after")) == 4
        assert stage.notes == ["start player/", "before", "start player/", "crash", "0", "1", "2", "after"]


async def test_the_back_off_grows_and_strays(autojump_clock: Clock) -> None:
    stage = Stage()
    waits = []
    backoff = Backoff(first_s=1, factor=2, max_s=5, jitter=0.5)
    async with open_system(tree(player(stage), backoff=backoff), rng=Random(1)) as system:
        for number in range(4):
            before = trio.current_time()
            await system.ask("player", "", Crash(times=1, text=str(number)))
            waits.append(trio.current_time() - before)
    expected = Random(1)
    assert waits == pytest.approx([plain * (0.5 + expected.random()) for plain in (1, 2, 4, 5)])


async def test_one_crash_too_many_ends_the_system_with_the_crash_as_the_cause(autojump_clock: Clock) -> None:
    stage = Stage()
    cancelled = False
    spec = tree(player(stage), intensity=Intensity(2, 60))

    async def run_until_it_falls() -> None:
        nonlocal cancelled
        async with open_system(spec) as system:
            for number in range(3):
                system.tell("player", "", Crash(times=1, text=str(number)))
            try:
                await trio.sleep_forever()
            finally:
                cancelled = True

    with pytest.raises(EngineFault) as caught:
        await run_until_it_falls()
    assert cancelled
    assert isinstance(caught.value.__cause__, ValueError)


async def test_crashes_that_are_far_apart_are_borne_for_ever(autojump_clock: Clock) -> None:
    async with open_system(tree(player(Stage()), intensity=Intensity(1, 10))) as system:
        for number in range(20):
            await system.ask("player", "", Crash(times=1, text=str(number)))
            await trio.sleep(11)
        assert system.statistics().kind("player").restarts == 20


@pytest.mark.parametrize(
    ("strategy", "down", "up"),
    [
        (Strategy.ONE_FOR_ONE, [], ["b"]),
        (Strategy.REST_FOR_ONE, ["c"], ["b", "c"]),
        (Strategy.ONE_FOR_ALL, ["c", "a"], ["a", "b", "c"]),
    ],
)
async def test_the_strategy_restarts_the_right_siblings_in_order(
    strategy: Strategy, down: list[str], up: list[str], autojump_clock: Clock
) -> None:
    stage = Stage()
    async with open_system(tree(*(player(stage, kind) for kind in ABC), strategy=strategy)) as system:
        assert stage.notes == [f"start {kind}/" for kind in ABC]
        stage.notes.clear()
        for kind in ABC:
            system.tell(kind, "", Wait(1, f"busy {kind}"))
        await trio.testing.wait_all_tasks_blocked()
        system.tell("b", "", Crash(times=1))
        for kind in ABC:
            system.tell(kind, "", Note(f"mail {kind}"))
        await trio.sleep(30)
        assert lines(stage, "stop") == [f"stop {kind}/" for kind in down]
        assert lines(stage, "start") == [f"start {kind}/" for kind in up]
        assert sorted(lines(stage, "mail")) == [f"mail {kind}" for kind in ABC]


async def test_a_sibling_that_goes_down_with_others_finishes_its_message_first(autojump_clock: Clock) -> None:
    stage = Stage()
    spec = tree(player(stage, "a"), player(stage, "b", shutdown_s=50), strategy=Strategy.ONE_FOR_ALL)
    async with open_system(spec) as system:
        stage.notes.clear()
        system.tell("b", "", Wait(20, "finished"))
        await trio.testing.wait_all_tasks_blocked()
        system.tell("a", "", Crash(times=1))
        await trio.sleep(60)
    assert stage.notes[:5] == ["finished", "stop b/", "start a/", "start b/", "crash"] or stage.notes[:5] == [
        "finished",
        "stop b/",
        "start a/",
        "crash",
        "start b/",
    ]


async def test_a_sibling_that_does_not_finish_in_time_is_killed_and_gets_the_message_again(
    autojump_clock: Clock,
) -> None:
    stage = Stage()
    spec = tree(player(stage, "a"), player(stage, "b", shutdown_s=2), strategy=Strategy.ONE_FOR_ALL)
    async with open_system(spec) as system:
        system.tell("b", "", Wait(4, "finished"))
        await trio.testing.wait_all_tasks_blocked()
        system.tell("a", "", Crash(times=1))
        await trio.sleep(60)
    assert stage.notes.count("finished") == 1
    assert "stop b/" not in stage.notes[: stage.notes.index("finished")]


async def test_a_transient_actor_may_stop_and_stays_away(autojump_clock: Clock) -> None:
    async def leave(me: Player) -> None:
        me.context.stop()

    stage = Stage()
    async with open_system(tree(player(stage, restart=Restart.TRANSIENT))) as system:
        await system.ask("player", "", Crash(times=1))
        await system.ask("player", "", Do(leave))
        await trio.sleep(30)
        assert stage.notes[-1] == "stop player/"
        with pytest.raises(ActorStopped):
            await system.ask("player", "", Note("nobody"))
        system.tell("player", "", Note("nobody"))
        assert system.dead_letters.count(Reason.STOPPED) >= 1


async def test_a_permanent_actor_that_stops_is_started_again_with_its_mail(autojump_clock: Clock) -> None:
    async def leave(me: Player) -> None:
        me.context.stop()
        me.context.tell("player", "", Note("mail"))

    stage = Stage()
    async with open_system(tree(player(stage))) as system:
        await system.ask("player", "", Do(leave))
        await trio.sleep(30)
        assert stage.notes == ["start player/", "stop player/", "start player/", "mail"]


async def test_a_temporary_actor_is_never_started_again(autojump_clock: Clock) -> None:
    stage = Stage()
    async with open_system(tree(player(stage, restart=Restart.TEMPORARY), player(stage, "other"))) as system:
        with pytest.raises(ActorStopped):
            await system.ask("player", "", Crash(times=1))
        await trio.sleep(30)
        assert stage.starts == 2
        with pytest.raises(ActorStopped):
            await system.ask("player", "", Note("nobody"))
        assert await system.ask("other", "", Note("alive")) == 1


async def test_a_temporary_sibling_that_goes_down_with_others_stays_down(autojump_clock: Clock) -> None:
    stage = Stage()
    spec = tree(
        player(stage, "a"), player(stage, "b", restart=Restart.TEMPORARY), strategy=Strategy.ONE_FOR_ALL
    )
    async with open_system(spec) as system:
        system.tell("a", "", Crash(times=1))
        await trio.sleep(30)
        assert lines(stage, "start") == ["start a/", "start b/", "start a/"]
        with pytest.raises(ActorStopped):
            await system.ask("b", "", Note("nobody"))


async def test_a_supervisor_that_gives_up_is_restarted_by_the_one_above_with_its_childrens_mail(
    autojump_clock: Clock,
) -> None:
    stage = Stage()
    inner = SupervisorSpec(
        "inner",
        Strategy.ONE_FOR_ALL,
        (player(stage, "a"), player(stage, "b")),
        intensity=Intensity(1, 60),
        backoff=QUICK,
    )
    async with open_system(tree(player(stage, "outer"), inner)) as system:
        system.tell("a", "", Crash(times=1, text="one"))
        system.tell("a", "", Crash(times=1, text="two"))
        system.tell("a", "", Note("mail"))
        await trio.sleep(60)
        assert stage.notes[-4:] != []
        assert "mail" in stage.notes
        assert lines(stage, "start").count("start outer/") == 1
        node = system.tree()
        assert {child.name: child.restarts for child in node.children} == {"outer": 0, "inner": 1}
        assert system.statistics().kind("a").escalations == 1


async def test_one_for_one_siblings_wait_out_their_back_offs_independently(autojump_clock: Clock) -> None:
    stage = Stage()
    spec = tree(player(stage, "a"), player(stage, "b"), backoff=Backoff(10, 4, 100, 0))
    async with open_system(spec) as system:
        start = trio.current_time()
        system.tell("a", "", Crash(times=1, text="a crashes"))
        await trio.sleep(1)
        system.tell("b", "", Crash(times=1, text="b crashes"))
        await trio.sleep(9.5)
        assert "a crashes" in stage.notes
        assert "b crashes" not in stage.notes
        await system.ask("b", "", Note("b is back"), timeout=100)
        assert trio.current_time() - start == 11


async def test_a_crash_at_the_start_counts_and_is_tried_again(autojump_clock: Clock) -> None:
    stage = Stage(fail_starts=[ValueError("one"), ValueError("two")])
    async with open_system(tree(player(stage, "a"), player(stage, "b"))) as system:
        assert stage.notes == ["start a/", "start b/"]
        assert stage.starts == 4
        assert system.statistics().kind("a").crashes == 2


async def test_a_start_that_fails_for_ever_fails_the_opening_and_stops_what_was_started(
    autojump_clock: Clock,
) -> None:
    first, stage = Stage(), Stage(fail_starts=[ValueError(str(number)) for number in range(100)])
    with pytest.raises(EngineFault):
        async with open_system(tree(player(first, "a"), player(stage, "b"))):
            pytest.fail("it opened")
    assert first.notes == ["start a/", "stop a/"]


async def test_a_factory_that_fails_is_a_crash_of_the_start(autojump_clock: Clock) -> None:
    calls: list[int] = []

    def start(context: Context) -> Actor:
        calls.append(1)
        if len(calls) < 3:
            raise ValueError("not yet")
        return Player(context, Stage())

    async with open_system(tree(FamilySpec("late", start, intensity=PATIENT))) as system:
        assert await system.ask("late", "a", Note("x")) == 1
        assert system.statistics().kind("late").crashes in {1, 2}


async def test_a_singleton_that_is_unavailable_at_the_start_does_not_hold_up_the_others(
    autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "sexton_engine")
    stage = Stage(fail_starts=[OutageError(str(number)) for number in range(5)])
    other = Stage()
    async with open_system(tree(player(stage, "a"), player(other, "b"))) as system:
        assert other.notes == ["start b/"]
        assert stage.starts == 1
        with pytest.raises(OutageError, match="1"):
            await system.ask("a", "", Note("tries at once"))
        await trio.sleep(100)
        assert await system.ask("a", "", Note("back")) == 1
        assert system.statistics().kind("a").crashes == 0
    assert [record.message for record in caplog.records if "available" in record.message] == [
        "a is unavailable: OutageError('0')",
        "a is available again",
    ]


async def test_a_family_member_that_is_unavailable_tells_all_who_ask_and_tries_with_the_next(
    autojump_clock: Clock,
) -> None:
    stage = Stage(fail_starts=[OutageError("away")])
    async with open_system(tree(players(stage))) as system:
        told: list[str] = []

        async def ask() -> None:
            with pytest.raises(OutageError):
                await system.ask("player", "a", Note("x"))
            told.append("told")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            nursery.start_soon(ask)
            system.tell("player", "a", Note("told"))
        assert told == ["told", "told"]
        assert system.dead_letters.count(Reason.UNAVAILABLE) == 1
        assert system.statistics().kind("player").live == 0
        assert await system.ask("player", "a", Note("now")) == 1


async def test_a_key_that_crashes_too_often_is_given_up_and_the_others_live_on(autojump_clock: Clock) -> None:
    stage = Stage()
    async with open_system(tree(players(stage, intensity=Intensity(1, 60)))) as system:
        assert await system.ask("player", "good", Note("x")) == 1
        async with trio.open_nursery() as nursery:

            async def ask() -> None:
                with pytest.raises(ActorCrashed, match="ended: crashed"):
                    await system.ask("player", "bad", Note("waits behind"))

            system.tell("player", "bad", Crash(times=9))
            nursery.start_soon(ask)
        assert system.dead_letters.count(Reason.CRASHED) == 1
        assert system.dead_letters.count(Reason.GIVEN_UP) == 1
        assert system.statistics().kind("player").escalations == 1
        assert await system.ask("player", "good", Note("y")) == 2
        assert await system.ask("player", "bad", Note("activated anew")) == 1


async def test_the_keys_of_a_permanent_family_come_back_after_a_stop(autojump_clock: Clock) -> None:
    stage = Stage()
    async with open_system(tree(players(stage, restart=Restart.PERMANENT))) as system:
        await system.ask("player", "a", Note("x"))
        assert await system.stop("player", "a")
        await trio.sleep(5)
        assert lines(stage, "start", "stop") == ["start player/a", "stop player/a", "start player/a"]


async def test_the_keys_of_a_temporary_family_are_not_restarted_but_activated_anew(
    autojump_clock: Clock,
) -> None:
    stage = Stage()
    async with open_system(tree(players(stage, restart=Restart.TEMPORARY))) as system:
        with pytest.raises(ActorCrashed):
            await system.ask("player", "a", Crash(times=1))
        assert stage.crashes["crash"] == 1
        assert await system.ask("player", "a", Note("x")) == 1


async def test_a_family_goes_down_with_its_siblings_and_keeps_the_mail_of_its_keys(
    autojump_clock: Clock,
) -> None:
    stage = Stage()
    spec = tree(player(stage, "chief"), players(stage), strategy=Strategy.ONE_FOR_ALL)
    async with open_system(spec) as system:
        await system.ask("player", "idle", Note("x"))
        system.tell("player", "busy", Wait(1, "busy"))
        await trio.testing.wait_all_tasks_blocked()
        system.tell("player", "busy", Note("mail"))
        system.tell("chief", "", Crash(times=1))
        await trio.sleep(1.5)
        system.tell("player", "new", Note("while it was down"))
        assert "while it was down" not in stage.notes
        await trio.sleep(20)
        assert {"mail", "while it was down", "crash"} <= set(stage.notes)
        assert lines(stage, "start").count("start player/busy") == 2
        assert lines(stage, "start").count("start player/idle") == 1
        assert system.dead_letters.total() == 0


async def test_a_child_task_that_crashes_is_the_actors_crash(autojump_clock: Clock) -> None:
    async def begin(me: Player) -> None:
        async def work() -> None:
            await trio.sleep(5)
            raise ValueError("work")

        me.context.start_task(work)

    stage = Stage()
    async with open_system(tree(player(stage))) as system:
        await system.ask("player", "", Do(begin))
        system.tell("player", "", Wait(20, "interrupted, then done again"))
        await trio.sleep(60)
        statistics = system.statistics().kind("player")
        assert statistics.crashes == statistics.restarts == 1
        assert stage.notes == ["start player/", "start player/", "interrupted, then done again"]


async def test_a_child_task_of_an_idle_actor_crashes_it_too(autojump_clock: Clock) -> None:
    async def begin(me: Player) -> None:
        async def work() -> None:
            raise ValueError("work")

        me.context.start_task(work)

    stage = Stage()
    async with open_system(tree(players(stage))) as system:
        await system.ask("player", "a", Do(begin))
        await trio.sleep(10)
        assert lines(stage, "start") == ["start player/a", "start player/a"]


async def test_a_transparent_exception_from_a_child_task_is_no_crash(autojump_clock: Clock) -> None:
    async def begin(me: Player) -> None:
        async def work() -> None:
            await trio.sleep(1)
            raise OutageError("away")

        me.context.start_task(work)

    stage = Stage()
    async with open_system(tree(player(stage), intensity=Intensity(0, 1))) as system:
        await system.ask("player", "", Do(begin))
        await trio.sleep(10)
        assert lines(stage, "start") == ["start player/", "start player/"]
        assert system.statistics().kind("player").crashes == 0


async def test_a_child_task_ends_with_its_actor_and_can_be_cancelled(autojump_clock: Clock) -> None:
    ended: list[str] = []

    async def begin(me: Player) -> Any:
        async def work(name: str) -> None:
            try:
                await trio.sleep_forever()
            finally:
                ended.append(name)

        me.context.start_task(work, "by the actor's end")
        me.context.start_task(work, "by hand").cancel()

    async with open_system(tree(players(Stage()))) as system:
        await system.ask("player", "a", Do(begin))
        await trio.testing.wait_all_tasks_blocked()
        assert ended == ["by hand"]
        await system.stop("player", "a")
        await trio.testing.wait_all_tasks_blocked()
        assert ended == ["by hand", "by the actor's end"]


async def test_a_crash_while_a_stop_is_wanted_is_a_stop(autojump_clock: Clock) -> None:
    async def crash_at_the_end(me: Player) -> None:
        await trio.sleep(1)
        raise ValueError("x")

    stage = Stage()
    async with open_system(tree(players(stage))) as system:
        system.tell("player", "a", Do(crash_at_the_end))
        await trio.testing.wait_all_tasks_blocked()
        assert await system.stop("player", "a")
        await trio.sleep(20)
        assert stage.starts == 1
        assert system.statistics().kind("player").live == 0


async def test_exceptions_that_are_not_transparent_crash_whatever_they_are(autojump_clock: Clock) -> None:
    async with open_system(tree(players(Stage()))) as system:
        with pytest.raises(ActorCrashed):
            await system.ask("player", "a", Raise(ExceptionGroup("several", [ValueError(), OutageError()])))


async def test_an_instance_that_cannot_be_killed_is_waited_for_before_the_next_one_starts(
    autojump_clock: Clock,
) -> None:
    async def shielded(me: Player) -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(20)
        me.stage.notes.append("let go")

    stage = Stage()
    spec = tree(player(stage, "a"), player(stage, "b", shutdown_s=2), strategy=Strategy.ONE_FOR_ALL)
    async with open_system(spec) as system:
        system.tell("b", "", Do(shielded))
        await trio.testing.wait_all_tasks_blocked()
        system.tell("b", "", Note("mail"))
        system.tell("a", "", Crash(times=1))
        await trio.sleep(60)
        assert stage.notes == ["start a/", "start b/", "start a/", "crash", "let go", "start b/", "mail"]


async def test_siblings_that_crash_at_the_same_moment_are_one_restart_of_the_group(
    autojump_clock: Clock,
) -> None:
    stage = Stage()
    spec = tree(
        player(stage, "a"), player(stage, "b"), strategy=Strategy.ONE_FOR_ALL, intensity=Intensity(1, 1000)
    )
    async with open_system(spec) as system:
        for kind in ("a", "b"):
            system.tell(kind, "", Crash(times=1, text=f"crash {kind}"))
        await trio.sleep(60)
        assert lines(stage, "start") == ["start a/", "start b/"] * 2
        assert sorted(lines(stage, "crash")) == ["crash a", "crash b"]


async def test_a_task_of_a_dead_instance_cannot_crash_the_new_one(autojump_clock: Clock) -> None:
    async def begin(me: Player) -> None:
        async def work() -> None:
            try:
                await trio.sleep_forever()
            finally:
                raise ValueError("dying")

        me.context.start_task(work)

    async with open_system(tree(player(Stage()))) as system:
        await system.ask("player", "", Do(begin))
        await system.ask("player", "", Crash(times=1))
        await trio.sleep(60)
        assert system.statistics().kind("player").crashes == 1
