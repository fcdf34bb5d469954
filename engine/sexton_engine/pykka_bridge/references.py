"""pykka's reference to a supervised actor."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any, cast

import pykka

from sexton_engine.mail.reply import ReplyPort
from sexton_engine.pykka_bridge.future import TrioFuture
from sexton_engine.pykka_bridge.trio_actor import TrioActor, TrioRef

__all__ = ["CellRef"]


class FuturePort(ReplyPort):
    """Brings a reply to a future of pykka's."""

    __slots__ = ("_future",)

    def __init__(self, future: TrioFuture[Any]) -> None:
        super().__init__()
        self._future = future

    @property
    def is_expired(self) -> bool:
        """Whether the future has its value."""
        return self._future.is_set

    def set(self, value: Any) -> bool:
        """Give the value."""
        return self._give(lambda: self._future.set(value))

    def set_exception(self, exc: BaseException) -> bool:
        """Give the exception; that of a stopped actor is spelled as pykka does."""
        return self._give(lambda: self._future.set_exception((type(exc), exc, exc.__traceback__)))

    def _give(self, give: Callable[[], None]) -> bool:
        if self._future.is_set:
            return False
        self._leave_keeper()
        give()
        return True


class _Inbox:
    """Where pykka's references and proxies put their messages."""

    __slots__ = ("_post",)

    def __init__(self, post: Callable[[Any, ReplyPort | None], None]) -> None:
        self._post = post

    def put(self, envelope: Any, /) -> None:
        """Hand on to the mailbox."""
        self._post(envelope.message, None if envelope.reply_to is None else FuturePort(envelope.reply_to))

    def get(self) -> Any:
        """Only the engine takes messages out."""
        msg = "the engine takes messages out of a supervised actor's mailbox"
        raise NotImplementedError(msg)

    def empty(self) -> bool:
        """Nothing that could be got."""
        return True


class _Stopped:
    """Stands for the ``threading.Event`` that pykka asks whether an actor is alive."""

    __slots__ = ("_is_over",)

    def __init__(self, is_over: Callable[[], bool]) -> None:
        self._is_over = is_over

    def is_set(self) -> bool:
        """Whether the activation has ended."""
        return self._is_over()


class CellRef(TrioRef[TrioActor]):
    """Stays valid over restarts; a passivated, stopped or given up activation is dead to it."""

    def __init__(
        self, urn: str, post: Callable[[Any, ReplyPort | None], None], is_over: Callable[[], bool]
    ) -> None:
        # pykka's __init__ would read all of this from an instance, which may not be there yet.
        self._actor_weakref = cast("weakref.ref[TrioActor]", _nobody)
        self.actor_class = TrioActor
        self.actor_urn = urn
        self.actor_inbox = _Inbox(post)
        self.actor_stopped = cast("threading.Event", _Stopped(is_over))

    def point_at(self, actor: TrioActor) -> None:
        """Let proxies look at this instance from now on."""
        self._actor_weakref = weakref.ref(actor)
        self.actor_class = type(actor)


def _nobody() -> pykka.Actor | None:
    return None
