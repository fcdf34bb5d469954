"""The reply port: how an answer gets back to its asker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import outcome
import trio

from sexton_engine.errors import AskTimeout
from sexton_engine.mail.deadlines import NEVER, Deadlines

__all__ = ["DEFERRED", "AdmissionPort", "AskPort", "Deferred", "NobodyPort", "ReplyPort"]


class Deferred:
    """The type of ``DEFERRED``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "DEFERRED"


DEFERRED: Final = Deferred()
"""What ``on_receive`` returns after ``context.defer()``: the reply will come by the port."""


class ReplyPort:
    """Takes exactly one reply; the first counts, later ones are dropped and counted."""

    __slots__ = ("keeper", "overdue")

    keeper: set[ReplyPort] | None
    """The open deferred replies of the actor that took this one over; it leaves them when settled."""
    overdue: bool
    """Whether the deadline itself has passed, so that the message need not be handled at all."""

    def __init__(self) -> None:
        self.keeper = None
        self.overdue = False

    @property
    def is_expired(self) -> bool:
        """Whether nobody waits for the reply any more."""
        raise NotImplementedError

    @property
    def deadline(self) -> float:
        """The moment, on the engine's clock in seconds, after which nobody waits."""
        return NEVER

    def set(self, value: Any) -> bool:
        """Reply; ``False`` if nobody waited for it any more."""
        return self._settle(outcome.Value(value), value)

    def set_exception(self, exc: BaseException) -> bool:
        """Have the exception raised where the question was asked; ``False`` if nobody waited."""
        return self._settle(outcome.Error(exc), exc)

    def _settle(self, result: outcome.Outcome[Any], what: Any) -> bool:
        raise NotImplementedError

    def _leave_keeper(self) -> None:
        if self.keeper is not None:
            self.keeper.discard(self)
            self.keeper = None


class NobodyPort(ReplyPort):
    """Stands in when a message that was told, not asked, is deferred."""

    __slots__ = ()

    @property
    def is_expired(self) -> bool:
        """Nobody ever waits here."""
        return True

    def _settle(self, result: outcome.Outcome[Any], what: Any) -> bool:
        del result, what
        self._leave_keeper()
        return False


class AskPort(ReplyPort):
    """Wakes the one task that asked, or tells it that the deadline has passed.

    Is itself the entry in the heap of deadlines, so an ask costs one object.
    """

    __slots__ = ("_deadlines", "_late", "_parked", "_result", "_task", "_until", "due")

    def __init__(
        self, task: trio.lowlevel.Task, until: float, deadlines: Deadlines, late: Callable[[Any], None]
    ) -> None:
        self.keeper = None
        self._task: trio.lowlevel.Task | None = task
        self._deadlines = deadlines
        self._late = late
        self.overdue = False
        self._parked = False
        self._result: outcome.Outcome[Any] | None = None
        self._until = until
        self.due = until
        deadlines.arm(self)

    @property
    def is_expired(self) -> bool:
        """Whether the asker was answered, was cancelled, or has run out of time."""
        return self._task is None

    @property
    def deadline(self) -> float:
        """When the asker runs out of time."""
        return self._until

    def set(self, value: Any) -> bool:
        """Reply; ``False`` if nobody waited for it any more."""
        # The same as in the base class, written out: every ask passes here.
        task = self._task
        if task is None:
            self._late(value)
            return False
        self._task = None
        self._deadlines.cancel(self)
        if self.keeper is not None:
            self._leave_keeper()
        if self._parked:
            trio.lowlevel.reschedule(task, outcome.Value(value))
        else:
            self._result = outcome.Value(value)
        return True

    def wait(self) -> Awaitable[Any]:
        """Park the asking task until the reply, the deadline or a cancellation; to be awaited at once."""
        if self._result is not None:  # settled before anybody waited
            return _told(self._result)
        self._parked = True
        return trio.lowlevel.wait_task_rescheduled(self._abandon)  # noqa: ASYNC105 - a layer less in each ask

    def withdraw(self) -> None:
        """Forget the question; for an asker whose message was not taken in."""
        self._task = None
        self._deadlines.cancel(self)
        self._leave_keeper()

    def fire(self, now: float) -> None:
        """The deadline has passed."""
        del now
        self.due = NEVER
        self.overdue = True
        task, self._task = self._task, None
        self._leave_keeper()
        if task is not None:
            self._wake(task, outcome.Error(AskTimeout("no reply before the deadline")))

    def _wake(self, task: trio.lowlevel.Task, result: outcome.Outcome[Any]) -> None:
        if self._parked:
            trio.lowlevel.reschedule(task, result)
        else:
            self._result = result

    def _abandon(self, _raise_cancel: object) -> trio.lowlevel.Abort:
        self.withdraw()
        return trio.lowlevel.Abort.SUCCEEDED

    def _settle(self, result: outcome.Outcome[Any], what: Any) -> bool:
        task = self._task
        if task is None:
            self._late(what)
            return False
        self._task = None
        self._deadlines.cancel(self)
        if self.keeper is not None:
            self._leave_keeper()
        self._wake(task, result)
        return True


async def _told(result: outcome.Outcome[Any]) -> Any:
    return result.unwrap()


class AdmissionPort(ReplyPort):
    """Wakes a task that waits for its message to be taken in, not for a reply to it."""

    __slots__ = ("_task",)

    def __init__(self, task: trio.lowlevel.Task) -> None:
        super().__init__()
        self._task: trio.lowlevel.Task | None = task

    @property
    def is_expired(self) -> bool:
        """Whether the sender has gone."""
        return self._task is None

    async def wait(self) -> None:
        """Park until the message is taken in or refused."""
        await trio.lowlevel.wait_task_rescheduled(self._leave)

    def _leave(self, _raise_cancel: object) -> trio.lowlevel.Abort:
        self._task = None
        return trio.lowlevel.Abort.SUCCEEDED

    def _settle(self, result: outcome.Outcome[Any], what: Any) -> bool:
        del what
        task, self._task = self._task, None
        if task is not None:
            trio.lowlevel.reschedule(task, result)
        return task is not None
