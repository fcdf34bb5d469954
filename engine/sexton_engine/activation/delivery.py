"""Handles one message: calls the handler, or what finishes one, and answers whoever asked."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from types import CoroutineType
from typing import Any, Final

from sexton_engine.activation.cell import Cell
from sexton_engine.activation.lifecycle import crash, fail, settle
from sexton_engine.activation.phase import MAY_FINISH, NO_REQUEST, OVER, Phase, Request
from sexton_engine.errors import EngineError
from sexton_engine.mail.dead_letters import Reason
from sexton_engine.mail.mailbox import Envelope
from sexton_engine.mail.reply import DEFERRED
from sexton_engine.pykka_bridge.trio_actor import called

__all__ = [
    "HANDLED",
    "LOST",
    "WAITING",
    "Step",
    "answer_fault",
    "begin",
    "conclude",
    "count",
    "end_turn",
    "finish_turn",
    "interrupted",
    "leave_to_worker",
    "release_worker",
    "resume",
]

NOT_TAKEN_OVER: Final = "on_receive returned DEFERRED, but did not take the reply over by context.defer()"
HOLDS_AND_ANSWERS: Final = "a handler that holds returns DEFERRED; what finishes the hold returns the reply"


class Step(Enum):
    """How far a message has come when its handler has returned control."""

    HANDLED = "handled"
    """The asker has the answer; the next message may come."""
    WAITING = "waiting"
    """The handler handed out a coroutine, ``cell.begun``, which a worker has to await."""
    HELD = "held"
    """The handler holds the message; whoever finishes the hold goes on with it."""
    AGAIN = "again"
    """A worker has to look at the activation again: a hold was finished early, or dropped by a kill."""
    LOST = "lost"
    """The actor has crashed."""


# For what every message passes: in Python 3.11 an enum finds its members by a call.
HANDLED: Final = Step.HANDLED
WAITING: Final = Step.WAITING
HELD: Final = Step.HELD
AGAIN: Final = Step.AGAIN
LOST: Final = Step.LOST


def begin(cell: Cell, envelope: Envelope, since: float, call: Callable[[Any], Any], argument: Any) -> Step:
    """Call a plain handler to its end, or any other up to the coroutine that it hands out.

    ``since`` is when the handling began. Never raises: an exception is the asker's if it is transparent,
    and otherwise a crash.
    """
    cell.current = envelope
    try:
        reply = call(argument)
        if type(reply) is CoroutineType:
            cell.begun = reply
            return WAITING
        if cell.held_by is not None:
            return _enter_hold(cell, reply, since)
        # The same as in conclude, written out: every message passes here.
        port = envelope.port
        if port is None:
            if reply is DEFERRED and envelope.is_unanswered:
                raise EngineError(NOT_TAKEN_OVER)  # noqa: TRY301 - a crash like any other
            envelope.reply = reply
        elif reply is DEFERRED:
            raise EngineError(NOT_TAKEN_OVER)  # noqa: TRY301 - as above
        else:
            port.set(reply)
    except Exception as exc:  # noqa: BLE001 - whatever goes wrong in an actor is its supervisor's affair
        envelope.open_port()
        return answer_fault(cell, envelope, exc)
    return HANDLED


async def resume(cell: Cell, since: float) -> Step:
    """Await what a handler handed out, in a worker's task, and go on as in ``begin``."""
    coroutine, cell.begun = cell.begun, None
    envelope = cell.current
    if coroutine is None or envelope is None:
        raise EngineError(f"{cell!r} has begun nothing")
    try:
        return conclude(cell, envelope, await coroutine, since)
    except Exception as exc:  # noqa: BLE001 - as in begin
        return answer_fault(cell, envelope, exc)


def conclude(cell: Cell, envelope: Envelope, reply: Any, since: float) -> Step:
    """Answer the asker with what the handler returned, or let the hold begin; what it raises is a crash."""
    if cell.held_by is not None:
        return _enter_hold(cell, reply, since)
    port = envelope.port
    if port is not None:  # else there is no asker, or the reply was taken over
        if reply is DEFERRED:
            raise EngineError(NOT_TAKEN_OVER)
        port.set(reply)
    return HANDLED


def _enter_hold(cell: Cell, reply: Any, since: float) -> Step:
    hold = cell.held_by
    if hold is None or reply is not DEFERRED:
        raise EngineError(HOLDS_AND_ANSWERS)
    if cell.requested > MAY_FINISH:  # it is being killed, or a child task has crashed
        cell.held_by = None
        return AGAIN
    if hold.early is not None:
        callback, args = hold.early
        cell.held_by = None
        cell.begun = called(callback, *args)
        return AGAIN
    hold.since = since
    cell.worker, cell.worker_task = hold, None
    cell.of_kind.mail.add(cell)
    return HELD


def answer_fault(cell: Cell, envelope: Envelope, exc: Exception) -> Step:
    """Give a transparent exception to the asker; any other is a crash."""
    actor, cell.held_by = cell.actor, None
    if actor is None or not isinstance(exc, actor.transparent):
        crash(cell, exc)
        return LOST
    if envelope.port is not None:
        envelope.port.set_exception(exc)
    else:
        cell.of_kind.add_dead_letter(cell.name, envelope.message, Reason.UNAVAILABLE)
    return HANDLED


def count(messages: dict[type, list[float]], of_type: type, seconds: float) -> None:
    """Count a message that was handled, in ``Counters.messages``."""
    entry = messages.get(of_type)
    if entry is None:
        entry = messages[of_type] = [0, 0.0]
    entry[0] += 1
    entry[1] += seconds


def finish_turn(cell: Cell, envelope: Envelope, since: float) -> None:
    """Count a message that was handled outside of a worker, and have one do what is left to do."""
    kind = cell.of_kind
    ended = kind.env.monotonic()
    cell.current = None
    count(kind.counters.messages, type(envelope.message), ended - since)
    end_turn(cell, ended)


def end_turn(cell: Cell, now: float) -> None:
    """Let the activation rest, or have a worker do what is left to do."""
    if cell.requested is NO_REQUEST and cell.rest(now):
        return
    kind, cell.worker = cell.of_kind, None
    kind.mail.add(cell)
    kind.env.schedule(cell)


def leave_to_worker(cell: Cell, step: Step) -> None:
    """Hand a message over that was begun outside of a worker and not brought to its end there."""
    if step is WAITING or step is AGAIN:
        cell.worker = None
        cell.of_kind.env.schedule(cell)
    elif step is LOST:
        release_worker(cell)


def release_worker(cell: Cell) -> None:
    """The worker lets go of an activation that cannot go on; it is not scheduled any more.

    One that is held stays as it is.
    """
    if cell.held_by is not None:
        return
    cell.worker = cell.worker_task = None
    if cell.phase is Phase.SUSPENDED or cell.phase is OVER:
        cell.scheduled = False
        cell.mailbox.rest()


def interrupted(cell: Cell) -> None:
    """The worker's scope was cancelled while it ran the cell: a kill, or a child task that crashed."""
    if cell.requested is Request.FAIL:
        fail(cell)
    else:
        settle(cell)
    release_worker(cell)
