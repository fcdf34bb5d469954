"""The leaves of the supervision tree: singletons and families of actors."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Final

import trio

from sexton_engine.activation.cell import Cell
from sexton_engine.activation.context_cell import ContextCell
from sexton_engine.activation.kind import Environment, Kind
from sexton_engine.activation.lifecycle import end, kill, restart, resume
from sexton_engine.activation.phase import Phase, Request
from sexton_engine.context import Ending
from sexton_engine.errors import ActorStopped
from sexton_engine.spec import ActorSpec, Backoff, FamilySpec, Restart
from sexton_engine.statistics import TreeNode
from sexton_engine.supervision.strategy import delay, restarts, within

__all__ = ["KILL_GRACE_S", "SINGLETON_KEY", "FamilyNode", "Node", "NodeListener", "SingletonNode"]

SINGLETON_KEY: Final = ""
"""The key of an actor that exists once."""

KILL_GRACE_S: Final = 1.0
"""Seconds that a killed actor has to let go; one that shields itself is then left behind."""

logger = logging.getLogger("sexton_engine")


class NodeListener(ABC):
    """The supervisor above a node."""

    __slots__ = ()

    @abstractmethod
    def child_started(self, node: Node) -> None:
        """It is up."""

    @abstractmethod
    def child_crashed(self, node: Node, exc: BaseException) -> None:
        """It is down; its mail waits."""

    @abstractmethod
    def child_restart_wanted(self, node: Node) -> None:
        """Somebody wants it to start again."""

    @abstractmethod
    def child_finished(self, node: Node) -> None:
        """It has stopped by itself; its mail waits."""


class Node(ABC):
    """A child of a supervisor."""

    name: str
    restart: Restart
    restarts: int

    @abstractmethod
    def begin(self) -> None:
        """Start, or start again, with the mail that waits; the listener is told when it is up."""

    @abstractmethod
    async def stop(self, *, keep_mail: bool) -> None:
        """Stop within the shutdown budget, then kill. May be called again, and when it is down already."""

    @abstractmethod
    def kill(self, *, keep_mail: bool) -> None:
        """End everything below now."""

    @abstractmethod
    def close(self) -> None:
        """It will not begin again: its mail dies, and new mail is refused."""

    @abstractmethod
    def tree(self) -> TreeNode:
        """What is to be seen of it."""


class Retry:
    """A deadline at which something is done once more."""

    __slots__ = ("_action", "due")

    def __init__(self, due: float, action: Callable[[], None]) -> None:
        self.due = due
        self._action = action

    def fire(self, now: float) -> None:
        """Do it."""
        del now
        self._action()


class SingletonNode(Node):
    """An actor that exists once. It starts with its supervisor, and the supervisor restarts it."""

    def __init__(
        self, spec: ActorSpec, env: Environment[Cell], listener: NodeListener, backoff: Backoff
    ) -> None:
        self.name = spec.kind
        self.restart = spec.restart
        self.restarts = 0
        self.of_kind: Kind[Cell] = Kind(
            spec.kind, spec.start, env, self, shutdown_s=spec.shutdown_s, idle_s=None
        )
        self.of_kind.paused = True  # mail that comes before its turn in the order of start waits
        self._spec = spec
        self._listener = listener
        self._backoff = backoff
        self._unavailable = 0
        self._cell: Cell = ContextCell(self.of_kind, SINGLETON_KEY)
        self.of_kind.cells[SINGLETON_KEY] = self._cell

    def begin(self) -> None:
        """Wake the actor."""
        self.of_kind.paused = False
        if self._cell.phase is Phase.ASLEEP:
            self._cell.wake()
        else:
            resume(self._cell)

    async def stop(self, *, keep_mail: bool) -> None:
        """Stop after the message being handled, or kill when the budget is used up."""
        self._prepare_end(keep_mail=keep_mail)
        ask_to_end(self._cell, keep_mail=keep_mail)
        with trio.move_on_after(self._spec.shutdown_s):
            await self._cell.wait_end()
            return
        logger.warning("%s did not stop within %s s and is killed", self.name, self._spec.shutdown_s)
        self.kill(keep_mail=keep_mail)
        with trio.move_on_after(KILL_GRACE_S):
            await self._cell.wait_end()

    def kill(self, *, keep_mail: bool) -> None:
        """Cancel what it does."""
        self._prepare_end(keep_mail=keep_mail)
        kill(self._cell, Request.KILL_KEEPING_MAIL if keep_mail else Request.KILL)

    def _prepare_end(self, *, keep_mail: bool) -> None:
        self.of_kind.paused = True
        if not keep_mail:
            self.of_kind.closed = True

    def close(self) -> None:
        """Refuse mail from now on."""
        self.of_kind.closed = True
        if self._cell.phase is not Phase.OVER:
            end(self._cell, Ending.STOPPED)

    def tree(self) -> TreeNode:
        """The actor."""
        return TreeNode(
            name=self.name,
            role="actor",
            state=self._cell.phase.value,
            restart=self.restart.value,
            strategy=None,
            restarts=self.restarts,
            live=int(self._cell.actor is not None),
            mailbox_depth=len(self._cell.mailbox),
            mailbox_age_s=mail_age_s(self.of_kind),
        )

    # --- the actor's owner -------------------------------------------------------------------------------

    def started(self, cell: Cell) -> None:
        """Hand on."""
        del cell
        self._unavailable = 0
        self._listener.child_started(self)

    def unavailable(self, cell: Cell, exc: Exception) -> None:
        """Try again later, or with the next message; the supervisor need not wait for it."""
        del exc
        env = self.of_kind.env
        wait_s = delay(self._backoff, self._unavailable, env.rng.random())
        self._unavailable += 1
        env.deadlines.arm(Retry(env.monotonic() + wait_s, cell.wake))
        self._listener.child_started(self)

    def crashed(self, cell: Cell, exc: BaseException) -> None:
        """Hand on."""
        del cell
        self._listener.child_crashed(self, exc)

    def restart_wanted(self, cell: Cell) -> bool:
        """Hand on: others may have to go down with it."""
        if cell.phase is not Phase.AWAKE:
            return False
        self._listener.child_restart_wanted(self)
        return True

    def finished(self, cell: Cell, ending: Ending) -> None:
        """Hand on, if it was not the supervisor who wanted it."""
        if self.of_kind.closed or not restarts(self.restart, crashed=False):
            self.of_kind.closed = True
            end(cell, ending)
        if not self.of_kind.paused:
            self._listener.child_finished(self)


class FamilyNode(Node):
    """All actors of one kind, activated by key. It restarts them itself, key by key, and never fails."""

    def __init__(
        self, spec: FamilySpec, env: Environment[Cell], listener: NodeListener, backoff: Backoff
    ) -> None:
        self.name = spec.kind
        # What becomes of the family as a whole in a group restart; `spec.restart` is about its keys.
        self.restart = Restart.PERMANENT
        self.restarts = 0
        self.of_kind: Kind[Cell] = Kind(
            spec.kind, spec.start, env, self, shutdown_s=spec.shutdown_s, idle_s=spec.idle_s
        )
        self.of_kind.paused = True
        self._spec = spec
        self._listener = listener
        self._backoff = backoff

    def activate(self, key: Hashable) -> Cell:
        """A new activation, of a key that has none; raises ``ActorStopped`` once the family is closed."""
        if self.of_kind.closed:
            msg = f"{self.name} is stopped"
            raise ActorStopped(msg)
        cell: Cell = ContextCell(self.of_kind, key)
        self.of_kind.cells[key] = cell
        if not self.of_kind.mailbox_known:
            with suppress(
                Exception
            ):  # what is wrong with the factory shows again, as a crash, in the first turn
                cell.construct()
        return cell

    def begin(self) -> None:
        """Let the keys that have mail run."""
        self.of_kind.paused = False
        for cell in list(self.of_kind.mail):
            if cell.phase is Phase.SUSPENDED:
                resume(cell)
            else:
                cell.wake()
        self._listener.child_started(self)

    async def stop(self, *, keep_mail: bool) -> None:
        """Stop all at once, and kill those that have not stopped within the budget."""
        self._prepare_end(keep_mail=keep_mail)
        for cell in list(self.of_kind.cells.values()):
            ask_to_end(cell, keep_mail=keep_mail)
        with trio.move_on_after(self._spec.shutdown_s) as budget:
            await self._wait_ends()
        if budget.cancelled_caught:
            logger.warning("%s did not stop within %s s and is killed", self.name, self._spec.shutdown_s)
            self.kill(keep_mail=keep_mail)
            with trio.move_on_after(KILL_GRACE_S):
                await self._wait_ends()
        self._end_those_without_mail()

    async def _wait_ends(self) -> None:
        for cell in list(self.of_kind.cells.values()):
            await cell.wait_end()

    def _end_those_without_mail(self) -> None:
        for cell in list(self.of_kind.cells.values()):
            if cell.phase is Phase.SUSPENDED and not cell.mailbox:
                end(cell, Ending.STOPPED)

    def kill(self, *, keep_mail: bool) -> None:
        """Cancel what they do."""
        self._prepare_end(keep_mail=keep_mail)
        for cell in list(self.of_kind.cells.values()):
            kill(cell, Request.KILL_KEEPING_MAIL if keep_mail else Request.KILL)

    def _prepare_end(self, *, keep_mail: bool) -> None:
        self.of_kind.paused = True
        if not keep_mail:
            self.of_kind.closed = True

    def close(self) -> None:
        """Refuse mail from now on."""
        self.of_kind.closed = True
        for cell in list(self.of_kind.cells.values()):
            end(cell, Ending.STOPPED)

    def tree(self) -> TreeNode:
        """The family as one node; its keys are not listed."""
        return TreeNode(
            name=self.name,
            role="family",
            state="held" if self.of_kind.paused else "open",
            restart=self._spec.restart.value,
            strategy=None,
            restarts=self.restarts,
            live=len(self.of_kind.cells),
            mailbox_depth=sum(len(cell.mailbox) for cell in self.of_kind.mail),
            mailbox_age_s=mail_age_s(self.of_kind),
        )

    # --- the actors' owner -------------------------------------------------------------------------------

    def started(self, cell: Cell) -> None:
        """Nothing waits for it."""

    def unavailable(self, cell: Cell, exc: Exception) -> None:
        """Free it; the next message tries again."""
        del exc
        end(cell, Ending.STOPPED)

    def crashed(self, cell: Cell, exc: BaseException) -> None:
        """Restart it after a back-off, or give the key up."""
        self._restart_or_end(
            cell, Ending.CRASHED, again=restarts(self._spec.restart, crashed=True), cause=exc
        )

    def restart_wanted(self, cell: Cell) -> bool:
        """Restart the one key."""
        if not restart(cell):
            return False
        self.restarts += 1
        self.of_kind.counters.restarts += 1
        return True

    def finished(self, cell: Cell, ending: Ending) -> None:
        """Restart it if it is permanent."""
        again = restarts(self._spec.restart, crashed=False) and not self.of_kind.closed
        self._restart_or_end(cell, ending, again=again, cause=None)

    def _restart_or_end(
        self, cell: Cell, ending: Ending, *, again: bool, cause: BaseException | None
    ) -> None:
        kind = self.of_kind
        if not again:
            end(cell, ending)
            return
        now = kind.env.monotonic()
        counted = within(self._spec.intensity, cell.crashed_at or (), now)
        if counted is None:
            kind.counters.escalations += 1
            logger.error(
                "%s/%s is given up: more than %s", self.name, cell.name, self._spec.intensity, exc_info=cause
            )
            end(cell, Ending.CRASHED)
            return
        cell.crashed_at = counted
        kind.counters.restarts += 1
        self.restarts += 1
        wait_s = delay(self._backoff, len(counted) - 1, kind.env.rng.random())
        kind.env.deadlines.arm(Retry(now + wait_s, lambda: resume(cell)))


def ask_to_end(cell: Cell, *, keep_mail: bool) -> None:
    """Have it stop after the message being handled; one that waits for a restart is at rest already."""
    if cell.phase is not Phase.SUSPENDED:
        cell.request(Request.SUSPEND if keep_mail else Request.STOP)
    elif not keep_mail:
        end(cell, Ending.STOPPED)


def mail_age_s(kind: Kind[Cell]) -> float:
    """How long the oldest waiting message of the kind has waited, in seconds."""
    oldest = [at for cell in kind.mail if (at := cell.mailbox.oldest_at()) is not None]
    return kind.env.monotonic() - min(oldest) if oldest else 0.0
