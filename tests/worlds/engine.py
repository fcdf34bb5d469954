"""Actors that do what their messages say, for the tests of the engine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import trio
import trio.testing

from sexton_engine import (
    DEFERRED,
    Actor,
    ActorSpec,
    Backoff,
    Context,
    FamilySpec,
    Intensity,
    Message,
    ReplyPort,
    Strategy,
    SupervisorSpec,
)

Clock: TypeAlias = trio.testing.MockClock
Script: TypeAlias = Callable[["ScriptedActor"], Awaitable[Any]]


class OutageError(Exception):
    """Declared transparent by these actors."""


@dataclass(frozen=True, slots=True)
class Note(Message[int]):
    """Write it down; the reply is how many are written down."""

    text: str


@dataclass(frozen=True, slots=True)
class Crash(Message[None]):
    """Raise, only as often as given; afterwards it is a note."""

    times: int = 1
    text: str = "crash"


@dataclass(frozen=True, slots=True)
class Raise(Message[None]):
    """Raise this, each time."""

    error: Exception


@dataclass(frozen=True, slots=True)
class Wait(Message[str]):
    """Take that many seconds."""

    seconds: float
    text: str = "waited"


@dataclass(frozen=True, slots=True)
class Do(Message[Any]):
    """Run a script inside the actor."""

    script: Script


@dataclass(frozen=True, slots=True)
class Defer(Message[str]):
    """Take the reply over; it is kept in the world's ports."""


@dataclass(slots=True)
class EngineWorld:
    """What outlives the instances: what they wrote down, in order."""

    notes: list[str] = field(default_factory=list)
    ports: list[ReplyPort] = field(default_factory=list)
    crashes: dict[str, int] = field(default_factory=dict)
    starts: int = 0
    fail_starts: list[Exception] = field(default_factory=list)
    """Raised by on_start, one each time, until there are none left."""


class ScriptedActor(Actor):
    """Does what the messages say, and notes it in the world."""

    kind = "scripted"
    transparent = (OutageError,)

    def __init__(self, context: Context, world: EngineWorld) -> None:
        super().__init__(context)
        self.world = world
        self.count = 0

    async def on_start(self) -> None:  # type: ignore[override]  # pykka annotates its hooks for threads
        await trio.lowlevel.checkpoint()
        self.world.starts += 1
        if self.world.fail_starts:
            raise self.world.fail_starts.pop(0)
        self.world.notes.append(f"start {self}")

    async def on_stop(self) -> None:  # type: ignore[override]  # pykka annotates its hooks for threads
        await trio.lowlevel.checkpoint()
        self.world.notes.append(f"stop {self}")

    async def on_receive(self, message: Any) -> Any:
        match message:
            case Note(text=text):
                self.count += 1
                self.world.notes.append(text)
                return self.count
            case Crash(times=times, text=text):
                done = self.world.crashes.get(text, 0)
                self.world.crashes[text] = done + 1
                if done < times:
                    raise ValueError(text)
                self.world.notes.append(text)
                return None
            case Raise(error=error):
                raise error
            case Wait(seconds=seconds, text=text):
                await trio.sleep(seconds)
                self.world.notes.append(text)
                return text
            case Do(script=script):
                return await script(self)
            case Defer():
                self.world.ports.append(self.context.defer())
                return DEFERRED
            case _:
                self.world.notes.append(repr(message))
                return None


class PlainActor(Actor):
    """As ``ScriptedActor`` in the few things it does, but its handler is a plain function."""

    kind = "plain"
    transparent = (OutageError,)

    def __init__(self, context: Context, world: EngineWorld) -> None:
        super().__init__(context)
        self.world = world
        self.count = 0

    def on_receive(self, message: Any) -> Any:
        match message:
            case Note(text=text):
                self.count += 1
                self.world.notes.append(text)
                return self.count
            case Crash(times=times, text=text):
                done = self.world.crashes.get(text, 0)
                self.world.crashes[text] = done + 1
                if done < times:
                    raise ValueError(text)
                self.world.notes.append(text)
                return None
            case Raise(error=error):
                raise error
            case Wait(seconds=seconds, text=text):
                self.world.notes.append(f"begin {text}")
                return self._wait(seconds, text)
            case Defer():
                self.world.ports.append(self.context.defer())
                return DEFERRED
            case _:
                return message

    async def _wait(self, seconds: float, text: str) -> str:
        await trio.sleep(seconds)
        self.world.notes.append(text)
        return text


QUICK = Backoff(first_s=1.0, factor=2.0, max_s=8.0, jitter=0.0)
PATIENT = Intensity(max_restarts=5, period_s=60.0)


def scripted(world: EngineWorld, kind: str = "scripted", **options: Any) -> ActorSpec:
    return ActorSpec(kind, lambda context: ScriptedActor(context, world), **options)


def scripted_family(world: EngineWorld, kind: str = "scripted", **options: Any) -> FamilySpec:
    options.setdefault("intensity", PATIENT)
    return FamilySpec(kind, lambda context: ScriptedActor(context, world), **options)


def plain_family(world: EngineWorld, **options: Any) -> FamilySpec:
    return FamilySpec("plain", lambda context: PlainActor(context, world), **options)


def tree(
    *children: ActorSpec | FamilySpec | SupervisorSpec,
    strategy: Strategy = Strategy.ONE_FOR_ONE,
    intensity: Intensity = PATIENT,
    backoff: Backoff = QUICK,
) -> SupervisorSpec:
    return SupervisorSpec("root", strategy, children, intensity=intensity, backoff=backoff)
