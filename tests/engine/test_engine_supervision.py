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
from tests.worlds.engine import (
    PATIENT,
    QUICK,
    Clock,
    Crash,
    Do,
    EngineWorld,
    Note,
    OutageError,
    Raise,
    ScriptedActor,
    Wait,
    scripted,
    scripted_family,
    tree,
)

ABC = ("a", "b", "c")


def lines(world: EngineWorld, *words: str) -> list[str]:
    return [note for note in world.notes if note.split()[0] in words]


async def test_the_message_that_crashed_the_actor_is_delivered_once_more(autojump_clock: Clock) -> None:
    world = EngineWorld()
    async with open_system(tree(scripted(world))) as system:
        before = trio.current_time()
        await system.ask("scripted", "", Crash(times=1))

        assert trio.current_time() - before == QUICK.first_s
        assert world.notes == ["start scripted/", "start scripted/", "crash"]
        assert system.dead_letters.total() == 0


async def test_a_message_that_crashes_twice_dies_and_its_asker_is_told(autojump_clock: Clock) -> None:
    world = EngineWorld()
    async with open_system(tree(scripted(world))) as system:
        with pytest.raises(ActorCrashed) as caught:
            await system.ask("scripted", "", Crash(times=9))

        assert isinstance(caught.value.__cause__, ValueError)
        assert world.crashes["crash"] == 2
        assert await system.ask("scripted", "", Note("alive")) == 1
        assert system.dead_letters.count(Reason.CRASHED) == 1
        assert system.dead_letters.latest()[0].message == Crash(times=9)


async def test_a_restart_is_a_new_instance_with_the_old_mailbox(autojump_clock: Clock) -> None:
    world = EngineWorld()
    async with open_system(tree(scripted(world))) as system:
        assert await system.ask("scripted", "", Note("before")) == 1

        system.tell("scripted", "", Crash(times=1))
        for number in range(3):
            system.tell("scripted", "", Note(str(number)))
        assert await system.ask("scripted", "", Note("after")) == 4
        assert world.notes == [
            "start scripted/",
            "before",
            "start scripted/",
            "crash",
            "0",
            "1",
            "2",
            "after",
        ]


async def test_the_back_off_grows_and_strays(autojump_clock: Clock) -> None:
    world = EngineWorld()
    waits = []
    backoff = Backoff(first_s=1, factor=2, max_s=5, jitter=0.5)
    async with open_system(tree(scripted(world), backoff=backoff), rng=Random(1)) as system:
        for number in range(4):
            before = trio.current_time()
            await system.ask("scripted", "", Crash(times=1, text=str(number)))
            waits.append(trio.current_time() - before)
    expected = Random(1)

    assert waits == pytest.approx([plain * (0.5 + expected.random()) for plain in (1, 2, 4, 5)])


async def test_one_crash_too_many_ends_the_system_with_the_crash_as_the_cause(autojump_clock: Clock) -> None:
    world = EngineWorld()
    cancelled = False
    spec = tree(scripted(world), intensity=Intensity(2, 60))

    async def run_until_it_falls() -> None:
        nonlocal cancelled
        async with open_system(spec) as system:
            for number in range(3):
                system.tell("scripted", "", Crash(times=1, text=str(number)))
            try:
                await trio.sleep_forever()
            finally:
                cancelled = True

    with pytest.raises(EngineFault) as caught:
        await run_until_it_falls()

    assert cancelled
    assert isinstance(caught.value.__cause__, ValueError)


async def test_crashes_that_are_far_apart_are_borne_for_ever(autojump_clock: Clock) -> None:
    async with open_system(tree(scripted(EngineWorld()), intensity=Intensity(1, 10))) as system:
        for number in range(20):
            await system.ask("scripted", "", Crash(times=1, text=str(number)))
            await trio.sleep(11)
        assert system.statistics().kind("scripted").restarts == 20


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
    world = EngineWorld()
    async with open_system(tree(*(scripted(world, kind) for kind in ABC), strategy=strategy)) as system:
        assert world.notes == [f"start {kind}/" for kind in ABC]

        world.notes.clear()
        for kind in ABC:
            system.tell(kind, "", Wait(1, f"busy {kind}"))
        await trio.testing.wait_all_tasks_blocked()
        system.tell("b", "", Crash(times=1))
        for kind in ABC:
            system.tell(kind, "", Note(f"mail {kind}"))
        await trio.sleep(30)
        assert lines(world, "stop") == [f"stop {kind}/" for kind in down]
        assert lines(world, "start") == [f"start {kind}/" for kind in up]
        assert sorted(lines(world, "mail")) == [f"mail {kind}" for kind in ABC]


