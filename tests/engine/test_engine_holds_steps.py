"""Holds under any sequence of steps: what must hold of them whatever happens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given, settings, strategies as st

from sexton_engine import (
    DEFERRED,
    ActorCrashed,
    ActorStopped,
    ActorSystem,
    Lane,
    open_system,
)
from tests.engine.cast import OutageError, tree
from tests.engine.keepers import (
    Asked,
    Desk,
    Keep,
    Keeper,
    Make,
    Note,
    Waiter,
    finish,
    keepers,
    settled,
)

STEPS = (
    *("keep", "keep", "note", "tell", "finish", "finish", "wait", "again", "crash", "outage"),
    *("stale", "stop", "kill", "let run", "sleep"),
)


class Play:
    """Takes steps, and afterwards knows what must have come of them."""

    def __init__(self, system: ActorSystem, nursery: trio.Nursery, desk: Desk) -> None:
        self.system, self.nursery, self.desk = system, nursery, desk
        self.asked: list[Asked] = []

    async def take(self, step: str) -> None:
        match step:
            case "keep":
                self.asked.append(Asked(self.system, self.nursery, Keep("kept"), 1000))
            case "note":
                self.asked.append(Asked(self.system, self.nursery, Note("noted"), 1000))
            case "tell":
                self.system.tell("keeper", "a", Note("told"), lane=Lane.CONTROL)
            case "finish" | "wait" | "again" | "crash" | "outage":
                if self.desk.holds:
                    finish(self.desk.holds[-1], self._finisher(step))
            case "stale":
                if len(self.desk.holds) > 1:
                    assert not finish(self.desk.holds[0], self.desk.note, "never")
            case "stop":
                self.nursery.start_soon(self.system.stop, "keeper", "a")
            case "kill":
                self.system.kill("keeper", "a")
            case "let run":
                await settled()
            case _:
                await trio.sleep(2)

    def _finisher(self, step: str) -> Callable[[], Any]:
        cell = self.desk.holds[-1]._cell  # type: ignore[attr-defined]

        def reply() -> Any:
            self.desk.under_way = None
            return self.desk.note("finished kept", "reply")

        async def wait() -> Any:
            await trio.sleep(1)
            return reply()

        def again() -> Any:
            self.desk.holds.append(cell.hold())
            return DEFERRED

        def fail(fault: Exception) -> None:
            self.desk.under_way = None
            raise fault

        return {
            "finish": reply,
            "wait": wait,
            "again": again,
            "crash": lambda: fail(ValueError()),
            "outage": lambda: fail(OutageError()),
        }[step]

    async def finish(self) -> None:
        """Until all have their answers."""
        await settled()
        for _ in range(200):
            if all(asked.answers for asked in self.asked):
                return
            await self.take("finish")
            await trio.sleep(10)


@pytest.mark.parametrize("make_one", [Keeper, Waiter])
@settings(max_examples=150, deadline=None)
@given(steps=st.lists(st.sampled_from(STEPS), max_size=40))
def test_holds_under_any_sequence_of_steps(make_one: Make, steps: list[str]) -> None:
    desk = Desk()

    async def play() -> None:
        spec = tree(keepers(desk, make_one, shutdown_s=5))
        async with open_system(spec) as system, trio.open_nursery() as nursery:
            scene = Play(system, nursery, desk)
            for step in steps:
                await scene.take(step)
            await scene.finish()
            await system.stop("keeper", "a")
            assert [len(asked.answers) for asked in scene.asked] == [1] * len(scene.asked)
            known = ("reply", "noted", OutageError, ActorCrashed, ActorStopped)
            assert all(asked.answers[0] in known for asked in scene.asked)
            assert await system.ask("keeper", "a", Note("the last")) == "the last"
            statistics = system.statistics()
            assert statistics.workers == statistics.workers_idle
            assert statistics.kind("keeper").mailbox_depth == 0

    trio.run(play, clock=trio.testing.MockClock(autojump_threshold=0))
    assert desk.overlaps == 0
    begun, finished = desk.notes.count("begin kept"), desk.notes.count("finished kept")
    assert finished <= begun
