"""Activation, passivation, watches, and what is to be seen of it all."""

from __future__ import annotations

import gc
import json
import tracemalloc
from typing import Any

import pytest
import trio
import trio.testing
from prometheus_client import CollectorRegistry, generate_latest

from sexton_engine import (
    Actor,
    Context,
    Ending,
    FamilySpec,
    Intensity,
    Lane,
    Reason,
    Restart,
    Strategy,
    SupervisorSpec,
    Terminated,
    open_system,
)
from sexton_engine.loop_lag import LAG_PROBE_S, LagProbe
from tests.worlds.engine import (
    Clock,
    Crash,
    Defer,
    Do,
    EngineWorld,
    Note,
    PlainActor,
    ScriptedActor,
    Wait,
    scripted,
    scripted_family,
    tree,
)


async def test_an_idle_actor_is_put_to_sleep_and_wakes_with_the_next_message(autojump_clock: Clock) -> None:
    world = EngineWorld()
    async with open_system(tree(scripted_family(world, idle_s=60))) as system:
        assert await system.ask("scripted", "a", Note("x")) == 1

        await trio.sleep(59)
        assert system.statistics().kind("scripted").live == 1

        await trio.sleep(2)
        statistics = system.statistics().kind("scripted")
        assert (statistics.live, statistics.passivations) == (0, 1)
        assert await system.ask("scripted", "a", Note("y")) == 1
        assert world.notes == ["start scripted/a", "x", "stop scripted/a", "start scripted/a", "y"]


async def test_a_busy_actor_stays_awake(autojump_clock: Clock) -> None:
    world = EngineWorld()
    async with open_system(tree(scripted_family(world, idle_s=10))) as system:
        for _ in range(30):
            await system.ask("scripted", "a", Note("x"))
            await trio.sleep(9)
        await system.ask("scripted", "a", Wait(100), timeout=200)

        assert system.statistics().kind("scripted").passivations == 0
        assert world.starts == 1


async def test_an_actor_may_refuse_to_sleep(autojump_clock: Clock) -> None:
    class Sleepless(ScriptedActor):
        def passivatable(self) -> bool:
            self.world.notes.append("asked")
            return len(self.world.notes) > 4

    world = EngineWorld()
    async with open_system(
        tree(FamilySpec("s", lambda context: Sleepless(context, world), idle_s=10))
    ) as system:
        await system.ask("s", "a", Note("x"))
        await trio.sleep(25)
        assert system.statistics().kind("s").live == 1

        await trio.sleep(30)
        assert world.notes == ["start s/a", "x", "asked", "asked", "asked", "stop s/a"]


async def test_a_failing_passivatable_is_a_crash(autojump_clock: Clock) -> None:
    class Odd(ScriptedActor):
        def passivatable(self) -> bool:
            if self.world.starts == 1:
                raise ValueError("odd")
            return True

    world = EngineWorld()
    async with open_system(tree(FamilySpec("odd", lambda context: Odd(context, world), idle_s=10))) as system:
        await system.ask("odd", "a", Note("x"))
        await trio.sleep(60)
        statistics = system.statistics().kind("odd")

        assert (statistics.crashes, statistics.restarts, statistics.passivations) == (1, 1, 1)


async def test_whoever_waits_for_something_is_not_idle(autojump_clock: Clock) -> None:
    async def with_timer(me: ScriptedActor) -> None:
        me.context.set_timer("t", 100, Note("timer"))

    async def with_task(me: ScriptedActor) -> None:
        me.context.start_task(trio.sleep, 100)

    async def with_watch(me: ScriptedActor) -> None:
        me.context.watch("other", "")

    world = EngineWorld()
    async with open_system(
        tree(scripted_family(world, idle_s=10), scripted(EngineWorld(), "other", restart=Restart.TRANSIENT))
    ) as system:
        await system.ask("scripted", "timer", Do(with_timer))
        await system.ask("scripted", "task", Do(with_task))
        await system.ask("scripted", "watch", Do(with_watch))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: system.ask("scripted", "reply", Defer(), timeout=1000))
            await trio.sleep(90)
            assert system.statistics().kind("scripted").live == 4

            world.ports[0].set("done")
            system.kill("other", "")
            await trio.sleep(90)
            assert system.statistics().kind("scripted").live == 0