async def test_a_sibling_that_goes_down_with_others_finishes_its_message_first(autojump_clock: Clock) -> None:
    world = EngineWorld()
    spec = tree(scripted(world, "a"), scripted(world, "b", shutdown_s=50), strategy=Strategy.ONE_FOR_ALL)
    async with open_system(spec) as system:
        world.notes.clear()
        system.tell("b", "", Wait(20, "finished"))
        await trio.testing.wait_all_tasks_blocked()
        system.tell("a", "", Crash(times=1))
        await trio.sleep(60)

    assert world.notes[:5] == ["finished", "stop b/", "start a/", "start b/", "crash"] or world.notes[:5] == [
        "finished",
        "stop b/",
        "start a/",
        "crash",
        "start b/",
    ]


async def test_a_sibling_that_does_not_finish_in_time_is_killed_and_gets_the_message_again(
    autojump_clock: Clock,
) -> None:
    world = EngineWorld()
    spec = tree(scripted(world, "a"), scripted(world, "b", shutdown_s=2), strategy=Strategy.ONE_FOR_ALL)
    async with open_system(spec) as system:
        system.tell("b", "", Wait(4, "finished"))
        await trio.testing.wait_all_tasks_blocked()
        system.tell("a", "", Crash(times=1))
        await trio.sleep(60)

    assert world.notes.count("finished") == 1
    assert "stop b/" not in world.notes[: world.notes.index("finished")]


async def test_a_transient_actor_may_stop_and_stays_away(autojump_clock: Clock) -> None:
    async def leave(me: ScriptedActor) -> None:
        me.context.stop()

    world = EngineWorld()
    async with open_system(tree(scripted(world, restart=Restart.TRANSIENT))) as system:
        await system.ask("scripted", "", Crash(times=1))
        await system.ask("scripted", "", Do(leave))
        await trio.sleep(30)
        assert world.notes[-1] == "stop scripted/"

        with pytest.raises(ActorStopped):
            await system.ask("scripted", "", Note("nobody"))
        system.tell("scripted", "", Note("nobody"))
        assert system.dead_letters.count(Reason.STOPPED) >= 1


async def test_a_permanent_actor_that_stops_is_started_again_with_its_mail(autojump_clock: Clock) -> None:
    async def leave(me: ScriptedActor) -> None:
        me.context.stop()
        me.context.tell("scripted", "", Note("mail"))

    world = EngineWorld()
    async with open_system(tree(scripted(world))) as system:
        await system.ask("scripted", "", Do(leave))
        await trio.sleep(30)

        assert world.notes == ["start scripted/", "stop scripted/", "start scripted/", "mail"]


async def test_a_temporary_actor_is_never_started_again(autojump_clock: Clock) -> None:
    world = EngineWorld()
    async with open_system(
        tree(scripted(world, restart=Restart.TEMPORARY), scripted(world, "other"))
    ) as system:
        with pytest.raises(ActorStopped):
            await system.ask("scripted", "", Crash(times=1))
        await trio.sleep(30)
        assert world.starts == 2

        with pytest.raises(ActorStopped):
            await system.ask("scripted", "", Note("nobody"))
        assert await system.ask("other", "", Note("alive")) == 1


async def test_a_temporary_sibling_that_goes_down_with_others_stays_down(autojump_clock: Clock) -> None:
    world = EngineWorld()
    spec = tree(
        scripted(world, "a"), scripted(world, "b", restart=Restart.TEMPORARY), strategy=Strategy.ONE_FOR_ALL
    )
    async with open_system(spec) as system:
        system.tell("a", "", Crash(times=1))
        await trio.sleep(30)
        assert lines(world, "start") == ["start a/", "start b/", "start a/"]

        with pytest.raises(ActorStopped):
            await system.ask("b", "", Note("nobody"))


