"""Speaking to actors: ask, tell, families, singletons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import trio
import trio.testing

from sexton_engine import (
    Actor,
    ActorCrashed,
    ActorSpec,
    Context,
    FamilySpec,
    Message,
    Reason,
    Strategy,
    SupervisorSpec,
    UnknownKind,
    open_system,
)


@dataclass(frozen=True, slots=True)
class Add(Message[int]):
    number: int


@dataclass(frozen=True, slots=True)
class Fail(Message[int]):
    error: Exception


Clock = trio.testing.MockClock


class OutageError(Exception):
    pass


class Counter(Actor):
    kind = "counter"
    transparent = (OutageError,)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.total = 0

    async def on_receive(self, message: Add | Fail) -> Any:
        match message:
            case Add(number=number):
                self.total += number
                return self.total
            case Fail(error=error):
                raise error


def tree(*children: ActorSpec | FamilySpec | SupervisorSpec) -> SupervisorSpec:
    return SupervisorSpec("root", Strategy.ONE_FOR_ONE, children)


async def test_an_ask_returns_what_the_handler_returned(autojump_clock: Clock) -> None:
    async with open_system(tree(FamilySpec("counter", Counter))) as system:
        assert await system.ask("counter", "a", Add(2)) == 2
        assert await system.ask("counter", "a", Add(3)) == 5
        assert await system.ask("counter", "b", Add(1)) == 1


async def test_a_message_that_crashes_twice_dies_and_its_asker_is_told(autojump_clock: Clock) -> None:
    async with open_system(tree(ActorSpec("counter", Counter))) as system:
        await system.ask("counter", "", Add(2))
        with pytest.raises(ActorCrashed):
            await system.ask("counter", "", Fail(ValueError("x")))
        assert await system.ask("counter", "", Add(2)) == 2
        assert system.dead_letters.count(Reason.CRASHED) == 1


async def test_a_transparent_exception_reaches_the_asker_and_changes_nothing(autojump_clock: Clock) -> None:
    async with open_system(tree(ActorSpec("counter", Counter))) as system:
        await system.ask("counter", "", Add(2))
        with pytest.raises(OutageError):
            await system.ask("counter", "", Fail(OutageError()))
        assert await system.ask("counter", "", Add(2)) == 4
        with pytest.raises(UnknownKind):
            await system.ask("counte", "", Add(2))
