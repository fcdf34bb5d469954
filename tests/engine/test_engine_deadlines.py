"""The heap of deadlines and the timers in it."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from sexton_engine import DEFERRED, open_system
from sexton_engine.mail.deadlines import COMPACT_FROM, NEVER, Deadlines
from sexton_engine.mail.timers import Timer, Timers
from tests.thorough import examples
from tests.worlds.engine import (
    Clock,
    Crash,
    Do,
    EngineWorld,
    Note,
    ScriptedActor,
    Wait,
    scripted,
    scripted_family,
    tree,
)


class Alarm:
    def __init__(self, due: float, rung: list[tuple[float, float]]) -> None:
        self.due = due
        self._rung = rung
        self._wanted = due

    def fire(self, now: float) -> None:
        self._rung.append((self._wanted, now))


@asynccontextmanager
async def running() -> AsyncIterator[Deadlines]:
    deadlines = Deadlines(trio.current_time)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(deadlines.run)
        yield deadlines
        nursery.cancel_scope.cancel()


async def test_deadlines_fire_in_order_and_on_time(autojump_clock: Clock) -> None:
    rung: list[tuple[float, float]] = []
    async with running() as deadlines:
        start = trio.current_time()
        for after in (5, 1, 3, 1, 9):
            deadlines.arm(Alarm(start + after, rung))
        await trio.sleep(4)
        deadlines.arm(Alarm(start + 4.5, rung))  # earlier than what the task sleeps for
        await trio.sleep(10)

    assert [wanted - start for wanted, _ in rung] == [1, 1, 3, 4.5, 5, 9]
    assert all(wanted == at for wanted, at in rung)


async def test_a_hundred_thousand_deadlines_are_one_sleeping_task(autojump_clock: Clock) -> None:
    rung: list[tuple[float, float]] = []
    async with running() as deadlines:
        before = trio.lowlevel.current_statistics().tasks_living
        start = trio.current_time()
        for number in range(100_000):
            deadlines.arm(Alarm(start + 1 + number % 1000, rung))
        assert len(deadlines) == 100_000
        assert trio.lowlevel.current_statistics().tasks_living == before

        await trio.sleep(2000)
        assert len(rung) == 100_000
        assert len(deadlines) == 0


async def test_cancelled_deadlines_do_not_pile_up(autojump_clock: Clock) -> None:
    rung: list[tuple[float, float]] = []
    async with running() as deadlines:
        start = trio.current_time()
        keep = Alarm(start + 50, rung)
        deadlines.arm(keep)
        for _ in range(20 * COMPACT_FROM):
            alarm = Alarm(start + 30, rung)
            deadlines.arm(alarm)
            deadlines.cancel(alarm)
            deadlines.cancel(alarm)  # twice is once
        assert len(deadlines) == 1
        assert len(deadlines._heap) <= 2 * COMPACT_FROM + 2
        assert repr(deadlines).startswith("<Deadlines 1, ")

        await trio.sleep(100)

    assert rung == [(start + 50, start + 50)]


class Steps(trio.abc.Instrument):
    """Counts the turns that the task of the deadlines has."""

    def __init__(self) -> None:
        self.count = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.count += "Deadlines.run" in task.name


async def test_deadlines_that_were_cancelled_in_time_wake_nobody_later(autojump_clock: Clock) -> None:
    rung: list[tuple[float, float]] = []
    trio.lowlevel.add_instrument(steps := Steps())
    async with running() as deadlines:
        start = trio.current_time()
        for number in range(200):
            alarm = Alarm(start + 5 + number / 100, rung)
            deadlines.arm(alarm)
            deadlines.cancel(alarm)
        deadlines.arm(Alarm(start + 20, rung))
        await trio.sleep(30)

    assert rung == [(start + 20, start + 20)]
    assert steps.count < 10


async def test_moving_a_timer_later_touches_no_heap(autojump_clock: Clock) -> None:
    rung: list[tuple[Any, float]] = []
    async with running() as deadlines:
        timers = Timers(deadlines, lambda timer: rung.append((timer.message, trio.current_time())))
        start = trio.current_time()
        timers.set("lease", start + 30, 0)
        for renewal in range(1, 1000):
            timers.set("lease", start + 30 + renewal, renewal)
        assert len(deadlines._heap) == 1

        await trio.sleep(10_000)

    assert rung == [(999, start + 1029)]


async def test_a_timer_asks_how_much_time_is_left_before_it_rings(autojump_clock: Clock) -> None:
    rung: list[tuple[Any, float]] = []
    async with running() as deadlines:
        timers = Timers(deadlines, lambda timer: rung.append((timer.message, trio.current_time())))
        start = trio.current_time()
        left = [20.0, 5.0, 0.0]
        timers.set("moved", start + 30, "moved", lambda: left.pop(0))
        timers.set("broken", start + 7, "broken", lambda: 1 / 0)
        assert len(deadlines) == 2

        await trio.sleep(100)

    assert rung == [("broken", start + 7), ("moved", start + 55)]
    assert left == []


async def test_moving_a_timer_earlier_replaces_it(autojump_clock: Clock) -> None:
    rung: list[tuple[Any, float]] = []
    async with running() as deadlines:
        timers = Timers(deadlines, lambda timer: rung.append((timer.message, trio.current_time())))
        start = trio.current_time()
        timers.set("lease", start + 30, "late")
        timers.set("lease", start + 10, "early")
        assert len(timers) == 1
        assert len(deadlines) == 1

        await trio.sleep(100)

    assert rung == [("early", start + 10)]


def run_now(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run what does not wait."""
    with pytest.raises(StopIteration):
        coroutine.send(None)


