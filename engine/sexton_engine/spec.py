"""The supervision tree as data: who is started, in what order, and what happens when it crashes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from sexton_engine.actor import Actor
from sexton_engine.context import Context

__all__ = [
    "ActorSpec",
    "Backoff",
    "ChildSpec",
    "FamilySpec",
    "Intensity",
    "Restart",
    "Strategy",
    "SupervisorSpec",
]

StartFunction: TypeAlias = Callable[[Context], Actor]


class Strategy(Enum):
    """Who is restarted when one child crashes."""

    ONE_FOR_ONE = "one_for_one"
    """The one that crashed."""
    REST_FOR_ONE = "rest_for_one"
    """That one, and those started after it."""
    ONE_FOR_ALL = "one_for_all"
    """All children."""


class Restart(Enum):
    """When a child that has ended is started again."""

    PERMANENT = "permanent"
    """Always."""
    TRANSIENT = "transient"
    """After a crash, not after a stop."""
    TEMPORARY = "temporary"
    """Never."""


@dataclass(frozen=True, slots=True)
class Intensity:
    """How many restarts within a period (seconds) are borne; one more escalates."""

    max_restarts: int = 5
    period_s: float = 30.0

    def __post_init__(self) -> None:
        if self.max_restarts < 0 or self.period_s <= 0:
            msg = f"not an intensity: {self.max_restarts} restarts in {self.period_s} s"
            raise ValueError(msg)


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long to wait before the n-th restart in a row: ``first_s * factor ** n``, at most ``max_s``.

    Each wait is shortened or lengthened at random by up to the part ``jitter`` (0 to 1).
    """

    first_s: float = 0.1
    factor: float = 2.0
    max_s: float = 10.0
    jitter: float = 0.2

    def __post_init__(self) -> None:
        if self.first_s < 0 or self.factor < 1 or self.max_s < self.first_s or not 0 <= self.jitter <= 1:
            msg = f"not a back-off: {self}"
            raise ValueError(msg)


@dataclass(frozen=True, slots=True)
class ActorSpec:
    """An actor that exists once, from start to stop; its key is ``""``."""

    kind: str
    start: StartFunction
    restart: Restart = Restart.PERMANENT
    shutdown_s: float = 5.0

    @property
    def name(self) -> str:
        """What the tree calls it."""
        return self.kind


@dataclass(frozen=True, slots=True)
class FamilySpec:
    """Actors of one kind: the first message to a key activates it, ``idle_s`` idle seconds put it to sleep.

    ``intensity`` is per key: a key that crashes too often is given up, the family lives on. ``restart``
    says what happens to one key; the family itself never fails.
    """

    kind: str
    start: StartFunction
    idle_s: float = 60.0
    restart: Restart = Restart.TRANSIENT
    intensity: Intensity = Intensity()
    shutdown_s: float = 5.0

    @property
    def name(self) -> str:
        """What the tree calls it."""
        return self.kind


@dataclass(frozen=True, slots=True)
class SupervisorSpec:
    """Starts its children in order, stops them in reverse order, restarts them by its strategy."""

    name: str
    strategy: Strategy
    children: tuple[ActorSpec | FamilySpec | SupervisorSpec, ...]
    intensity: Intensity = Intensity()
    backoff: Backoff = Backoff()
    restart: Restart = Restart.PERMANENT
    shutdown_s: float = 30.0

    def __post_init__(self) -> None:
        names = [child.name for child in self.children]
        doubled = {name for name in names if names.count(name) > 1}
        if doubled:
            msg = f"{self.name} has two children of the name {min(doubled)}"
            raise ValueError(msg)


ChildSpec: TypeAlias = ActorSpec | FamilySpec | SupervisorSpec
