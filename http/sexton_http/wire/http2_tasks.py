"""The tasks of an HTTP/2 connection: those that read and answer, and the one that waits for the kernel."""

import types
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from functools import partial
from typing import Any, Final, Generic, TypeVar

import trio
from ngh2 import Connection

from sexton_http.wire.http2_session import more_pieces
from sexton_http.wire.transport import Transport

T = TypeVar("T")

MAX_RESTING: Final = 16
"""At most this number of tasks of a connection wait for its next requests: to wake one is cheap."""


@types.coroutine
def until_it_waits(
    work: Coroutine[Any, Any, None], when_it_waits: Callable[[], None]
) -> Generator[Any, Any, bool]:
    """Run ``work`` in this task, and call ``when_it_waits`` before its first wait. Whether it has waited."""
    try:
        wait = work.send(None)
    except StopIteration:
        return False
    when_it_waits()
    while True:
        try:
            go_on = partial(work.send, (yield wait))
        except BaseException as fault:  # noqa: BLE001 - whatever it is, it is for whoever waits
            go_on = partial(work.throw, fault)
        try:
            wait = go_on()
        except StopIteration:
            return True


class Workers(Generic[T]):
    """Tasks of which one reads; each of the others does one job at a time, and waits a while for the next.

    The one that reads may do a job itself. Should it have to wait in that, it calls ``read_on``, and another
    reads in its place. So a job that waits for nothing costs no switch from one task to another.
    """

    __slots__ = ("_do", "_ended", "_jobs", "_nursery", "_read", "_resting")

    def __init__(
        self, nursery: trio.Nursery, do: Callable[[T], Awaitable[None]], read: Callable[[], Awaitable[None]]
    ) -> None:
        """``read`` returns when nothing more is to be read, or when another task reads."""
        self._nursery = nursery
        self._do = do
        self._read = read
        self._jobs: deque[T | None] = deque()
        """What a task was woken for, None being to read; whichever comes first takes it."""
        self._resting: list[trio.lowlevel.Task] = []
        self._ended = False

    async def run(self) -> None:
        """Read, in the task that calls this; afterwards it is one of them."""
        await self._work(None)

    def give(self, job: T) -> None:
        self._hand(job)

    def read_on(self) -> None:
        """Have another task read."""
        self._hand(None)

    def end(self) -> None:
        """Let those go that wait."""
        self._ended = True
        for task in self._resting:
            trio.lowlevel.reschedule(task)
        self._resting.clear()

    def _hand(self, job: T | None) -> None:
        if self._resting:
            self._jobs.append(job)
            trio.lowlevel.reschedule(self._resting.pop())
        else:
            self._nursery.start_soon(self._work, job)

    async def _work(self, job: T | None) -> None:
        while True:
            await (self._read() if job is None else self._do(job))
            if not (self._jobs or await self._rest()):
                return
            job = self._jobs.popleft()

    async def _rest(self) -> bool:
        """Whether there is another job; not so when another task has taken it."""
        if self._ended or len(self._resting) >= MAX_RESTING:
            return False
        task = trio.lowlevel.current_task()
        self._resting.append(task)

        def abort(_: object) -> trio.lowlevel.Abort:
            if task in self._resting:
                self._resting.remove(task)
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)
        return bool(self._jobs)


class Writer:
    """Gives the transport what it takes at once; what it does not, one task waits for."""

    __slots__ = ("_finished", "_has_work", "_task", "_transport", "_when_lost", "lost", "sent", "torn")

    def __init__(self, transport: Transport, when_lost: Callable[[], None]) -> None:
        """``when_lost`` is called when nothing can be sent any more."""
        self._transport = transport
        self._when_lost = when_lost
        self._finished = False
        self._has_work = False
        self._task: trio.lowlevel.Task | None = None
        self.torn = False
        """The kernel has taken a part of a write: the rest goes first, and nothing may be sent before it."""
        self.sent = 0
        """Bytes that the session had ready."""
        self.lost = False
        """No byte can be sent."""

    def send(self, data: bytes) -> None:
        """Not while ``torn``."""
        try:
            self.torn = not self._transport.send_now(data)
        except OSError:
            self._lose()
        if self.torn:
            self.wake()

    def send_pieces(self, pieces: Sequence[bytes]) -> None:
        """All of them in one write. Not while ``torn``."""
        try:
            self.torn = not self._transport.send_pieces_now(pieces)
        except OSError:
            self._lose()
        if self.torn:
            self.wake()

    def send_ready(self, session: Connection) -> None:
        """Send what ``session`` has, as much as the transport takes at once."""
        size = self._transport.piece_bytes
        while not (self.torn or self.lost):
            data = session.data_to_send(size)
            self.sent += len(data)
            if len(data) < size:
                if data:
                    self.send(data)
                break
            more = more_pieces(session, size)
            self.sent += sum(map(len, more))
            self.send_pieces((data, *more))
            if len(more[-1]) < size:
                break

    def wake(self) -> None:
        """Have the task do what is to be done, in the next turn of the loop."""
        if not self._has_work:
            self._has_work = True
            if self._task is not None:
                trio.lowlevel.reschedule(self._task)
                self._task = None

    def finish(self) -> None:
        """Send our end, after all that was sent before."""
        if not (self.torn or self.lost or self._finished):
            self._finished = True
            try:
                self._transport.finish()
            except OSError:
                self._lose()

    async def run(self, pump: Callable[[], bool]) -> None:
        """``pump`` sends what it can, and says whether there will be more."""
        goes_on = True
        while goes_on:
            if not self._has_work:
                await self._rest()
            self._has_work = False
            if self.torn:
                await self._flush()
            goes_on = pump()
        if self.torn and not self.lost:
            await self._flush()
        self.finish()

    async def _rest(self) -> None:
        self._task = trio.lowlevel.current_task()

        def abort(_: object) -> trio.lowlevel.Abort:
            self._task = None
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)

    async def _flush(self) -> None:
        try:
            # A write torn in two cannot be continued: it is finished or given up, never cancelled.
            with trio.CancelScope(shield=True):
                await self._transport.flush()
            self.torn = False
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError):
            self._lose()

    def _lose(self) -> None:
        self.lost = True
        self._when_lost()
