"""Implements the actor's context on its activation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from typing import Any, TypeVar

import trio

from sexton_engine.activation.attachments import Attachments
from sexton_engine.activation.cell import Cell
from sexton_engine.activation.cell_hold import CellHold
from sexton_engine.activation.kind import ASK_TIMEOUT_S
from sexton_engine.activation.phase import Request
from sexton_engine.activation.watches import begin_watch, end_watch, tell
from sexton_engine.context import Ending, Terminated
from sexton_engine.errors import EngineError
from sexton_engine.hold import Hold
from sexton_engine.mail.mailbox import Envelope
from sexton_engine.mail.reply import NobodyPort, ReplyPort
from sexton_engine.mail.timers import Timer
from sexton_engine.message import Lane, Message

__all__ = ["ContextCell"]

R = TypeVar("R")


class ContextCell(Cell):
    """A cell with the half of ``Context`` that acts; there are no others."""

    __slots__ = ()

    def defer(self) -> ReplyPort:
        """Take over the reply of the message being handled."""
        current = self.current
        if current is None:
            msg = "there is no message being handled whose reply could be deferred"
            raise EngineError(msg)
        port = current.take_port() or NobodyPort()
        self.attached().take_over(port)
        return port

    def hold(self, then: Callable[[Any], Any] | None = None) -> Hold:
        """Take no further message until what is handed out is finished or released."""
        current = self.current
        if current is None or self.held_by is not None:
            msg = "it is held already" if current else "there is no message being handled that could be held"
            raise EngineError(msg)
        self.held_by = hold = CellHold(self, current, then or _as_given)
        return hold

    async def ask(
        self,
        kind: str,
        key: Hashable,
        message: Message[R],
        *,
        timeout: float | None = None,
        lane: Lane = Lane.USER,
    ) -> R:
        """Ask another actor, within the deadline of the message being handled."""
        wait_s = ASK_TIMEOUT_S if timeout is None else timeout
        current = self.current
        if current is not None and self.worker_task is trio.lowlevel.current_task():
            if key == self.name and kind == self.of_kind.name:
                msg = f"{kind}/{key} asks itself, and could never answer"
                raise EngineError(msg)
            wait_s = min(wait_s, current.deadline() - self.of_kind.env.monotonic())
        return await self.of_kind.env.system.ask(kind, key, message, timeout=wait_s, lane=lane)

    def tell(self, kind: str, key: Hashable, message: Message[Any], *, lane: Lane = Lane.USER) -> None:
        """Send without a reply."""
        self.of_kind.env.system.tell(kind, key, message, lane=lane)

    async def send(self, kind: str, key: Hashable, message: Message[Any]) -> None:
        """Tell, waiting for room."""
        await self.of_kind.env.system.send(kind, key, message)

    def set_timer(
        self, name: Hashable, after_s: float, message: Any, *, left_s: Callable[[], float] | None = None
    ) -> None:
        """Deliver the message to itself later."""
        env = self.of_kind.env
        timers = self.attached().timers_of(env.deadlines, self._ring)
        timers.set(name, env.monotonic() + after_s, message, left_s)

    def _ring(self, timer: Timer) -> None:
        now = self.of_kind.env.monotonic()
        self.post_quietly(Envelope(timer.message, None, now, Lane.CONTROL, timer))

    def cancel_timer(self, name: Hashable) -> None:
        """Deliver nothing of that timer any more."""
        if self.attachments is not None and self.attachments.timers is not None:
            self.attachments.timers.cancel(name)

    def watch(self, kind: str, key: Hashable) -> None:
        """Be told once when that activation ends."""
        other = self.of_kind.env.find(kind, key)
        if other is None or other is self:
            tell(self, Terminated(kind, key, Ending.NOT_ACTIVE))
        else:
            begin_watch(self, other)

    def unwatch(self, kind: str, key: Hashable) -> None:
        """Take a watch back."""
        other = self.of_kind.env.find(kind, key)
        if other is not None:
            end_watch(self, other)

    def start_task(self, async_fn: Callable[..., Awaitable[Any]], *args: Any) -> trio.CancelScope:
        """Run a task that lives no longer than this instance."""
        scope = trio.CancelScope()
        attachments = self.attached()
        attachments.tasks.add(scope)
        self.of_kind.env.nursery.start_soon(
            self._run_task, attachments, scope, async_fn, args, name=f"{self!r} task"
        )
        return scope

    async def _run_task(
        self,
        attachments: Attachments,
        scope: trio.CancelScope,
        async_fn: Callable[..., Awaitable[Any]],
        args: tuple[Any, ...],
    ) -> None:
        try:
            with scope:
                await async_fn(*args)
        except Exception as exc:  # noqa: BLE001 - becomes the crash of the actor
            # After a restart they are others: a task of the dead instance cannot crash the new one.
            if self.attachments is attachments and self.requested not in {Request.SUSPEND, Request.STOP}:
                self.failure = exc
                if not self.interrupt(Request.FAIL):
                    self.wake()
        finally:
            attachments.tasks.discard(scope)

    def stop(self) -> None:
        """End after the message being handled."""
        self.request(Request.STOP)


def _as_given(value: Any) -> Any:
    return value