async def test_a_supervisor_that_gives_up_is_restarted_by_the_one_above_with_its_childrens_mail(
    autojump_clock: Clock,
) -> None:
    world = EngineWorld()
    inner = SupervisorSpec(
        "inner",
        Strategy.ONE_FOR_ALL,
        (scripted(world, "a"), scripted(world, "b")),
        intensity=Intensity(1, 60),
        backoff=QUICK,
    )
    async with open_system(tree(scripted(world, "outer"), inner)) as system:
        system.tell("a", "", Crash(times=1, text="one"))
        system.tell("a", "", Crash(times=1, text="two"))
        system.tell("a", "", Note("mail"))
        await trio.sleep(60)
        assert world.notes[-4:] != []
        assert "mail" in world.notes
        assert lines(world, "start").count("start outer/") == 1

        node = system.tree()
        assert {child.name: child.restarts for child in node.children} == {"outer": 0, "inner": 1}
        assert system.statistics().kind("a").escalations == 1


async def test_one_for_one_siblings_wait_out_their_back_offs_independently(autojump_clock: Clock) -> None:
    world = EngineWorld()
    spec = tree(scripted(world, "a"), scripted(world, "b"), backoff=Backoff(10, 4, 100, 0))
    async with open_system(spec) as system:
        start = trio.current_time()
        system.tell("a", "", Crash(times=1, text="a crashes"))
        await trio.sleep(1)
        system.tell("b", "", Crash(times=1, text="b crashes"))
        await trio.sleep(9.5)
        assert "a crashes" in world.notes
        assert "b crashes" not in world.notes

        await system.ask("b", "", Note("b is back"), timeout=100)
        assert trio.current_time() - start == 11


async def test_a_crash_at_the_start_counts_and_is_tried_again(autojump_clock: Clock) -> None:
    world = EngineWorld(fail_starts=[ValueError("one"), ValueError("two")])
    async with open_system(tree(scripted(world, "a"), scripted(world, "b"))) as system:
        assert world.notes == ["start a/", "start b/"]
        assert world.starts == 4
        assert system.statistics().kind("a").crashes == 2


async def test_a_start_that_fails_for_ever_fails_the_opening_and_stops_what_was_started(
    autojump_clock: Clock,
) -> None:
    first, world = EngineWorld(), EngineWorld(fail_starts=[ValueError(str(number)) for number in range(100)])
    with pytest.raises(EngineFault):
        async with open_system(tree(scripted(first, "a"), scripted(world, "b"))):
            pytest.fail("it opened")

    assert first.notes == ["start a/", "stop a/"]


async def test_a_factory_that_fails_is_a_crash_of_the_start(autojump_clock: Clock) -> None:
    calls: list[int] = []

    def start(context: Context) -> Actor:
        calls.append(1)
        if len(calls) < 3:
            raise ValueError("not yet")
        return ScriptedActor(context, EngineWorld())

    async with open_system(tree(FamilySpec("late", start, intensity=PATIENT))) as system:
        assert await system.ask("late", "a", Note("x")) == 1
        assert system.statistics().kind("late").crashes in {1, 2}


async def test_a_singleton_that_is_unavailable_at_the_start_does_not_hold_up_the_others(
    autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "sexton_engine")
    world = EngineWorld(fail_starts=[OutageError(str(number)) for number in range(5)])
    other = EngineWorld()
    async with open_system(tree(scripted(world, "a"), scripted(other, "b"))) as system:
        assert other.notes == ["start b/"]
        assert world.starts == 1

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
    world = EngineWorld(fail_starts=[OutageError("away")])
    async with open_system(tree(scripted_family(world))) as system:
        told: list[str] = []

        async def ask() -> None:
            with pytest.raises(OutageError):
                await system.ask("scripted", "a", Note("x"))
            told.append("told")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            nursery.start_soon(ask)
            system.tell("scripted", "a", Note("told"))

        assert told == ["told", "told"]
        assert system.dead_letters.count(Reason.UNAVAILABLE) == 1
        assert system.statistics().kind("scripted").live == 0
        assert await system.ask("scripted", "a", Note("now")) == 1