async def test_a_message_that_comes_while_an_actor_goes_to_sleep_is_not_lost(autojump_clock: Clock) -> None:
    class Slow(ScriptedActor):
        async def on_stop(self) -> None:  # type: ignore[override]  # pykka annotates its hooks for threads
            await trio.sleep(5)
            self.world.notes.append("slept")

    world = EngineWorld()
    async with open_system(
        tree(FamilySpec("slow", lambda context: Slow(context, world), idle_s=10))
    ) as system:
        await system.ask("slow", "a", Note("x"))
        await trio.sleep(12)

        assert await system.ask("slow", "a", Note("y")) == 1
        assert world.notes == ["start slow/a", "x", "slept", "start slow/a", "y"]


async def test_an_idle_activation_is_small_and_one_asleep_is_nothing(
    autojump_clock: Clock,
) -> None:
    class Idle(Actor):
        kind = "idle"

        def on_receive(self, message: Any) -> Any:
            return message

    count = 10_000
    async with open_system(tree(FamilySpec("idle", Idle, idle_s=10))) as system:
        tracemalloc.start()
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for key in range(count):
            system.tell("idle", key, Note("x"))
        await trio.testing.wait_all_tasks_blocked()
        gc.collect()
        awake = tracemalloc.get_traced_memory()[0]
        assert system.statistics().kind("idle").live == count

        await trio.sleep(60)
        gc.collect()
        asleep = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert system.statistics().kind("idle").live == 0

    assert (awake - before) / count < 1536
    # A few workers that wait for work, and nothing that grows with the number of actors.
    assert (asleep - before) / count < 5


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        ("stop", Ending.STOPPED),
        ("kill", Ending.KILLED),
        ("crash", Ending.CRASHED),
        ("sleep", Ending.PASSIVATED),
    ],
)
async def test_a_watcher_is_told_once_how_it_ended(end: str, reason: Ending, autojump_clock: Clock) -> None:
    async def watch(me: ScriptedActor) -> None:
        me.context.watch("scripted", "a")
        me.context.watch("scripted", "a")

    world, watcher = EngineWorld(), EngineWorld()
    family = scripted_family(world, idle_s=10, intensity=Intensity(0, 60))
    async with open_system(tree(scripted(watcher, "watcher"), family)) as system:
        await system.ask("scripted", "a", Note("x"))
        await system.ask("watcher", "", Do(watch))
        match end:
            case "stop":
                await system.stop("scripted", "a")
            case "kill":
                system.kill("scripted", "a")
            case "crash":
                system.tell("scripted", "a", Crash(times=1))
            case _:
                await trio.sleep(20)
        await trio.sleep(1)
        assert watcher.notes[1:] == [repr(Terminated("scripted", "a", reason))]

        # The watch was for that activation; the next one is another.
        await system.ask("scripted", "a", Note("again"))
        await system.stop("scripted", "a")
        await trio.sleep(1)
        assert len(watcher.notes) == 2


async def test_a_restart_is_no_end(autojump_clock: Clock) -> None:
    async def watch(me: ScriptedActor) -> None:
        me.context.watch("scripted", "a")

    watcher = EngineWorld()
    async with open_system(tree(scripted(watcher, "watcher"), scripted_family(EngineWorld()))) as system:
        await system.ask("scripted", "a", Note("x"))
        await system.ask("watcher", "", Do(watch))
        await system.ask("scripted", "a", Crash(times=1))
        await trio.sleep(1)
        assert watcher.notes == ["start watcher/"]

        await system.stop("scripted", "a")
        await trio.sleep(1)
        assert len(watcher.notes) == 2


async def test_a_watch_outlives_a_restart_of_its_watcher(autojump_clock: Clock) -> None:
    async def watch(me: ScriptedActor) -> None:
        me.context.watch("scripted", "a")

    watcher = EngineWorld()
    async with open_system(tree(scripted(watcher, "watcher"), scripted_family(EngineWorld()))) as system:
        await system.ask("scripted", "a", Note("x"))
        await system.ask("watcher", "", Do(watch))
        await system.ask("watcher", "", Crash(times=1))
        await system.stop("scripted", "a")
        await trio.sleep(1)

        assert watcher.notes[-1] == repr(Terminated("scripted", "a", Ending.STOPPED))


