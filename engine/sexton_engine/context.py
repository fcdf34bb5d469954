"""What an actor may ask of the system, and what others may ask of the actors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

import trio
from prometheus_client.registry import Collector

from sexton_engine.hold import Hold
from sexton_engine.inspection import Inspection
from sexton_engine.mail.dead_letters import DeadLetters
from sexton_engine.mail.reply import ReplyPort
from sexton_engine.message import Lane, Message
from sexton_engine.pykka_bridge.trio_actor import TrioRef
from sexton_engine.statistics import SystemStatistics, TreeNode

__all__ = ["ActorSystem", "Context", "Ending", "Terminated"]

R = TypeVar("R")


class Ending(Enum):
    """How an activation ended."""

    STOPPED = "stopped"
    KILLED = "killed"
    CRASHED = "crashed"
    """It crashed, and its supervisor does not restart it."""
    PASSIVATED = "passivated"
    NOT_ACTIVE = "not_active"
    """There was no activation when the watch began."""


@dataclass(frozen=True, slots=True)
class Terminated(Message[None]):
    """Told once to each watcher, in the lane SUPERVISION, when the watched activation has ended."""

    kind: str
    key: Hashable
    reason: Ending


class ActorSystem(ABC):
    """All actors under one supervision tree, spoken to by (kind, key)."""

    __slots__ = ()

    dead_letters: DeadLetters
    inspection: Inspection

    @abstractmethod
    async def ask(
        self,
        kind: str,
        key: Hashable,
        message: Message[R],
        *,
        timeout: float | None = None,
        lane: Lane = Lane.USER,
    ) -> R:
        """Send, and wait for the reply, ``timeout`` seconds at most (``ASK_TIMEOUT_S`` by default).

        Raises ``AskTimeout``, ``MailboxFull``, ``ActorCrashed``, ``ActorStopped``, ``UnknownKind``, and
        those exceptions that the actor declares transparent. An ask that is cancelled may still be handled.
        """

    @abstractmethod
    async def ask_all(
        self, kind: str, asks: Sequence[tuple[Hashable, Message[R]]], *, timeout: float | None = None
    ) -> list[R | Exception]:
        """Ask many at once and wait for all; replies in the order of the questions.

        What ``ask`` would raise stands in place of a reply. Costs no task a question.
        """

    @abstractmethod
    def tell(self, kind: str, key: Hashable, message: Message[Any], *, lane: Lane = Lane.USER) -> None:
        """Send without a reply. What cannot be delivered becomes a dead letter.

        Raises ``UnknownKind`` only.
        """

    @abstractmethod
    async def send(self, kind: str, key: Hashable, message: Message[Any]) -> None:
        """Tell in the lane USER, waiting for room if the mailbox's policy is to wait.

        Raises ``MailboxFull`` and ``ActorStopped`` where ``tell`` makes a dead letter.
        """

    @abstractmethod
    async def stop(self, kind: str, key: Hashable) -> bool:
        """End an activation after the message it is handling; ``False`` if there was none.

        Returns when it has ended: by itself, or killed after its shutdown budget.
        """

    @abstractmethod
    def kill(self, kind: str, key: Hashable) -> bool:
        """End an activation now, cancelling what it does; ``False`` if there was none."""

    @abstractmethod
    def statistics(self) -> SystemStatistics:
        """What the system has done, and what waits now."""

    @abstractmethod
    def tree(self) -> TreeNode:
        """The live supervision tree."""

    @abstractmethod
    def collector(self) -> Collector:
        """A Prometheus collector of the statistics, labelled by kind, never by key."""


class Context(ABC):
    """An actor's own view: who it is, and what it may do. Handed to its constructor."""

    __slots__ = ()

    @property
    @abstractmethod
    def kind(self) -> str:
        """The kind under which it is reached."""

    @property
    @abstractmethod
    def key(self) -> Hashable:
        """The key under which it is reached; ``""`` for a singleton."""

    @property
    @abstractmethod
    def system(self) -> ActorSystem:
        """The system it lives in."""

    @property
    @abstractmethod
    def ref(self) -> TrioRef[Any]:
        """pykka's reference to this activation; it outlives restarts, but not the end of the activation."""

    @abstractmethod
    def defer(self) -> ReplyPort:
        """Take over the reply of the message being handled; ``on_receive`` then returns ``DEFERRED``.

        The port may be settled later by the actor or by any task. If the actor crashes or ends first, the
        asker is told so.
        """

    @abstractmethod
    def hold(self, then: Callable[[Any], Any] | None = None) -> Hold:
        """Hold the message being handled, without a task; ``on_receive`` then returns ``DEFERRED``.

        ``then`` is the rest of the handler, for ``Hold.give``; by default what is given is the reply.
        The actor takes no further message until ``finish`` or ``release`` is called on what is returned; a
        stop waits for that within its budget, a kill does not.
        """

    @abstractmethod
    async def ask(
        self,
        kind: str,
        key: Hashable,
        message: Message[R],
        *,
        timeout: float | None = None,
        lane: Lane = Lane.USER,
    ) -> R:
        """Ask another actor; never waits longer than whoever asked for the message being handled.

        Errors as in ``ActorSystem.ask``.
        """

    @abstractmethod
    def tell(self, kind: str, key: Hashable, message: Message[Any], *, lane: Lane = Lane.USER) -> None:
        """As ``ActorSystem.tell``."""

    @abstractmethod
    async def send(self, kind: str, key: Hashable, message: Message[Any]) -> None:
        """As ``ActorSystem.send``."""

    @abstractmethod
    def set_timer(
        self, name: Hashable, after_s: float, message: Any, *, left_s: Callable[[], float] | None = None
    ) -> None:
        """Deliver the message to this actor in ``after_s`` seconds, in the lane CONTROL.

        Replaces the timer of that name: of what was set before, nothing is delivered any more. ``left_s``
        is asked when the time has come, and tells how many seconds are left after all: who moves a deadline
        later need not set its timer again.
        """

    @abstractmethod
    def cancel_timer(self, name: Hashable) -> None:
        """Nothing of that timer is delivered any more, even if it has fired and waits in the mailbox."""

    @abstractmethod
    def watch(self, kind: str, key: Hashable) -> None:
        """Be told ``Terminated``, exactly once, when that activation ends; at once if there is none."""

    @abstractmethod
    def unwatch(self, kind: str, key: Hashable) -> None:
        """Take a watch back."""

    @abstractmethod
    def start_task(self, async_fn: Callable[..., Awaitable[Any]], *args: Any) -> trio.CancelScope:
        """Run a task beside the mailbox. It is cancelled with the actor; its crash is the actor's crash."""

    @abstractmethod
    def stop(self) -> None:
        """End this activation after the message being handled."""
