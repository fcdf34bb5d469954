"""The steps of an activation's life: start, crash, stop, end."""

from __future__ import annotations

import logging
from typing import Final

from sexton_engine.activation.cell import Cell
from sexton_engine.activation.phase import Phase, Request
from sexton_engine.activation.watches import tell_watchers
from sexton_engine.context import Ending
from sexton_engine.errors import ActorCrashed, ActorStopped
from sexton_engine.mail.dead_letters import Reason
from sexton_engine.mail.mailbox import Envelope
from sexton_engine.pykka_bridge.trio_actor import called

__all__ = [
    "DELIVERIES_MAX",
    "crash",
    "end",
    "fail",
    "kill",
    "refuse_all",
    "restart",
    "resume",
    "settle",
    "sleep_or_stay",
    "start",
    "stop",
    "unavailable",
]

DELIVERIES_MAX: Final = 2
"""How often a message is delivered when it crashes the actor: once more after the first crash."""

logger = logging.getLogger("sexton_engine")


async def start(cell: Cell) -> bool:
    """Make an instance if there is none and run ``on_start``; whether it is awake afterwards."""
    cell.phase = Phase.STARTING
    actor = cell.actor
    try:
        if actor is None:
            actor = cell.construct()
        await called(actor.on_start)
    except Exception as exc:  # noqa: BLE001 - whatever goes wrong in an actor is its supervisor's affair
        if actor is not None and isinstance(exc, actor.transparent):
            unavailable(cell, exc)
        else:
            crash(cell, exc)
        return False
    _awake(cell)
    return True


def _awake(cell: Cell) -> None:
    kind = cell.of_kind
    cell.phase = Phase.AWAKE
    kind.counters.activations += 1
    if kind.outage:
        kind.outage = False
        logger.info("%s is available again", kind.name)
    cell.arm_passivation()
    kind.owner.started(cell)


def unavailable(cell: Cell, exc: Exception) -> None:
    """A transparent exception met the start or a child task.

    Those who ask now are told; the next message tries again.
    """
    kind = cell.of_kind
    if not kind.outage:
        kind.outage = True
        logger.warning("%s is unavailable: %r", kind.name, exc)
    cell.drop_instance(exc)
    for envelope in cell.mailbox.drain():
        _answer(cell, envelope, exc, Reason.UNAVAILABLE)
    cell.requested, cell.failure = Request.NONE, None
    cell.phase, cell.scheduled = Phase.ASLEEP, False
    kind.mail.discard(cell)
    kind.owner.unavailable(cell, exc)
    cell.announce_end()


def crash(cell: Cell, exc: BaseException) -> None:
    """The instance is lost. Its mail stays; the message it was handling is next again, or dead."""
    kind = cell.of_kind
    kind.counters.crashes += 1
    logger.error(
        "%s/%s crashed", kind.name, cell.name, exc_info=exc, extra={"actor": kind.name, "key": str(cell.name)}
    )
    handled = None if cell.current is None else type(cell.current.message).__name__
    kind.env.crashes.add(kind.name, cell.name, exc, handled, kind.env.monotonic())
    _blame(cell, exc)
    error = ActorCrashed(f"{kind.name}/{cell.name} crashed: {exc!r}")
    error.__cause__ = exc
    cell.drop_instance(error)
    request, cell.requested, cell.failure = cell.requested, Request.NONE, None
    cell.phase = Phase.SUSPENDED
    match request:
        case Request.SUSPEND | Request.KILL_KEEPING_MAIL:
            _suspended(cell)
        case Request.STOP:
            kind.owner.finished(cell, Ending.STOPPED)
        case Request.KILL:
            kind.owner.finished(cell, Ending.KILLED)
        case Request.NONE | Request.PASSIVATE | Request.FAIL:
            kind.owner.crashed(cell, exc)
    cell.announce_end()


def _blame(cell: Cell, exc: BaseException) -> None:
    envelope, cell.current = cell.current, None
    if envelope is None:
        return
    envelope.crashes += 1
    if envelope.crashes < DELIVERIES_MAX:
        cell.mailbox.put_back(envelope)
        return
    cell.of_kind.add_dead_letter(cell.name, envelope.message, Reason.CRASHED)
    if envelope.port is not None:
        error = ActorCrashed(
            f"{cell.of_kind.name}/{cell.name} crashed on {type(envelope.message).__name__}: {exc!r}"
        )
        error.__cause__ = exc
        envelope.port.set_exception(error)


async def sleep_or_stay(cell: Cell) -> bool:
    """Put the actor to sleep if it is idle and agrees; whether it stays awake instead."""
    if cell.holds_nothing() and _agrees(cell):
        await stop(cell)
        return False
    cell.requested = Request.NONE
    cell.arm_passivation()
    return cell.phase is Phase.AWAKE


async def stop(cell: Cell) -> None:
    """Run ``on_stop`` and let go of the instance, as ``cell.requested`` says."""
    await _run_on_stop(cell)
    if cell.requested is not Request.NONE:  # a hook that crashed has settled it already
        settle(cell)


def _agrees(cell: Cell) -> bool:
    try:
        return cell.actor is None or cell.actor.passivatable()
    except Exception as exc:  # noqa: BLE001 - a crash as any other
        crash(cell, exc)
        return False