async def test_watching_nobody_is_answered_at_once(autojump_clock: Clock) -> None:
    async def watch(me: ScriptedActor) -> None:
        me.context.watch("scripted", "a")

    watcher = EngineWorld()
    async with open_system(tree(scripted(watcher, "watcher"), scripted_family(EngineWorld()))) as system:
        await system.ask("watcher", "", Do(watch))
        await trio.sleep(1)

        assert watcher.notes[1:] == [repr(Terminated("scripted", "a", Ending.NOT_ACTIVE))]


async def test_a_watch_can_be_taken_back_and_ends_with_its_watcher(autojump_clock: Clock) -> None:
    async def watch_and_not(me: ScriptedActor) -> None:
        me.context.watch("scripted", "a")
        me.context.unwatch("scripted", "a")

    async def watch(me: ScriptedActor) -> None:
        me.context.watch("scripted", "a")

    watcher = EngineWorld()
    async with open_system(
        tree(scripted_family(watcher, "watcher"), scripted_family(EngineWorld()))
    ) as system:
        await system.ask("scripted", "a", Note("x"))
        await system.ask("watcher", "1", Do(watch_and_not))
        await system.ask("watcher", "2", Do(watch))
        await system.stop("watcher", "2")
        await system.stop("scripted", "a")
        await trio.sleep(1)

        assert not any("Terminated" in note for note in watcher.notes)
        assert system.dead_letters.total() == 0


async def test_terminated_overtakes_the_users_messages(autojump_clock: Clock) -> None:
    async def watch(me: ScriptedActor) -> None:
        me.context.watch("scripted", "a")
        await trio.sleep(5)

    watcher = EngineWorld()
    async with open_system(tree(scripted(watcher, "watcher"), scripted_family(EngineWorld()))) as system:
        await system.ask("scripted", "a", Note("x"))
        system.tell("watcher", "", Do(watch))
        await trio.sleep(1)
        system.tell("watcher", "", Note("user"))
        system.tell("watcher", "", Note("control"), lane=Lane.CONTROL)
        system.kill("scripted", "a")
        await trio.sleep(10)

        assert watcher.notes[1:] == ["control", repr(Terminated("scripted", "a", Ending.KILLED)), "user"]


async def test_statistics_tell_what_happened_by_kind(autojump_clock: Clock) -> None:
    world = EngineWorld()
    async with open_system(tree(scripted_family(world), scripted(world, "one"))) as system:
        await system.ask("scripted", "a", Wait(2))
        await system.ask("scripted", "b", Note("x"))
        await system.ask("scripted", "b", Crash(times=1))
        system.tell("one", "", Wait(10))
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(3):
            system.tell("one", "", Note("waits"))
        await trio.sleep(4)
        statistics = system.statistics()
        family, one = statistics.kind("scripted"), statistics.kind("one")
        assert (family.live, family.activations, family.crashes, family.restarts) == (2, 3, 1, 1)
        assert {line.message: (line.count, line.seconds) for line in family.messages} == {
            "Wait": (1, 2.0),
            "Note": (1, 0.0),
            "Crash": (1, 0.0),
        }
        assert (one.mailbox_depth, one.mailbox_age_s) == (3, 4)

        with pytest.raises(KeyError):
            statistics.kind("nobody")


async def test_the_tree_can_be_looked_at_and_written_as_json(autojump_clock: Clock) -> None:
    world = EngineWorld()
    inner = SupervisorSpec(
        "inner", Strategy.REST_FOR_ONE, (scripted_family(world),), restart=Restart.TRANSIENT
    )
    async with open_system(tree(scripted(world, "one"), inner)) as system:
        await system.ask("scripted", "a", Note("x"))
        await system.ask("one", "", Crash(times=1))
        system.tell("one", "", Wait(5))
        await trio.testing.wait_all_tasks_blocked()
        system.tell("one", "", Note("waits"))
        await trio.sleep(2)
        seen = json.loads(json.dumps(system.tree().as_dict()))
    assert seen["name"] == "root"
    assert seen["state"] == "up"

    one, below = seen["children"]
    assert (one["role"], one["restarts"], one["mailbox_depth"], one["mailbox_age_s"]) == ("actor", 1, 1, 2.0)
    assert (below["role"], below["strategy"], below["restart"]) == ("supervisor", "rest_for_one", "transient")
    assert (below["children"][0]["role"], below["children"][0]["live"]) == ("family", 1)


