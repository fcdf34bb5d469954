"""What all activations of one kind share, and what all kinds of one system share."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, Generic, Protocol, TypeVar

import trio

from sexton_engine.actor import Actor
from sexton_engine.context import ActorSystem, Ending
from sexton_engine.crash_log import CrashLog
from sexton_engine.mail.dead_letters import DeadLetter, DeadLetters, Reason
from sexton_engine.mail.deadlines import Deadlines
from sexton_engine.mail.mailbox import MailboxSpec
from sexton_engine.recordings import Recordings
from sexton_engine.spec import StartFunction

__all__ = ["ASK_TIMEOUT_S", "Counters", "Environment", "Kind", "Owner"]

ASK_TIMEOUT_S: Final = 30.0
"""Seconds that an ask waits if nobody says otherwise."""

C = TypeVar("C")
C_contra = TypeVar("C_contra", contravariant=True)


class Owner(Protocol[C_contra]):
    """Is told what becomes of the activations, and decides about restarts."""

    def started(self, cell: C_contra) -> None:
        """It is awake: ``on_start`` is done."""

    def unavailable(self, cell: C_contra, exc: Exception) -> None:
        """It could not start, or had to give up, because of a transparent exception; no crash."""

    def crashed(self, cell: C_contra, exc: BaseException) -> None:
        """It has crashed, and waits with its mail for the decision."""

    def restart_wanted(self, cell: C_contra) -> bool:
        """Somebody wants it to start again, which is counted, but not against the intensity; whether it will.

        One that is not awake, or is going down already, is left to what is under way.
        """
        ...

    def finished(self, cell: C_contra, ending: Ending) -> None:
        """It was stopped or killed, and waits with its mail for the decision."""


@dataclass(slots=True)
class Counters:
    """The counters of one kind, since the start of the system."""

    messages: dict[type, list[float]] = field(default_factory=dict)
    """By type of message: how many, and the seconds they took."""
    activations: int = 0
    passivations: int = 0
    crashes: int = 0
    restarts: int = 0
    escalations: int = 0


@dataclass(slots=True)
class Environment(Generic[C]):
    """What the system lends to every activation."""

    system: ActorSystem
    monotonic: Callable[[], float]
    deadlines: Deadlines
    dead_letters: DeadLetters
    crashes: CrashLog
    recordings: Recordings
    nursery: trio.Nursery
    schedule: Callable[[C], None]
    find: Callable[[str, Hashable], C | None]
    rng: Random
    ids: Callable[[], str]


class Kind(Generic[C]):
    """One kind: how its actors are made, which of them live, and the counters kept on them."""

    __slots__ = (
        "cells",
        "closed",
        "counters",
        "env",
        "idle_s",
        "mail",
        "mailbox",
        "mailbox_known",
        "name",
        "outage",
        "owner",
        "paused",
        "shutdown_s",
        "start",
    )

    def __init__(
        self,
        name: str,
        start: StartFunction,
        env: Environment[C],
        owner: Owner[C],
        *,
        shutdown_s: float,
        idle_s: float | None,
    ) -> None:
        self.name = name
        self.start = start
        self.env = env
        self.owner = owner
        self.shutdown_s = shutdown_s
        """Seconds that a stop may take before it becomes a kill."""
        self.idle_s = idle_s
        """Seconds after which an idle activation is put to sleep; ``None`` (a singleton) is never."""
        self.counters = Counters()
        self.cells: dict[Hashable, C] = {}
        self.mail: set[C] = set()
        """The activations that have, or had a moment ago, something to do."""
        self.paused = False
        """While true nothing of this kind runs; messages wait."""
        self.closed = False
        """Once true, messages are refused."""
        self.outage = False
        """Whether the latest start met a transparent exception; an outage is logged once."""
        declared = _declared_mailbox(start)
        self.mailbox_known = declared is not None
        """Whether ``mailbox`` is what the class declares; a factory tells only by making an instance."""
        self.mailbox = declared or MailboxSpec()

    def add_dead_letter(self, key: Hashable, message: Any, reason: Reason) -> None:
        """Make a dead letter."""
        self.env.dead_letters.add(DeadLetter(self.name, key, message, reason, self.env.monotonic()))


def _declared_mailbox(start: StartFunction) -> MailboxSpec | None:
    if isinstance(start, type) and issubclass(start, Actor):
        return start.mailbox
    return None
