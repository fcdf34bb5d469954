"""Actors that hold, for the tests of holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import trio
import trio.testing

from sexton_engine import (
    DEFERRED,
    Actor,
    ActorSystem,
    Context,
    EngineError,
    FamilySpec,
    Hold,
    Message,
)
from tests.worlds.engine import PATIENT, OutageError


@dataclass(frozen=True, slots=True)
class StartHold(Message[Any]):
    """Hold; the hold is kept in the world."""

    text: str = "kept"


@dataclass(frozen=True, slots=True)
class Note(Message[str]):
    """Write it down and say it back."""

    text: str


@dataclass(frozen=True, slots=True)
class Run(Message[Any]):
    """Call this with the actor as the handler's own doing."""

    script: Callable[[Any], Any]


@dataclass(slots=True)
class HoldWorld:
    """What outlives the instances: their holds, for whoever finishes them, and their notes."""

    holds: list[Hold] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    overlaps: int = 0
    """Messages that were begun, or finished, while another one was under way."""
    under_way: HoldingActor | None = None
    """The instance that holds a message."""

    def note(self, text: str, reply: Any = None) -> Any:
        self.notes.append(text)
        return reply


class HoldingActor(Actor):
    """A plain handler."""

    kind = "holder"
    transparent = (OutageError,)

    def __init__(self, context: Context, world: HoldWorld) -> None:
        super().__init__(context)
        self.world = world

    def on_receive(self, message: Any) -> Any:
        self.world.overlaps += self.world.under_way is self
        match message:
            case StartHold():
                self.world.under_way = self
                self.world.notes.append(f"begin {message.text}")
                self.world.holds.append(self.context.hold())
                return DEFERRED
            case Note():
                self.world.notes.append(message.text)
                return message.text
            case Run():
                return message.script(self)
            case _:
                self.world.notes.append(repr(message))
                return None

    def on_stop(self) -> None:
        self.world.overlaps += self.world.under_way is self
        self.world.notes.append("stop")


class AsyncHoldingActor(HoldingActor):
    """The same, awaited by a worker."""

    async def on_receive(self, message: Any) -> Any:
        await trio.lowlevel.checkpoint()
        reply = super().on_receive(message)
        return await reply if hasattr(reply, "__await__") else reply


Make: TypeAlias = type[HoldingActor]


def holding_family(world: HoldWorld, make: Make = HoldingActor, **options: Any) -> FamilySpec:
    options.setdefault("intensity", PATIENT)
    return FamilySpec("holder", lambda context: make(context, world), **options)


async def asked(
    system: ActorSystem, nursery: trio.Nursery, message: Message[Any], timeout: float | None = None
) -> Asked:
    """Ask in a task of its own; the message has been taken in, and handled as far as can be."""
    ask = Asked(system, nursery, message, timeout)
    await settled()
    return ask


class Asked:
    """What came of an ask."""

    def __init__(
        self, system: ActorSystem, nursery: trio.Nursery, message: Message[Any], timeout: float | None = None
    ) -> None:
        self.answers: list[Any] = []
        nursery.start_soon(self._ask, system, message, timeout)

    async def _ask(self, system: ActorSystem, message: Message[Any], timeout: float | None) -> None:
        try:
            self.answers.append(await system.ask("holder", "a", message, timeout=timeout))
        except (EngineError, OutageError) as fault:
            self.answers.append(type(fault))


def finish(hold: Hold, callback: Callable[..., Any], *args: Any) -> bool:
    """Finish; whether it was not over before."""
    over = hold.is_over
    hold.finish(callback, *args)
    assert hold.is_over
    return not over


def release(hold: Hold) -> bool:
    """Release; whether it was not over before."""
    over = hold.is_over
    hold.release()
    assert hold.is_over
    return not over


async def settled() -> None:
    await trio.testing.wait_all_tasks_blocked()
