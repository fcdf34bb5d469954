"""Answers an ask in the asker's own task, when the actor is idle and its handler cannot wait."""

from __future__ import annotations

from typing import Any, Final

import trio

from sexton_engine.activation.cell import Cell
from sexton_engine.activation.delivery import HANDLED, begin, finish_turn, leave_to_worker
from sexton_engine.actor import Actor
from sexton_engine.mail.mailbox import Envelope
from sexton_engine.mail.reply import DEFERRED, AskPort, ReplyPort
from sexton_engine.mail.reply_batch import ReplyBatch
from sexton_engine.message import Lane

__all__ = ["NO_WORKER", "BatchAsk", "SingleAsk", "answer_directly"]


class _NoWorker:
    """Stands for the worker: a plain function cannot be cancelled, so a kill waits until it returns."""

    __slots__ = ()

    def cancel(self) -> None:
        """Nothing to cancel."""


NO_WORKER: Final = _NoWorker()
USER: Final = Lane.USER


class DirectAsk(Envelope):
    """An ask whose reply port is made only if it comes to waiting."""

    __slots__ = ("_cell", "opened")

    opened: ReplyPort | None

    def __init__(self, message: Any, cell: Cell, now: float, lane: Lane) -> None:
        self.message = message
        self.port = None
        self.sent_at = now
        self.lane = lane
        self.timer = None
        self.crashes = 0
        self.opened = None
        self._cell = cell

    @property
    def is_unanswered(self) -> bool:
        """Whether what the handler returns is the reply: there is no port that it could come by."""
        return self.opened is None

    def take_port(self) -> ReplyPort | None:
        """As in ``Envelope``."""
        self.open_port()
        return super().take_port()


class SingleAsk(DirectAsk):
    """One question of one task."""

    __slots__ = ("_ask_port", "_until")

    def __init__(self, message: Any, cell: Cell, now: float, until: float, lane: Lane) -> None:
        super().__init__(message, cell, now, lane)
        self._ask_port: AskPort | None = None
        self._until = until

    def open_port(self) -> AskPort:
        """The port, made on first use; must be called in the asker's task."""
        port = self._ask_port
        if port is None:
            task, cell = trio.lowlevel.current_task(), self._cell
            deadlines = cell.of_kind.env.deadlines
            port = AskPort(task, self._until, deadlines, cell.count_late_reply)
            self._ask_port = self.opened = self.port = port
        return port

    def deadline(self) -> float:
        """As in ``Envelope``."""
        return self._until


class BatchAsk(DirectAsk):
    """One question of many."""

    __slots__ = ("_batch", "_place")

    def __init__(self, message: Any, cell: Cell, now: float, batch: ReplyBatch, place: int) -> None:
        # The base class written out: every renewal of a batch passes here.
        self.message = message
        self.port = None
        self.sent_at = now
        self.lane = USER
        self.timer = None
        self.crashes = 0
        self.opened = None
        self._cell = cell
        self._batch = batch
        self._place = place

    def open_port(self) -> ReplyPort:
        """The port in the batch, made on first use."""
        port = self.opened
        if port is None:
            port = self.opened = self.port = self._batch.open_port(self._place, self._cell.count_late_reply)
        return port

    def deadline(self) -> float:
        """As in ``Envelope``."""
        return self._batch.until


def answer_directly(cell: Cell, actor: Actor, asked: DirectAsk) -> Any:
    """Handle the message now; the reply, or ``DEFERRED`` if the asker has to wait at ``asked.open_port()``.

    The activation must be awake, with this actor, and not scheduled: then it has no mail and no worker, so
    that nothing is overtaken and its messages still come one by one.
    """
    cell.scheduled = True
    cell.worker = NO_WORKER
    step = begin(cell, asked, asked.sent_at, actor.on_receive, asked.message)
    if step is not HANDLED:
        asked.open_port()
        leave_to_worker(cell, step)
        return DEFERRED
    finish_turn(cell, asked, asked.sent_at)
    # A reply that was taken over comes by the port, whatever the handler returned.
    return asked.reply if asked.opened is None else DEFERRED
