"""A supervisor that is taken down with its siblings starts nothing until it is its turn again."""

from __future__ import annotations

from random import Random
from typing import Any, cast

import pytest
import trio
import trio.testing

from sexton_engine import ActorSystem, Context, Strategy, SupervisorSpec, open_system
from sexton_engine.supervision.supervisor import SupervisorNode
from tests.worlds.engine import (
    PATIENT,
    QUICK,
    Clock,
    Do,
    EngineWorld,
    ScriptedActor,
    scripted,
    tree,
)

UP = {"a": "awake", "below": "up", "b": "awake", "c": "awake"}


def nested(world: EngineWorld) -> SupervisorSpec:
    """``a``, and after it a supervisor of ``b`` and ``c``, which goes down with ``a``."""
    below = SupervisorSpec(
        "below",
        Strategy.ONE_FOR_ONE,
        (scripted(world, "b"), scripted(world, "c")),
        intensity=PATIENT,
        backoff=QUICK,
    )
    return tree(scripted(world, "a"), below, strategy=Strategy.REST_FOR_ONE)


def supervisor_below(system: ActorSystem) -> SupervisorNode:
    node = cast("Any", system).tree_root.children[-1].node
    assert isinstance(node, SupervisorNode)
    return node


def states(system: ActorSystem) -> dict[str, str]:
    a, below = system.tree().children
    return {node.name: node.state for node in (a, below, *below.children)}


@pytest.mark.parametrize("seed", range(40))
async def test_the_children_of_a_supervisor_come_up_in_order_when_a_sibling_crashes_again_and_again(
    seed: int, autojump_clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The second crash comes while the supervisor below begins; the seed decides which task is first.
    monkeypatch.setattr("trio._core._run._ALLOW_DETERMINISTIC_SCHEDULING", True)
    monkeypatch.setattr("trio._core._run._r", Random(seed))
    crashes = iter(range(2))

    async def crash_twice(me: ScriptedActor) -> None:
        await trio.lowlevel.checkpoint()
        for number in crashes:
            raise ValueError(number)

    world = EngineWorld()
    async with open_system(nested(world)) as system:
        for _ in range(2):
            system.tell("a", "", Do(crash_twice))
        await trio.sleep(60)

        starts = [note for note in world.notes if note.startswith("start")]

        assert starts[-3:] == ["start a/", "start b/", "start c/"]
        assert states(system) == UP


async def test_a_supervisor_that_is_stopped_before_its_task_has_run_starts_nothing(
    autojump_clock: Clock,
) -> None:
    world = EngineWorld()
    async with open_system(nested(world)) as system:
        below = supervisor_below(system)
        await below.stop(keep_mail=True)
        world.notes.clear()

        below.begin()
        await below.stop(keep_mail=True)
        await trio.sleep(60)
        assert world.notes == []

        below.begin()
        await trio.sleep(60)
        assert world.notes == ["start b/", "start c/"]
        assert states(system) == UP


async def test_a_supervisor_that_is_stopped_when_a_child_has_come_up_does_not_start_the_next_one(
    autojump_clock: Clock,
) -> None:
    class SlowActor(ScriptedActor):
        async def on_start(self) -> None:  # type: ignore[override]  # pykka annotates its hooks for threads
            await trio.sleep(1)
            self.world.notes.append(f"start {self}")

    def start(context: Context) -> ScriptedActor:
        return SlowActor(context, world) if context.kind == "b" else ScriptedActor(context, world)

    world = EngineWorld()
    async with open_system(nested(world)) as system:
        below = supervisor_below(system)
        b, _ = below.children
        await below.stop(keep_mail=True)
        world.notes.clear()
        cast("Any", b.node).of_kind.start = start

        below.begin()
        await trio.testing.wait_all_tasks_blocked()
        below.child_started(b.node)  # its task is ready to run now, and has not run yet
        await below.stop(keep_mail=True)
        assert world.notes == ["start b/", "stop b/"]

        below.begin()
        await trio.sleep(60)
        assert world.notes == ["start b/", "stop b/", "start b/", "start c/"]
        assert states(system) == UP
