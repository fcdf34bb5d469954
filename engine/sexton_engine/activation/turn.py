"""Runs the messages of one activation, one by one, up to its turn limit."""

from __future__ import annotations

from collections.abc import Coroutine
from types import CoroutineType
from typing import Any, Final

import pykka.messages

from sexton_engine.activation.cell import AWAKE, MAY_FINISH, NO_WISH, Cell, Phase, Wish
from sexton_engine.activation.lifecycle import crash, fail, obey, settle, start
from sexton_engine.errors import EngineError
from sexton_engine.mail.dead_letters import Reason
from sexton_engine.mail.mailbox import Envelope
from sexton_engine.mail.reply import DEFERRED, AdmissionPort
from sexton_engine.pykka_bridge.trio_actor import called

__all__ = ["NOT_TAKEN_OVER", "go_on", "interrupted", "keep", "put_down", "run_turn", "survives"]

OF_PYKKA: Final = frozenset(
    {
        pykka.messages.ProxyCall,
        pykka.messages.ProxyGetAttr,
        pykka.messages.ProxySetAttr,
        pykka.messages._ActorStop,
    }
)
"""Messages that pykka handles itself: proxies and stop."""

NOT_TAKEN_OVER: Final = "on_receive returned DEFERRED, but did not take the reply over by context.defer()"
HOLDS_AND_ANSWERS: Final = "a handler that holds returns DEFERRED; what finishes the hold returns the reply"


async def run_turn(cell: Cell) -> int:
    """Handle messages until there are no more, the limit is reached, or the actor is lost; how many it were.

    Afterwards ``cell.scheduled`` tells whether there is more to do, unless it is held. Every message passes
    here, so the loop is written out, and names are looked up once.
    """
    ready = cell.wish is NO_WISH and cell.phase is AWAKE and cell.begun is None
    if not ready and not await _prepared(cell):
        put_down(cell)
        return 1
    actor, mailbox, home = cell.instance(), cell.mailbox, cell.home
    messages, monotonic, limit = home.books.messages, home.env.monotonic, actor.turn_limit
    handled, began = 0, monotonic()
    while handled < limit:
        envelope = mailbox.take()
        if envelope is None:
            cell.rest(began)
            return handled
        if mailbox.waiting:
            _admit(cell)
        port = envelope.port
        unsure = envelope.timer is not None or (port is not None and port.overdue)
        if unsure and not _wanted(cell, envelope):
            continue
        handled += 1
        message = envelope.message
        of_type = type(message)
        cell.current = envelope
        try:
            # Looked up by class: pykka's own dispatch tests four types before it comes to on_receive.
            reply = actor._handle_receive(message) if of_type in OF_PYKKA else actor.on_receive(message)
            if type(reply) is CoroutineType:
                reply = await reply
            if cell.held_by is not None:
                keep(cell, reply, began)
                return handled
            if envelope.port is not None:  # else there is no asker, or the reply was taken over
                if reply is DEFERRED:
                    raise EngineError(NOT_TAKEN_OVER)  # noqa: TRY301 - a crash like any other
                envelope.port.set(reply)
        except Exception as exc:  # noqa: BLE001 - whatever goes wrong in an actor is its supervisor's affair
            if not survives(cell, envelope, exc):
                put_down(cell)
                return handled
        cell.current = None
        ended = monotonic()
        tally = messages.get(of_type)
        if tally is None:
            tally = messages[of_type] = [0, 0.0]
        tally[0] += 1
        tally[1] += ended - began
        began = ended
        if cell.wish is not NO_WISH:
            break
    return handled


async def _prepared(cell: Cell) -> bool:
    if cell.begun is not None and not await _continue(cell, cell.begun):
        return False
    if cell.wish is not Wish.NONE and not await obey(cell):
        return False
    if cell.phase is Phase.ASLEEP:
        if cell.home.held:
            cell.scheduled = False
            return False
        return await start(cell) and cell.wish is Wish.NONE
    return cell.phase is Phase.AWAKE


