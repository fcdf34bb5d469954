"""Carries a held activation over from its handler to the callback that finishes its message."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from sexton_engine.activation.cell import Cell
from sexton_engine.activation.delivery import (
    HANDLED,
    begin,
    count,
    end_turn,
    finish_turn,
    interrupted,
    leave_to_worker,
)
from sexton_engine.activation.direct_ask import NO_WORKER
from sexton_engine.hold import Hold
from sexton_engine.mail.dead_letters import Reason
from sexton_engine.mail.mailbox import Envelope
from sexton_engine.mail.reply import DEFERRED

__all__ = ["CellHold", "finish_all"]

Callback: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...]]


class CellHold(Hold):
    """In force once the handler has returned; then it stands in place of the worker."""

    __slots__ = ("_cell", "_envelope")

    def __init__(self, cell: Cell, envelope: Envelope, then: Callable[[Any], Any]) -> None:
        self.early = None
        self.then = then
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
        if self._cell.worker is self:
            self._go_on(_call_back, (callback, args))
        else:
            self._keep_or_drop(callback, *args)

    def give(self, value: Any) -> None:
        """The same with ``then``."""
        if self._cell.worker is self:
            self._go_on(self.then, value)
        else:
            self._keep_or_drop(self.then, value)

    def _go_on(self, call: Callable[[Any], Any], argument: Any) -> None:
        cell, envelope = self._cell, self._envelope
        cell.held_by, cell.worker = None, NO_WORKER
        step = begin(cell, envelope, self.since, call, argument)
        if step is HANDLED:
            finish_turn(cell, envelope, self.since)
        else:
            leave_to_worker(cell, step)

    def _keep_or_drop(self, callback: Callable[..., Any], *args: Any) -> None:
        if self.is_over:
            self._cell.of_kind.add_dead_letter(self._cell.name, self._envelope.message, Reason.LATE_FINISH)
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
            cell.of_kind.env.schedule(cell)


def finish_all(holds: Sequence[Hold], call: Callable[[Any], Any], arguments: Sequence[Any]) -> None:
    """Finish each with what ``call`` makes of its argument, one after the other; as ``finish`` of each.

    For holds that were waited for together: the clock is read once, and each message counts as handled when
    the first was finished.
    """
    now: float | None = None
    for hold, argument in zip(holds, arguments, strict=True):
        if not isinstance(hold, CellHold) or hold._cell.worker is not hold:
            hold.finish(call, argument)
            continue
        cell, envelope = hold._cell, hold._envelope
        kind = cell.of_kind
        if now is None:
            now = kind.env.monotonic()
        cell.held_by, cell.worker = None, NO_WORKER
        step = begin(cell, envelope, hold.since, call, argument)
        if step is HANDLED:
            cell.current = None
            count(kind.counters.messages, type(envelope.message), now - hold.since)
            end_turn(cell, now)
        else:
            leave_to_worker(cell, step)


def _call_back(callback: Callback) -> Any:
    function, args = callback
    return function(*args)


def _nothing() -> Any:
    return DEFERRED