async def test_a_key_that_crashes_too_often_is_given_up_and_the_others_live_on(autojump_clock: Clock) -> None:
    world = EngineWorld()
    async with open_system(tree(scripted_family(world, intensity=Intensity(1, 60)))) as system:
        assert await system.ask("scripted", "good", Note("x")) == 1

        async with trio.open_nursery() as nursery:

            async def ask() -> None:
                with pytest.raises(ActorCrashed, match="ended: crashed"):
                    await system.ask("scripted", "bad", Note("waits behind"))

            system.tell("scripted", "bad", Crash(times=9))
            nursery.start_soon(ask)
        assert system.dead_letters.count(Reason.CRASHED) == 1
        assert system.dead_letters.count(Reason.GIVEN_UP) == 1
        assert system.statistics().kind("scripted").escalations == 1
        assert await system.ask("scripted", "good", Note("y")) == 2
        assert await system.ask("scripted", "bad", Note("activated again")) == 1


async def test_the_keys_of_a_permanent_family_come_back_after_a_stop(autojump_clock: Clock) -> None:
    world = EngineWorld()
    async with open_system(tree(scripted_family(world, restart=Restart.PERMANENT))) as system:
        await system.ask("scripted", "a", Note("x"))
        assert await system.stop("scripted", "a")

        await trio.sleep(5)
        assert lines(world, "start", "stop") == ["start scripted/a", "stop scripted/a", "start scripted/a"]


async def test_the_keys_of_a_temporary_family_are_not_restarted_but_activated_anew(
    autojump_clock: Clock,
) -> None:
    world = EngineWorld()
    async with open_system(tree(scripted_family(world, restart=Restart.TEMPORARY))) as system:
        with pytest.raises(ActorCrashed):
            await system.ask("scripted", "a", Crash(times=1))

        assert world.crashes["crash"] == 1
        assert await system.ask("scripted", "a", Note("x")) == 1


async def test_a_family_goes_down_with_its_siblings_and_keeps_the_mail_of_its_keys(
    autojump_clock: Clock,
) -> None:
    world = EngineWorld()
    spec = tree(scripted(world, "chief"), scripted_family(world), strategy=Strategy.ONE_FOR_ALL)
    async with open_system(spec) as system:
        await system.ask("scripted", "idle", Note("x"))
        system.tell("scripted", "busy", Wait(1, "busy"))
        await trio.testing.wait_all_tasks_blocked()
        system.tell("scripted", "busy", Note("mail"))
        system.tell("chief", "", Crash(times=1))
        await trio.sleep(1.5)
        system.tell("scripted", "new", Note("while it was down"))
        assert "while it was down" not in world.notes

        await trio.sleep(20)
        assert {"mail", "while it was down", "crash"} <= set(world.notes)
        assert lines(world, "start").count("start scripted/busy") == 2
        assert lines(world, "start").count("start scripted/idle") == 1
        assert system.dead_letters.total() == 0


async def test_a_child_task_that_crashes_is_the_actors_crash(autojump_clock: Clock) -> None:
    async def begin(me: ScriptedActor) -> None:
        async def work() -> None:
            await trio.sleep(5)
            raise ValueError("work")

        me.context.start_task(work)

    world = EngineWorld()
    async with open_system(tree(scripted(world))) as system:
        await system.ask("scripted", "", Do(begin))
        system.tell("scripted", "", Wait(20, "interrupted, then done again"))
        await trio.sleep(60)
        statistics = system.statistics().kind("scripted")

        assert statistics.crashes == statistics.restarts == 1
        assert world.notes == ["start scripted/", "start scripted/", "interrupted, then done again"]


async def test_a_child_task_of_an_idle_actor_crashes_it_too(autojump_clock: Clock) -> None:
    async def begin(me: ScriptedActor) -> None:
        async def work() -> None:
            raise ValueError("work")

        me.context.start_task(work)

    world = EngineWorld()
    async with open_system(tree(scripted_family(world))) as system:
        await system.ask("scripted", "a", Do(begin))
        await trio.sleep(10)

        assert lines(world, "start") == ["start scripted/a", "start scripted/a"]