class TimerMachine(RuleBasedStateMachine):
    """Whatever is set, moved and cancelled: each name rings when it was last set to, once, or not at all."""

    def __init__(self) -> None:
        super().__init__()
        self.rung: list[tuple[Any, int, float]] = []
        self.expected: dict[int, tuple[int, float]] = {}
        self.done: list[tuple[int, int, float]] = []
        self.serial = 0
        self.now = 0.0
        self.deadlines = Deadlines(lambda: self.now)
        self.timers = Timers(self.deadlines, self.ring)

    def ring(self, timer: Timer) -> None:
        if self.timers.claim(timer):
            self.rung.append((timer.name, timer.message, self.now))

    @rule(name=st.integers(0, 3), after=st.integers(1, 20))
    def set(self, name: int, after: int) -> None:
        self.serial += 1
        self.timers.set(name, self.now + after, self.serial)
        self.expected[name] = (self.serial, self.now + after)

    @rule(name=st.integers(0, 3))
    def cancel(self, name: int) -> None:
        self.timers.cancel(name)
        self.expected.pop(name, None)

    @rule()
    def cancel_all(self) -> None:
        self.timers.cancel_all()
        self.expected.clear()

    @rule(seconds=st.integers(1, 10))
    def pass_time(self, seconds: int) -> None:
        for _ in range(seconds):
            self.now += 1
            run_now(self.deadlines._fire_due())
            for name, (serial, due) in list(self.expected.items()):
                if due <= self.now:
                    self.done.append((name, serial, due))
                    del self.expected[name]
        assert sorted(self.rung, key=lambda one: one[1]) == sorted(self.done, key=lambda one: one[1])
        assert len(self.timers) == len(self.expected) == len(self.deadlines)


TimerMachine.TestCase.settings = settings(max_examples=examples(40), stateful_step_count=30, deadline=None)
TestTimersUnderAnySequenceOfSteps = TimerMachine.TestCase


async def test_a_timer_is_a_message_in_the_lane_control(autojump_clock: Clock) -> None:
    world = EngineWorld()

    async def arm(me: ScriptedActor) -> None:
        me.context.set_timer("t", 5, Note("timer"))
        await trio.sleep(10)

    async with open_system(tree(scripted(world))) as system:
        system.tell("scripted", "", Do(arm))
        await trio.sleep(1)
        system.tell("scripted", "", Note("user"))
        await trio.sleep(20)

    assert world.notes[1:3] == ["timer", "user"]


async def test_a_timer_that_was_cancelled_or_replaced_after_it_fired_is_not_delivered(
    autojump_clock: Clock,
) -> None:
    world = EngineWorld()

    async def fire_and_cancel(me: ScriptedActor) -> None:
        me.context.set_timer("cancelled", 1, Note("cancelled"))
        me.context.set_timer("replaced", 1, Note("replaced"))
        me.context.set_timer("kept", 1, Note("kept"))
        await trio.sleep(2)
        me.context.cancel_timer("cancelled")
        me.context.cancel_timer("never set")
        me.context.set_timer("replaced", 5, Note("replacement"))

    async with open_system(tree(scripted(world))) as system:
        system.tell("scripted", "", Do(fire_and_cancel))
        await trio.sleep(60)

    assert world.notes[1:-1] == ["kept", "replacement"]


async def test_timers_die_with_their_instance(autojump_clock: Clock) -> None:
    world = EngineWorld()

    async def arm(me: ScriptedActor) -> None:
        me.context.set_timer("t", 5, Note("of the dead"))

    async with open_system(tree(scripted_family(world))) as system:
        await system.ask("scripted", "a", Do(arm))
        await system.ask("scripted", "a", Crash(times=1))
        await system.ask("scripted", "b", Do(arm))
        assert await system.stop("scripted", "b")

        await trio.sleep(60)
        assert "of the dead" not in world.notes
        assert system.dead_letters.total() == 0


async def test_a_message_of_a_timer_that_crashes_the_actor_comes_once_more(autojump_clock: Clock) -> None:
    world = EngineWorld()

    async def arm(me: ScriptedActor) -> None:
        me.context.set_timer("t", 5, Crash(times=1, text="by timer"))

    async with open_system(tree(scripted_family(world))) as system:
        await system.ask("scripted", "a", Do(arm))
        await trio.sleep(30)

    assert world.crashes["by timer"] == 2
    assert "by timer" in world.notes


async def test_the_engine_takes_any_clock(autojump_clock: Clock) -> None:
    world = EngineWorld()
    async with open_system(
        tree(scripted(world)), monotonic=lambda: trio.current_time() * 1.0 + 1e6
    ) as system:

        async def arm(me: ScriptedActor) -> object:
            me.context.set_timer("t", 5, Note("timer"))
            me.context.defer()
            return DEFERRED

        start = trio.current_time()
        with trio.move_on_after(7):
            await system.ask("scripted", "", Do(arm))
        assert world.notes[-1] == "timer"

        await system.ask("scripted", "", Wait(1))
        assert trio.current_time() - start == 8


def test_never_is_later_than_any_time() -> None:
    assert math.isinf(NEVER)
    assert NEVER > 1e300
