"""The steps of an activation's life: start, crash, stop, end."""

from __future__ import annotations

import logging
from typing import Final

from sexton_engine.activation.cell import Cell, Phase, Wish
from sexton_engine.context import Ending, Terminated
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
    "obey",
    "refuse_all",
    "resume",
    "settle",
    "start",
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
    home = cell.home
    cell.phase = Phase.AWAKE
    home.books.activations += 1
    if home.outage:
        home.outage = False
        logger.info("%s is available again", home.kind)
    cell.arm_passivation()
    home.owner.started(cell)


def unavailable(cell: Cell, exc: Exception) -> None:
    """A transparent exception met the start or a child task.

    Those who ask now are told; the next message tries again.
    """
    home = cell.home
    if not home.outage:
        home.outage = True
        logger.warning("%s is unavailable: %r", home.kind, exc)
    cell.shed(exc)
    for envelope in cell.mailbox.drain():
        _answer(cell, envelope, exc, Reason.UNAVAILABLE)
    cell.wish, cell.failure = Wish.NONE, None
    cell.phase, cell.scheduled = Phase.ASLEEP, False
    home.mail.discard(cell)
    home.owner.unavailable(cell, exc)
    cell.tell_end()


def crash(cell: Cell, exc: BaseException) -> None:
    """The instance is lost. Its mail stays; the message it was handling is next again, or dead."""
    home = cell.home
    home.books.crashes += 1
    logger.error(
        "%s/%s crashed", home.kind, cell.name, exc_info=exc, extra={"actor": home.kind, "key": str(cell.name)}
    )
    _blame(cell, exc)
    error = ActorCrashed(f"{home.kind}/{cell.name} crashed: {exc!r}")
    error.__cause__ = exc
    cell.shed(error)
    wish, cell.wish, cell.failure = cell.wish, Wish.NONE, None
    cell.phase = Phase.SUSPENDED
    match wish:
        case Wish.SUSPEND | Wish.KILL_KEEPING_MAIL:
            _suspended(cell)
        case Wish.STOP:
            home.owner.finished(cell, Ending.STOPPED)
        case Wish.KILL:
            home.owner.finished(cell, Ending.KILLED)
        case Wish.NONE | Wish.PASSIVATE | Wish.FAIL:
            home.owner.crashed(cell, exc)
    cell.tell_end()


def _blame(cell: Cell, exc: BaseException) -> None:
    envelope, cell.current = cell.current, None
    if envelope is None:
        return
    envelope.crashes += 1
    if envelope.crashes < DELIVERIES_MAX:
        cell.mailbox.put_back(envelope)
        return
    cell.home.bury(cell.name, envelope.message, Reason.CRASHED)
    if envelope.port is not None:
        error = ActorCrashed(
            f"{cell.home.kind}/{cell.name} crashed on {type(envelope.message).__name__}: {exc!r}"
        )
        error.__cause__ = exc
        envelope.port.set_exception(error)


async def obey(cell: Cell) -> bool:
    """Do what is wished of it besides its messages; whether it may go on handling messages."""
    wish = cell.wish
    if wish is Wish.PASSIVATE and not (cell.holds_nothing() and _agrees(cell)):
        cell.wish = Wish.NONE
        cell.arm_passivation()
        return cell.phase is Phase.AWAKE
    if wish is Wish.FAIL:
        fail(cell)
        return False
    if wish not in {Wish.KILL, Wish.KILL_KEEPING_MAIL}:
        await _run_on_stop(cell)
    if cell.wish is not Wish.NONE:  # a hook that crashed has settled it already
        settle(cell)
    return False


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
        logger.exception("on_stop of %s/%s failed", cell.home.kind, cell.name)


def settle(cell: Cell) -> None:
    """The instance has stopped, or was killed, as ``cell.wish`` says: let go of it."""
    wish, cell.wish, cell.failure = cell.wish, Wish.NONE, None
    home = cell.home
    match wish:
        case Wish.PASSIVATE:
            home.books.passivations += 1
            _passivated(cell)
        case Wish.SUSPEND | Wish.KILL_KEEPING_MAIL:
            _interrupted_message_waits(cell)
            cell.shed(ActorStopped(f"{home.kind}/{cell.name} is restarted"))
            cell.phase = Phase.SUSPENDED
            _suspended(cell)
        case Wish.STOP | Wish.KILL | Wish.FAIL | Wish.NONE:
            _interrupted_message_dies(cell)
            cell.shed(ActorStopped(f"{home.kind}/{cell.name} was stopped"))
            cell.phase = Phase.SUSPENDED
            home.owner.finished(cell, Ending.KILLED if wish is Wish.KILL else Ending.STOPPED)
    cell.tell_end()


def _interrupted_message_waits(cell: Cell) -> None:
    if cell.current is not None:
        _blame(cell, ActorStopped("killed while it handled the message"))


def _interrupted_message_dies(cell: Cell) -> None:
    envelope, cell.current = cell.current, None
    if envelope is not None:
        _answer(cell, envelope, ActorStopped(f"{cell.home.kind}/{cell.name} was killed"), Reason.STOPPED)


def _suspended(cell: Cell) -> None:
    if cell.resume_wanted:
        cell.resume_wanted = False
        resume(cell)


def _passivated(cell: Cell) -> None:
    if len(cell.mailbox) == 0:
        end(cell, Ending.PASSIVATED)
        return
    # Mail came while on_stop ran: this life is over, the next begins with the mail.
    cell.shed(ActorStopped(f"{cell.home.kind}/{cell.name} was passivated"))
    _tell_watchers(cell, Ending.PASSIVATED)
    cell.phase = Phase.ASLEEP


def resume(cell: Cell) -> None:
    """Let a suspended activation start again, with the mail it has."""
    if cell.worker is not None and cell.phase is not Phase.SUSPENDED:
        cell.resume_wanted = True  # what it did was cancelled, but has not come to its end
    elif cell.phase is Phase.SUSPENDED:
        cell.phase = Phase.ASLEEP
        cell.wake()


def kill(cell: Cell, wish: Wish) -> None:
    """End it now; a handler is cancelled, ``on_stop`` is not run."""
    if cell.phase is not Phase.OVER and not cell.interrupt(wish):
        settle(cell)


def end(cell: Cell, ending: Ending) -> None:
    """The activation is over: its mail dies, its watchers are told, its place in the directory is free."""
    home = cell.home
    crashed = ending is Ending.CRASHED
    error = (ActorCrashed if crashed else ActorStopped)(f"{home.kind}/{cell.name} ended: {ending.value}")
    cell.phase = Phase.OVER
    cell.shed(error)
    if home.cells.get(cell.name) is cell:
        del home.cells[cell.name]
    home.mail.discard(cell)
    for table in (home.cells, home.mail):
        if not table:
            table.clear()  # emptied one by one, the tables would keep their size for ever
    home.env.deadlines.cancel(cell)
    refuse_all(cell, error, Reason.GIVEN_UP if crashed else Reason.STOPPED)
    _tell_watchers(cell, ending)
    cell.tell_end()


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
    cell.home.bury(cell.name, envelope.message, reason)
    if port is not None and not port.is_expired:
        port.set_exception(error)


def _tell_watchers(cell: Cell, ending: Ending) -> None:
    terminated = Terminated(cell.home.kind, cell.name, ending)
    for watcher in cell.take_watchers():
        watcher.announce(terminated)