async def test_metrics_are_labelled_by_kind_and_never_by_key(autojump_clock: Clock) -> None:
    world = EngineWorld()
    async with open_system(tree(scripted_family(world))) as system:
        registry = CollectorRegistry()
        registry.register(system.collector())
        for key in ("secret-1", "secret-2"):
            await system.ask("scripted", key, Note("x"))
        system.tell("scripted", "secret-1", Crash(times=9))
        await trio.sleep(30)
        text = generate_latest(registry).decode()
    assert "secret" not in text

    for line in (
        'sexton_actor_live{kind="scripted"} 2.0',
        'sexton_actor_mailbox_depth{kind="scripted"} 0.0',
        'sexton_actor_mailbox_age_seconds{kind="scripted"} 0.0',
        'sexton_actor_messages_total{kind="scripted",message="Note"} 2.0',
        'sexton_actor_message_seconds_total{kind="scripted",message="Note"} 0.0',
        'sexton_actor_crashes_total{kind="scripted"} 2.0',
        'sexton_actor_restarts_total{kind="scripted"} 2.0',
        'sexton_actor_escalations_total{kind="scripted"} 0.0',
        'sexton_actor_passivations_total{kind="scripted"} 0.0',
        'sexton_actor_dead_letters_total{kind="scripted",reason="crashed"} 1.0',
        "sexton_event_loop_lag_seconds 0.0",
        "sexton_event_loop_lag_peak_seconds 0.0",
        'sexton_engine_workers{state="busy"} 0.0',
    ):
        assert line in text.splitlines()


def test_the_lag_is_how_late_a_probe_fires() -> None:
    probe = LagProbe(now=100.0)

    assert probe.fire(100.0 + LAG_PROBE_S + 0.25) == 102.25
    assert probe.latest_s == 0.25
    assert probe.fire(102.25) == 103.25
    assert (probe.latest_s, probe.peak_s) == (0.0, 0.25)


async def test_a_loop_that_is_held_up_shows_in_the_lag(autojump_clock: Clock) -> None:
    skew = 0.0

    def monotonic() -> float:
        return trio.current_time() + skew

    async with open_system(tree(scripted_family(EngineWorld())), monotonic=monotonic) as system:
        await trio.sleep(3.5)
        assert system.statistics().loop_lag_peak_s == pytest.approx(0.0)

        skew = 5.0
        await trio.sleep(1)
        assert system.statistics().loop_lag_peak_s == pytest.approx(5.0, abs=LAG_PROBE_S)


async def test_dead_letters_are_all_counted_but_only_the_latest_are_kept(autojump_clock: Clock) -> None:
    async with open_system(tree(scripted(EngineWorld()))) as system:
        for number in range(300):
            system.tell("scripted", "no such key", Note(str(number)))
        letters = system.dead_letters

        assert letters.count(Reason.STOPPED, "scripted") == letters.total() == 300
        assert [letter.message for letter in letters.latest()] == [
            Note(str(number)) for number in range(44, 300)
        ]
        assert repr(letters) == "<DeadLetters 300, 256 kept>"


async def test_a_plain_actor_says_where_it_lives(autojump_clock: Clock) -> None:
    seen: list[Context] = []

    class Curious(PlainActor):
        def on_receive(self, message: Any) -> Any:
            seen.append(self.context)
            assert self.context.system is system
            return (self.context.kind, self.context.key, str(self))

    async with open_system(
        tree(FamilySpec("curious", lambda context: Curious(context, EngineWorld())))
    ) as system:
        answer: object = await system.ask("curious", ("a", 1), Note("x"))

        assert answer == ("curious", ("a", 1), "curious/('a', 1)")
        assert "awake" in repr(seen[0])
