"""Answers an ask in the asker's own task, when the actor is idle and its handler cannot wait."""

from __future__ import annotations

from types import CoroutineType
from typing import Any, Final

import trio

from sexton_engine.activation.cell import Cell
from sexton_engine.activation.turn import NOT_TAKEN_OVER, go_on, keep, put_down, survives
from sexton_engine.errors import EngineError
from sexton_engine.mail.mailbox import Envelope
from sexton_engine.mail.reply import DEFERRED, AskPort, ReplyPort
from sexton_engine.message import Lane

__all__ = ["AskEnvelope", "answer_at_once"]


class _NoWorker:
    """Stands for the worker: a plain function cannot be cancelled, so a kill waits until it returns."""

    __slots__ = ()

    def cancel(self) -> None:
        """Nothing to cancel."""


NO_WORKER: Final = _NoWorker()


class AskEnvelope(Envelope):
    """An ask whose reply port is made only if it comes to waiting."""

    __slots__ = ("_cell", "_until", "opened")

    def __init__(self, message: Any, cell: Cell, now: float, until: float, *, lane: Lane) -> None:
        self.message = message
        self.port = None
        self.sent_at = now
        self.lane = lane
        self.timer = None
        self.crashes = 0
        self.opened: AskPort | None = None
        self._cell = cell
        self._until = until

    def open_port(self) -> AskPort:
        """The port, made on first use; must be called in the asker's task."""
        port = self.opened
        if port is None:
            task = trio.lowlevel.current_task()
            port = self.opened = AskPort(task, self._until, self._cell.home.env.deadlines, self._cell.late)
            self.port = port
        return port

    def take_port(self) -> ReplyPort | None:
        """As in ``Envelope``."""
        self.open_port()
        return super().take_port()

    def deadline(self) -> float:
        """As in ``Envelope``."""
        return self._until


def answer_at_once(cell: Cell, envelope: AskEnvelope) -> Any:
    """Handle the message now; the reply, or ``DEFERRED`` if the asker has to wait at ``envelope.opened``.

    The activation must be awake and not scheduled: then it has no mail and no worker, so that nothing
    is overtaken and its messages still come one by one. Raises the actor's transparent exceptions.
    """
    actor = cell.instance()
    cell.scheduled = True
    cell.worker = NO_WORKER
    cell.current = envelope
    try:
        reply = actor.on_receive(envelope.message)
        if cell.held_by is not None and type(reply) is not CoroutineType:
            envelope.open_port()
            if not keep(cell, reply, envelope.sent_at):
                cell.worker = None
                cell.home.env.schedule(cell)
            return DEFERRED
        if reply is DEFERRED and envelope.opened is None:
            raise EngineError(NOT_TAKEN_OVER)  # noqa: TRY301 - a crash like any other
    except Exception as exc:  # noqa: BLE001 - as in run_turn
        envelope.open_port()
        if not survives(cell, envelope, exc):
            put_down(cell)
            return DEFERRED
        reply = DEFERRED
    if type(reply) is CoroutineType:
        envelope.open_port()
        cell.begun = reply
        cell.worker = None
        cell.home.env.schedule(cell)
        return DEFERRED
    go_on(cell, envelope, envelope.sent_at)
    # A reply that was taken over comes by the port, whatever the handler returned.
    return reply if envelope.opened is None else DEFERRED