def fail(cell: Cell) -> None:
    """A child task has crashed: so has the actor, unless the exception is transparent."""
    failure = cell.failure
    if (
        cell.actor is not None
        and isinstance(failure, cell.actor.transparent)
        and isinstance(failure, Exception)
    ):
        if cell.current is not None:
            _answer(cell, cell.current, failure, Reason.UNAVAILABLE)
            cell.current = None
        unavailable(cell, failure)
    else:
        crash(cell, failure or RuntimeError("a child task failed"))


async def _run_on_stop(cell: Cell) -> None:
    actor = cell.actor
    if actor is None or cell.phase is not Phase.AWAKE:
        return
    cell.phase = Phase.STOPPING
    try:
        await called(actor.on_stop)
    except Exception:
        # As in pykka: logged, and the actor ends all the same.
        logger.exception("on_stop of %s/%s failed", cell.of_kind.name, cell.name)


def settle(cell: Cell) -> None:
    """The instance has stopped, or was killed, as ``cell.requested`` says: let go of it."""
    request, cell.requested, cell.failure = cell.requested, Request.NONE, None
    kind = cell.of_kind
    match request:
        case Request.PASSIVATE:
            kind.counters.passivations += 1
            _passivated(cell)
        case Request.SUSPEND | Request.KILL_KEEPING_MAIL:
            _interrupted_message_waits(cell)
            cell.drop_instance(ActorStopped(f"{kind.name}/{cell.name} is restarted"))
            cell.phase = Phase.SUSPENDED
            _suspended(cell)
        case Request.STOP | Request.KILL | Request.FAIL | Request.NONE:
            _interrupted_message_dies(cell)
            cell.drop_instance(ActorStopped(f"{kind.name}/{cell.name} was stopped"))
            cell.phase = Phase.SUSPENDED
            kind.owner.finished(cell, Ending.KILLED if request is Request.KILL else Ending.STOPPED)
    cell.announce_end()


def _interrupted_message_waits(cell: Cell) -> None:
    if cell.current is not None:
        _blame(cell, ActorStopped("killed while it handled the message"))


def _interrupted_message_dies(cell: Cell) -> None:
    envelope, cell.current = cell.current, None
    if envelope is not None:
        _answer(cell, envelope, ActorStopped(f"{cell.of_kind.name}/{cell.name} was killed"), Reason.STOPPED)


def _suspended(cell: Cell) -> None:
    if cell.resume_wanted:
        cell.resume_wanted = False
        resume(cell)


def _passivated(cell: Cell) -> None:
    if len(cell.mailbox) == 0:
        end(cell, Ending.PASSIVATED)
        return
    # Mail came while on_stop ran: this life is over, the next begins with the mail.
    cell.drop_instance(ActorStopped(f"{cell.of_kind.name}/{cell.name} was passivated"))
    tell_watchers(cell, Ending.PASSIVATED)
    cell.phase = Phase.ASLEEP


def resume(cell: Cell) -> None:
    """Let a suspended activation start again, with the mail it has."""
    if cell.worker is not None and cell.phase is not Phase.SUSPENDED:
        cell.resume_wanted = True  # what it did was cancelled, but has not come to its end
    elif cell.phase is Phase.SUSPENDED:
        cell.phase = Phase.ASLEEP
        cell.wake()


def restart(cell: Cell) -> bool:
    """Have it stop after the message being handled, and start again with its mail; whether it will."""
    if cell.phase is not Phase.AWAKE or cell.requested > Request.PASSIVATE:
        return False
    cell.request(Request.SUSPEND)
    cell.resume_wanted = True
    return True


def kill(cell: Cell, request: Request) -> None:
    """End it now; a handler is cancelled, ``on_stop`` is not run."""
    if cell.phase is not Phase.OVER and not cell.interrupt(request):
        settle(cell)


def end(cell: Cell, ending: Ending) -> None:
    """The activation is over: its mail dies, its watchers are told, its place in the directory is free."""
    kind = cell.of_kind
    crashed = ending is Ending.CRASHED
    error = (ActorCrashed if crashed else ActorStopped)(f"{kind.name}/{cell.name} ended: {ending.value}")
    cell.phase = Phase.OVER
    cell.drop_instance(error)
    if kind.cells.get(cell.name) is cell:
        del kind.cells[cell.name]
    kind.mail.discard(cell)
    for table in (kind.cells, kind.mail):
        if not table:
            table.clear()  # emptied one by one, the tables would keep their size for ever
    kind.env.deadlines.cancel(cell)
    refuse_all(cell, error, Reason.GIVEN_UP if crashed else Reason.STOPPED)
    tell_watchers(cell, ending)
    cell.announce_end()


def refuse_all(cell: Cell, error: Exception, reason: Reason) -> None:
    """Bury all mail."""
    for envelope in cell.mailbox.drain():
        _answer(cell, envelope, error, reason)


def _answer(cell: Cell, envelope: Envelope, error: Exception, reason: Reason) -> None:
    port = envelope.port
    if envelope.timer is not None:
        return  # the timer died with its instance
    if port is not None and reason is Reason.UNAVAILABLE:
        port.set_exception(error)
        return
    cell.of_kind.add_dead_letter(cell.name, envelope.message, reason)
    if port is not None and not port.is_expired:
        port.set_exception(error)
