"""Carries a held activation over from its handler to the callback that finishes its message."""

from __future__ import annotations

from collections.abc import Callable
from types import CoroutineType
from typing import Any

from sexton_engine.activation.at_once import NO_WORKER
from sexton_engine.activation.cell import Cell
from sexton_engine.activation.turn import NOT_TAKEN_OVER, go_on, interrupted, keep, put_down, survives
from sexton_engine.errors import EngineError
from sexton_engine.hold import Hold
from sexton_engine.mail.dead_letters import Reason
from sexton_engine.mail.mailbox import Envelope
from sexton_engine.mail.reply import DEFERRED

__all__ = ["CellHold"]


class CellHold(Hold):
    """In force once the handler has returned; then it stands in the place of the worker."""

    __slots__ = ("_cell", "_envelope")

    def __init__(self, cell: Cell, envelope: Envelope) -> None:
        self.early = None
        self._cell = cell
        self._envelope = envelope

    def __repr__(self) -> str:
        return f"<Hold of {self._cell!r} on {type(self._envelope.message).__name__}>"

    @property
    def is_over(self) -> bool:
        """Whether finishing does nothing any more."""
        return self._cell.held_by is not self or self.early is not None

    def finish(self, callback: Callable[..., Any], *args: Any) -> None:
        """Run the callback in the actor's turn, in whatever task this is."""
        cell = self._cell
        if cell.worker is self:
            self._run(callback, args)
        elif self.is_over:
            cell.home.bury(cell.name, self._envelope.message, Reason.LATE_FINISH)
        else:  # the handler has not returned yet
            self.early = callback, args

    def release(self) -> None:
        """Go on with the next message."""
        self.finish(_nothing)

    def cancel(self) -> None:
        """A kill, or a child task that crashed: nobody waits that could be cancelled, so it ends here."""
        cell = self._cell
        interrupted(cell)
        if cell.scheduled:
            cell.home.env.schedule(cell)

    def _run(self, callback: Callable[..., Any], args: tuple[Any, ...]) -> None:
        cell, envelope = self._cell, self._envelope
        _take_up(cell)
        try:
            reply = callback(*args)
            if type(reply) is CoroutineType:
                cell.begun = reply
                _queue(cell)
                return
            if cell.held_by is not None:
                if not keep(cell, reply, self.since):
                    _queue(cell)
                return
            if envelope.port is not None:
                if reply is DEFERRED:
                    raise EngineError(NOT_TAKEN_OVER)  # noqa: TRY301 - a crash like any other
                envelope.port.set(reply)
        except Exception as exc:  # noqa: BLE001 - as in run_turn
            if not survives(cell, envelope, exc):
                put_down(cell)
                return
        go_on(cell, envelope, self.since)


def _take_up(cell: Cell) -> None:
    cell.held_by, cell.worker = None, NO_WORKER


def _queue(cell: Cell) -> None:
    cell.worker = None
    cell.home.env.schedule(cell)


def _nothing() -> Any:
    return DEFERRED
