"""pykka's actors as trio tasks."""

from __future__ import annotations

import logging
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from types import CoroutineType, TracebackType
from typing import Any, Final, Self, TypeVar, cast

import pykka
import trio

from sexton_engine.pykka_bridge.future import TrioFuture

__all__ = ["Inbox", "TrioActor", "TrioRef", "actor_scope", "called"]

BURST: Final = 64
"""Messages a plain actor handles before it lets others run."""

logger = logging.getLogger("pykka")

A = TypeVar("A", bound="pykka.Actor")

_nursery: ContextVar[trio.Nursery] = ContextVar("sexton_engine_actor_nursery")


@asynccontextmanager
async def actor_scope() -> AsyncIterator[None]:
    """Let ``SomeTrioActor.start()`` work inside; actors that still run at the end are cancelled."""
    async with trio.open_nursery() as nursery:
        token = _nursery.set(nursery)
        try:
            yield
        finally:
            _nursery.reset(token)
            nursery.cancel_scope.cancel()


async def called(function: Callable[..., Any], *args: Any) -> Any:
    """Call a hook or a method that may be ``def`` or ``async def``."""
    result = function(*args)
    if isinstance(result, CoroutineType):
        return await result
    return result


class TrioRef(pykka.ActorRef[A]):
    """pykka's reference; ``ask`` and ``stop`` hand out a future to await and never block.

    ``block=True`` means nothing here: a thread that runs trio must not wait. A ``timeout`` goes to the
    future, whose ``await`` raises ``pykka.Timeout`` after that many seconds.
    """

    def ask(self, message: Any, *, block: bool = True, timeout: float | None = None) -> Any:
        """Send, and return the future reply."""
        del block
        future: TrioFuture[Any] = super().ask(message, block=False)  # type: ignore[assignment]  # made by our own _create_future
        future.timeout = timeout
        return future

    def stop(self, *, block: bool = True, timeout: float | None = None) -> Any:
        """Have it stop after the messages it has, and return a future that tells whether it was alive."""
        del block
        future: TrioFuture[bool] = super().stop(block=False)  # type: ignore[assignment]  # as above
        future.timeout = timeout
        return future


class Inbox:
    """The unbounded inbox of a plain actor; one task parks in ``wait_get``."""

    __slots__ = ("_queue", "_task")

    def __init__(self) -> None:
        self._queue: deque[Any] = deque()
        self._task: trio.lowlevel.Task | None = None

    def put(self, envelope: Any, /) -> None:
        """Add; wakes the actor."""
        self._queue.append(envelope)
        task, self._task = self._task, None
        if task is not None:
            trio.lowlevel.reschedule(task)

    def get(self) -> Any:
        """The oldest envelope, which must be there."""
        return self._queue.popleft()

    def empty(self) -> bool:
        """Whether there is nothing to get."""
        return not self._queue

    async def wait_get(self) -> Any:
        """The oldest envelope, once there is one."""
        if not self._queue:
            self._task = trio.lowlevel.current_task()
            await trio.lowlevel.wait_task_rescheduled(self._leave)
        return self._queue.popleft()

    def _leave(self, _raise_cancel: object) -> trio.lowlevel.Abort:
        self._task = None
        return trio.lowlevel.Abort.SUCCEEDED


class TrioActor(pykka.Actor):
    """A pykka actor whose loop is a trio task of the surrounding ``actor_scope``.

    Hooks, ``on_receive`` and the methods called through proxies may be ``def`` or ``async def``.
    Everything else keeps the meaning that pykka documents, but that a cancelled actor ends alone:
    pykka's own loop takes ``trio.Cancelled`` for the wish to stop all actors.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._actor_ref = TrioRef(self)

    # A ref is invariant in its actor, which pykka's own subclasses are not held to.
    @classmethod
    def start(  # pyright: ignore[reportIncompatibleMethodOverride]
        cls, *args: Any, **kwargs: Any
    ) -> TrioRef[Self]:
        """Start the actor in the surrounding ``actor_scope``; the arguments are its constructor's."""
        return cast(TrioRef[Self], super().start(*args, **kwargs))

    @staticmethod
    def _create_actor_inbox() -> Inbox:
        return Inbox()

    @staticmethod
    def _create_future() -> TrioFuture[Any]:
        return TrioFuture()

    def on_start(self) -> Any:
        """Run before the first message."""

    def on_stop(self) -> Any:
        """Run after the last message of an actor that was asked to stop."""

    def on_failure(
        self,
        exception_type: type[BaseException] | None,
        exception_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> Any:
        """Run when a message that was told raised; the actor is stopped already."""

    def on_receive(self, message: Any) -> Any:
        """Handle a message; what is returned is the reply."""
        return super().on_receive(message)

    def _start_actor_loop(self) -> None:
        try:
            nursery = _nursery.get()
        except LookupError:
            pykka.ActorRegistry.unregister(self.actor_ref)
            msg = "a TrioActor is started inside `async with actor_scope():`"
            raise RuntimeError(msg) from None
        nursery.start_soon(self._run, name=str(self))

    async def _run(self) -> None:
        inbox: Inbox = self.actor_inbox  # type: ignore[assignment]  # made by our own _create_actor_inbox
        try:
            await self._guarded(self.on_start)
            handled = 0
            while not self.actor_stopped.is_set():
                envelope = await inbox.wait_get()
                await self._handle(envelope)
                handled += 1
                if handled % BURST == 0:
                    await trio.lowlevel.checkpoint()
        finally:
            self._abandon_inbox()

    async def _guarded(self, hook: Callable[..., Any], *args: Any) -> None:
        try:
            await called(hook, *args)
        except Exception:  # noqa: BLE001 - any failure of a hook ends the actor, as pykka documents
            self._handle_failure(*sys.exc_info())

    async def _handle(self, envelope: Any) -> None:
        reply_to = envelope.reply_to
        try:
            reply = await called(self._handle_receive, envelope.message)
        except Exception as exc:
            if reply_to is not None:
                logger.info("Exception returned from %s to caller:", self, exc_info=True)
                reply_to.set_exception()
            else:
                self._handle_failure(*sys.exc_info())
                await self._guarded(self.on_failure, type(exc), exc, exc.__traceback__)
        except BaseException:
            if reply_to is not None:
                _refuse(reply_to, f"{self.actor_ref} was cancelled")
            raise
        else:
            if reply_to is not None:
                reply_to.set(reply)

    def _stop(self) -> Any:
        return self._stop_now()  # awaited by _handle, as every coroutine that handling a message returns

    async def _stop_now(self) -> None:
        pykka.ActorRegistry.unregister(self.actor_ref)
        self.actor_stopped.set()
        await self._guarded(self.on_stop)

    def _abandon_inbox(self) -> None:
        if not self.actor_stopped.is_set():
            pykka.ActorRegistry.unregister(self.actor_ref)
            self.actor_stopped.set()
        self._actor_loop_teardown()


def _refuse(reply_to: Any, why: str) -> None:
    reply_to.set_exception((pykka.ActorDeadError, pykka.ActorDeadError(why), None))
