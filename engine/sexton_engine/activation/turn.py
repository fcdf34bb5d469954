"""Runs the messages of one activation, one by one, up to its turn limit."""

from __future__ import annotations

from typing import Final

import pykka.messages

from sexton_engine.activation.cell import Cell
from sexton_engine.activation.delivery import (
    HANDLED,
    LOST,
    WAITING,
    answer_fault,
    begin,
    conclude,
    count,
    release_worker,
    resume,
)
from sexton_engine.activation.lifecycle import fail, settle, sleep_or_stay, start, stop
from sexton_engine.activation.phase import AWAKE, NO_REQUEST, Move, next_move
from sexton_engine.mail.dead_letters import Reason
from sexton_engine.mail.mailbox import Envelope
from sexton_engine.mail.reply import AdmissionPort

__all__ = ["run_turn"]

OF_PYKKA: Final = frozenset(
    {
        pykka.messages.ProxyCall,
        pykka.messages.ProxyGetAttr,
        pykka.messages.ProxySetAttr,
        pykka.messages._ActorStop,
    }
)
"""Messages that pykka handles itself: proxies and stop."""


async def run_turn(cell: Cell) -> int:
    """Handle messages until there are no more, the limit is reached, or the actor is lost; how many it were.

    Afterwards ``cell.scheduled`` tells whether there is more to do, unless it is held. Every message passes
    here, so names are looked up once.
    """
    ready = cell.requested is NO_REQUEST and cell.phase is AWAKE and cell.begun is None
    if not ready and not await _prepare(cell):
        release_worker(cell)
        return 1
    actor, mailbox, kind = cell.instance(), cell.mailbox, cell.of_kind
    messages, monotonic = kind.counters.messages, kind.env.monotonic
    handled, began, limit = 0, monotonic(), actor.turn_limit
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
        # Looked up by class: pykka's own dispatch tests four types before it comes to on_receive.
        handler = actor._handle_receive if of_type in OF_PYKKA else actor.on_receive
        step = begin(cell, envelope, began, handler, message)
        if step is WAITING and (coroutine := cell.begun) is not None:
            # The same as resume, written out: one coroutine more around each handler costs 3 % of an ask.
            cell.begun = None
            try:
                step = conclude(cell, envelope, await coroutine, began)
            except Exception as exc:  # noqa: BLE001 - as in begin
                step = answer_fault(cell, envelope, exc)
        if step is not HANDLED:
            if step is LOST:
                release_worker(cell)
            return handled
        cell.current = None
        ended = monotonic()
        count(messages, of_type, ended - began)
        began = ended
        if cell.requested is not NO_REQUEST:
            break
    return handled


async def _prepare(cell: Cell) -> bool:
    """Do what comes before the mail; whether the mail may come then."""
    if cell.begun is not None and not await _finish_begun(cell):
        return False
    if cell.requested is NO_REQUEST and cell.phase is AWAKE:
        return True  # what next_move would say, without a call
    match next_move(cell.phase, cell.requested):
        case Move.HANDLE:
            return True
        case Move.START if cell.of_kind.paused:
            cell.scheduled = False
        case Move.START:
            return await start(cell) and cell.requested is NO_REQUEST
        case Move.ASK_TO_SLEEP:
            return await sleep_or_stay(cell)
        case Move.STOP:
            await stop(cell)
        case Move.LET_GO:
            settle(cell)
        case Move.CRASH:
            fail(cell)
        case Move.WAIT:
            pass
    return False


async def _finish_begun(cell: Cell) -> bool:
    """Await what was begun where it could not be awaited; whether it is handled now."""
    envelope, monotonic = cell.current, cell.of_kind.env.monotonic
    began = monotonic()
    if await resume(cell, began) is not HANDLED or envelope is None:
        return False
    cell.current = None
    count(cell.of_kind.counters.messages, type(envelope.message), monotonic() - began)
    return True


def _wanted(cell: Cell, envelope: Envelope) -> bool:
    timer, port = envelope.timer, envelope.port
    if timer is not None:
        envelope.timer = None
        return cell.attachments is not None and cell.attachments.claims(timer)
    if port is not None and port.overdue:
        # Nobody waits, and whoever asks again sends a new message: under load this is what sheds work.
        cell.of_kind.add_dead_letter(cell.name, envelope.message, Reason.EXPIRED)
        return False
    return True


def _admit(cell: Cell) -> None:
    while (envelope := cell.mailbox.admit()) is not None:
        port = envelope.port
        if isinstance(port, AdmissionPort):
            envelope.port = None
            port.set(None)
