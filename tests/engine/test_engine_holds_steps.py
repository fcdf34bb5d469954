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
from tests.thorough import examples
from tests.worlds.engine import OutageError, tree
from tests.worlds.engine_holds import (
    Asked,
    AsyncHoldingActor,
    HoldingActor,
    HoldWorld,
    Make,
    Note,
    StartHold,
    finish,
    holding_family,
    settled,
)

STEPS = (
    *("keep", "keep", "note", "tell", "finish", "finish", "wait", "again", "crash", "outage"),
    *("stale", "stop", "kill", "let run", "sleep"),
)


class Play:
    """Takes steps, and afterwards knows what must have come of them."""

    def __init__(self, system: ActorSystem, nursery: trio.Nursery, world: HoldWorld) -> None:
        self.system, self.nursery, self.world = system, nursery, world
        self.asked: list[Asked] = []

    async def take(self, step: str) -> None:
        match step:
            case "keep":
                self.asked.append(Asked(self.system, self.nursery, StartHold("kept"), 1000))
            case "note":
                self.asked.append(Asked(self.system, self.nursery, Note("noted"), 1000))
            case "tell":
                self.system.tell("holder", "a", Note("told"), lane=Lane.CONTROL)
            case "finish" | "wait" | "again" | "crash" | "outage":
                if self.world.holds:
                    finish(self.world.holds[-1], self._finisher(step))
            case "stale":
                if len(self.world.holds) > 1:
                    assert not finish(self.world.holds[0], self.world.note, "never")
            case "stop":
                self.nursery.start_soon(self.system.stop, "holder", "a")
            case "kill":
                self.system.kill("holder", "a")
            case "let run":
                await settled()
            case _:
                await trio.sleep(2)

    def _finisher(self, step: str) -> Callable[[], Any]:
        cell = self.world.holds[-1]._cell  # type: ignore[attr-defined]

        def reply() -> Any:
            self.world.under_way = None
            return self.world.note("finished kept", "reply")

        async def wait() -> Any:
            await trio.sleep(1)
            return reply()

        def again() -> Any:
            self.world.holds.append(cell.hold())
            return DEFERRED

        def fail(fault: Exception) -> None:
            self.world.under_way = None
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


@pytest.mark.parametrize("make_one", [HoldingActor, AsyncHoldingActor])
@settings(max_examples=examples(150), deadline=None)
@given(steps=st.lists(st.sampled_from(STEPS), max_size=40))
def test_holds_under_any_sequence_of_steps(make_one: Make, steps: list[str]) -> None:
    world = HoldWorld()

    async def play() -> None:
        spec = tree(holding_family(world, make_one, shutdown_s=5))
        async with open_system(spec) as system, trio.open_nursery() as nursery:
            scene = Play(system, nursery, world)
            for step in steps:
                await scene.take(step)
            await scene.finish()
            await system.stop("holder", "a")
            assert [len(asked.answers) for asked in scene.asked] == [1] * len(scene.asked)
            known = ("reply", "noted", OutageError, ActorCrashed, ActorStopped)
            assert all(asked.answers[0] in known for asked in scene.asked)
            assert await system.ask("holder", "a", Note("the last")) == "the last"
            statistics = system.statistics()
            assert statistics.workers == statistics.workers_idle
            assert statistics.kind("holder").mailbox_depth == 0

    trio.run(play, clock=trio.testing.MockClock(autojump_threshold=0))
    assert world.overlaps == 0

    begun, finished = world.notes.count("begin kept"), world.notes.count("finished kept")
    assert finished <= begun
