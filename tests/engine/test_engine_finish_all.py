"""Finishing many holds by one call: each actor is told what it would have been told by itself."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from sexton_engine import DEFERRED, ActorCrashed, ActorStopped, Reason, finish_all, open_system
from tests.worlds.engine import Clock, OutageError, tree
from tests.worlds.engine_holds import (
    AsyncHoldingActor,
    HoldingActor,
    HoldWorld,
    Make,
    Note,
    Run,
    StartHold,
    holding_family,
    settled,
)

HELD_S = 3


@pytest.mark.parametrize("make", [HoldingActor, AsyncHoldingActor])
async def test_holds_that_are_finished_together_end_as_each_would_alone(
    make: Make, autojump_clock: Clock
) -> None:
    world = HoldWorld()
    keys = ("plain", "killed", "has mail", "outage", "waits", "crash")
    replies: list[Any] = []

    async def wait(key: str) -> str:
        await trio.sleep(1)
        return key.upper()

    def rest(key: str) -> Any:
        if key == "outage":
            raise OutageError
        if key == "crash":
            raise ValueError(key)
        return wait(key) if key == "waits" else key.upper()

    async def ask() -> None:
        replies.extend(await system.ask_all("holder", [(key, StartHold(key)) for key in keys], timeout=60))

    async with open_system(tree(holding_family(world, make))) as system, trio.open_nursery() as nursery:
        await system.ask_all("holder", [(key, Note("awake")) for key in keys])
        nursery.start_soon(ask)
        await settled()
        holds, held = list(world.holds), [note.partition(" ")[2] for note in world.notes[len(keys) :]]
        assert sorted(held) == sorted(keys)

        await trio.sleep(HELD_S)
        system.kill("holder", "killed")
        system.tell("holder", "has mail", Note("later"))
        await settled()
        before = world.notes.count("later")
        finish_all(holds, rest, held)
        await settled()
        after = world.notes.count("later")
        # The crash is redelivered once, and crashes again.
        await trio.sleep(HELD_S)
        finish_all(world.holds[len(keys) :], rest, ["crash"])
        await trio.sleep(HELD_S)
        counted = {of.message: of for of in system.statistics().kind("holder").messages}["StartHold"]

        assert (before, after) == (0, 1)
        assert [reply if isinstance(reply, str) else type(reply) for reply in replies] == [
            "PLAIN",
            ActorStopped,
            "HAS MAIL",
            OutageError,
            "WAITS",
            ActorCrashed,
        ]
        assert system.dead_letters.count(Reason.LATE_FINISH) == 1
        assert (counted.count, counted.seconds) == (4, 3 * HELD_S + 1)
        assert await system.ask("holder", "plain", Note("lives on")) == "lives on"


async def test_a_hold_that_is_finished_with_others_before_its_handler_returns_is_finished_after_it(
    autojump_clock: Clock,
) -> None:
    world = HoldWorld()

    def at_once(actor: HoldingActor) -> Any:
        finish_all([actor.context.hold()], str.upper, ["early"])
        return DEFERRED

    async with open_system(tree(holding_family(world))) as system:
        assert await system.ask("holder", "a", Run(at_once)) == "EARLY"