async def test_a_transparent_exception_from_a_child_task_is_no_crash(autojump_clock: Clock) -> None:
    async def begin(me: ScriptedActor) -> None:
        async def work() -> None:
            await trio.sleep(1)
            raise OutageError("away")

        me.context.start_task(work)

    world = EngineWorld()
    async with open_system(tree(scripted(world), intensity=Intensity(0, 1))) as system:
        await system.ask("scripted", "", Do(begin))
        await trio.sleep(10)

        assert lines(world, "start") == ["start scripted/", "start scripted/"]
        assert system.statistics().kind("scripted").crashes == 0


async def test_a_child_task_ends_with_its_actor_and_can_be_cancelled(autojump_clock: Clock) -> None:
    ended: list[str] = []

    async def begin(me: ScriptedActor) -> Any:
        async def work(name: str) -> None:
            try:
                await trio.sleep_forever()
            finally:
                ended.append(name)

        me.context.start_task(work, "by the actor's end")
        me.context.start_task(work, "by hand").cancel()

    async with open_system(tree(scripted_family(EngineWorld()))) as system:
        await system.ask("scripted", "a", Do(begin))
        await trio.testing.wait_all_tasks_blocked()
        assert ended == ["by hand"]

        await system.stop("scripted", "a")
        await trio.testing.wait_all_tasks_blocked()
        assert ended == ["by hand", "by the actor's end"]


async def test_a_crash_while_a_stop_is_wanted_is_a_stop(autojump_clock: Clock) -> None:
    async def crash_at_the_end(me: ScriptedActor) -> None:
        await trio.sleep(1)
        raise ValueError("x")

    world = EngineWorld()
    async with open_system(tree(scripted_family(world))) as system:
        system.tell("scripted", "a", Do(crash_at_the_end))
        await trio.testing.wait_all_tasks_blocked()
        assert await system.stop("scripted", "a")

        await trio.sleep(20)
        assert world.starts == 1
        assert system.statistics().kind("scripted").live == 0


async def test_exceptions_that_are_not_transparent_crash_whatever_they_are(autojump_clock: Clock) -> None:
    async with open_system(tree(scripted_family(EngineWorld()))) as system:
        with pytest.raises(ActorCrashed):
            await system.ask("scripted", "a", Raise(ExceptionGroup("several", [ValueError(), OutageError()])))


async def test_an_instance_that_cannot_be_killed_is_waited_for_before_the_next_one_starts(
    autojump_clock: Clock,
) -> None:
    async def shielded(me: ScriptedActor) -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(20)
        me.world.notes.append("let go")

    world = EngineWorld()
    spec = tree(scripted(world, "a"), scripted(world, "b", shutdown_s=2), strategy=Strategy.ONE_FOR_ALL)
    async with open_system(spec) as system:
        system.tell("b", "", Do(shielded))
        await trio.testing.wait_all_tasks_blocked()
        system.tell("b", "", Note("mail"))
        system.tell("a", "", Crash(times=1))
        await trio.sleep(60)

        assert world.notes == ["start a/", "start b/", "start a/", "crash", "let go", "start b/", "mail"]


async def test_siblings_that_crash_at_the_same_moment_are_one_restart_of_the_group(
    autojump_clock: Clock,
) -> None:
    world = EngineWorld()
    spec = tree(
        scripted(world, "a"),
        scripted(world, "b"),
        strategy=Strategy.ONE_FOR_ALL,
        intensity=Intensity(1, 1000),
    )
    async with open_system(spec) as system:
        for kind in ("a", "b"):
            system.tell(kind, "", Crash(times=1, text=f"crash {kind}"))
        await trio.sleep(60)

        assert lines(world, "start") == ["start a/", "start b/"] * 2
        assert sorted(lines(world, "crash")) == ["crash a", "crash b"]


async def test_a_task_of_a_dead_instance_cannot_crash_the_new_one(autojump_clock: Clock) -> None:
    async def begin(me: ScriptedActor) -> None:
        async def work() -> None:
            try:
                await trio.sleep_forever()
            finally:
                raise ValueError("dying")

        me.context.start_task(work)

    async with open_system(tree(scripted(EngineWorld()))) as system:
        await system.ask("scripted", "", Do(begin))
        await system.ask("scripted", "", Crash(times=1))
        await trio.sleep(60)

        assert system.statistics().kind("scripted").crashes == 1