async def _continue(cell: Cell, coroutine: Coroutine[Any, Any, Any]) -> bool:
    """Await what a plain handler handed out to an asker that called it in its own task."""
    cell.begun = None
    envelope = cell.current
    if envelope is None:
        raise EngineError(f"{cell!r} has begun nothing")
    began = cell.home.env.monotonic()
    try:
        reply = await coroutine
        if cell.held_by is not None:
            keep(cell, reply, began)
            return False
        if envelope.port is not None:
            if reply is DEFERRED:
                raise EngineError(NOT_TAKEN_OVER)  # noqa: TRY301 - as in run_turn
            envelope.port.set(reply)
    except Exception as exc:  # noqa: BLE001 - as in run_turn
        if not survives(cell, envelope, exc):
            return False
    cell.current = None
    _tally(cell, type(envelope.message), cell.home.env.monotonic() - began)
    return True


def keep(cell: Cell, reply: Any, since: float) -> bool:
    """Let go of a handler that has returned and holds; ``False`` if a worker has to go on with it.

    Raises EngineError, a crash, if it returned anything but ``DEFERRED``.
    """
    hold = cell.held_by
    if hold is None or reply is not DEFERRED:
        raise EngineError(HOLDS_AND_ANSWERS)
    if cell.wish > MAY_FINISH:  # it is being killed, or a child task has crashed
        cell.held_by = None
    elif hold.early is not None:
        callback, args = hold.early
        cell.held_by = None
        cell.begun = called(callback, *args)
    else:
        hold.since = since
        cell.worker, cell.worker_task = hold, None
        cell.home.mail.add(cell)
        return True
    return False


def go_on(cell: Cell, envelope: Envelope, since: float) -> None:
    """Book a message that was handled outside of a worker, and have one do what is left to do."""
    ended = cell.home.env.monotonic()
    cell.current = None
    _tally(cell, type(envelope.message), ended - since)
    if cell.wish is not NO_WISH or cell.mailbox:
        cell.worker = None
        cell.home.mail.add(cell)
        cell.home.env.schedule(cell)
    else:
        cell.rest(ended)


def _tally(cell: Cell, of_type: type, seconds: float) -> None:
    """Book a message that was handled; ``run_turn`` does the same in line."""
    messages = cell.home.books.messages
    entry = messages.get(of_type)
    if entry is None:
        entry = messages[of_type] = [0, 0.0]
    entry[0] += 1
    entry[1] += seconds


def put_down(cell: Cell) -> None:
    """The worker lets go of an activation that cannot go on; it is not scheduled any more.

    One that is held stays as it is.
    """
    if cell.held_by is not None:
        return
    cell.worker = cell.worker_task = None
    if cell.phase is Phase.SUSPENDED or cell.phase is Phase.OVER:
        cell.scheduled = False
        cell.mailbox.rest()


def interrupted(cell: Cell) -> None:
    """The worker's scope was cancelled while it ran the cell: a kill, or a child task that crashed."""
    if cell.wish is Wish.FAIL:
        fail(cell)
    else:
        settle(cell)
    put_down(cell)


def _wanted(cell: Cell, envelope: Envelope) -> bool:
    timer, port = envelope.timer, envelope.port
    if timer is not None:
        envelope.timer = None
        return cell.claims(timer)
    if port is not None and port.overdue:
        # Nobody waits, and whoever asks again sends a new message: under load this is what sheds work.
        cell.home.bury(cell.name, envelope.message, Reason.EXPIRED)
        return False
    return True


def _admit(cell: Cell) -> None:
    while (envelope := cell.mailbox.admit()) is not None:
        port = envelope.port
        if isinstance(port, AdmissionPort):
            envelope.port = None
            port.set(None)


def survives(cell: Cell, envelope: Envelope, exc: Exception) -> bool:
    """Whether the exception is transparent, and has gone to the asker; else it was a crash."""
    actor, cell.held_by = cell.actor, None
    if actor is None or not isinstance(exc, actor.transparent):
        crash(cell, exc)
        return False
    if envelope.port is not None:
        envelope.port.set_exception(exc)
    else:
        cell.home.bury(cell.name, envelope.message, Reason.UNAVAILABLE)
    return True
