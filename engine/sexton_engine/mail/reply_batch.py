"""The replies to many questions of one task: one deadline, and one waking when the last has come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import outcome
import trio

from sexton_engine.errors import AskTimeout
from sexton_engine.mail.deadlines import NEVER, Deadlines
from sexton_engine.mail.reply import ReplyPort

__all__ = ["BatchPort", "ReplyBatch"]


class ReplyBatch:
    """Has a place for each question, which holds its port until it is answered and its reply from then on.

    It is itself the entry in the heap of deadlines, from the first question that has to wait.
    """

    __slots__ = ("_deadlines", "_task", "due", "fault", "parked", "replies", "until", "waiting")

    def __init__(self, task: trio.lowlevel.Task, until: float, deadlines: Deadlines, size: int) -> None:
        self.replies: list[Any] = [None] * size
        self.fault: BaseException | None = None
        """What ends the asking as a whole: no reply, and no exception that would stand in place of one."""
        self.until = until
        self.due = NEVER
        self._task = task
        self._deadlines = deadlines
        self.waiting = 0
        """Questions that are open."""
        self.parked = False

    def open_port(self, place: int, late: Callable[[Any], None]) -> BatchPort:
        """A port for a question whose reply comes later; ``late`` counts what comes too late."""
        port = self.replies[place] = BatchPort(self, place, late)
        if not self.waiting and self.due == NEVER:
            self.due = self.until
            self._deadlines.arm(self)
        self.waiting += 1
        return port

    async def wait(self) -> list[Any]:
        """The replies, exceptions in place of those that failed, once no question is open any more."""
        if self.waiting:
            self.parked = True
            await trio.lowlevel.wait_task_rescheduled(self._abandon)
        else:
            self._deadlines.cancel(self)
        if self.fault is not None:
            raise self.fault
        return self.replies

    def wake(self) -> None:
        """The last reply has come."""
        self._deadlines.cancel(self)
        trio.lowlevel.reschedule(self._task)

    def fire(self, now: float) -> None:
        """The deadline has passed, for all that are open."""
        del now
        self.due = NEVER
        for port in self._open_ports():
            port.overdue = True
            self.replies[port.place] = AskTimeout("no reply before the deadline")
            port.expire()
        self.waiting = 0
        if self.parked:
            trio.lowlevel.reschedule(self._task)

    def withdraw(self) -> None:
        """Forget all questions that are open."""
        self._deadlines.cancel(self)
        for port in self._open_ports():
            port.expire()
        self.waiting = 0

    def _open_ports(self) -> list[BatchPort]:
        return [reply for reply in self.replies if type(reply) is BatchPort and not reply.is_expired]

    def _abandon(self, _raise_cancel: object) -> trio.lowlevel.Abort:
        self.withdraw()
        return trio.lowlevel.Abort.SUCCEEDED


class BatchPort(ReplyPort):
    """Takes the reply to one question of a batch."""

    __slots__ = ("_batch", "_late", "place")

    def __init__(self, batch: ReplyBatch, place: int, late: Callable[[Any], None]) -> None:
        self.keeper = None
        self.overdue = False
        self.place = place
        self._batch: ReplyBatch | None = batch
        self._late = late

    @property
    def is_expired(self) -> bool:
        """Whether it was answered, or nobody waits any more."""
        return self._batch is None

    @property
    def deadline(self) -> float:
        """When the asker runs out of time."""
        return NEVER if self._batch is None else self._batch.until

    def expire(self) -> None:
        """Take no reply from now on."""
        self._batch = None
        if self.keeper is not None:
            self._leave_keeper()

    def set(self, value: Any) -> bool:
        """Reply; ``False`` if nobody waited for it any more."""
        # Apart from the base class: every renewal of a batch passes here.
        batch = self._batch
        if batch is None:
            self._late(value)
            return False
        self._batch = None
        if self.keeper is not None:
            self._leave_keeper()
        batch.replies[self.place] = value
        batch.waiting -= 1
        if not batch.waiting and batch.parked:
            batch.wake()
        return True

    def _settle(self, result: outcome.Outcome[Any], what: Any) -> bool:
        del result  # Only ``set_exception`` comes here.
        batch = self._batch
        if batch is not None and not isinstance(what, Exception):
            batch.fault = what
        return self.set(what)
