"""The way from trio to the asyncio thread that asyncpg lives on."""

import asyncio
import contextvars
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, Generic, TypeVar

import outcome
import trio
import uvloop

from sexton_storage.errors import StorageUnavailable

R = TypeVar("R")
YIELD_EVERY_S = 5e-4
"""How long trio's thread may keep the GIL from a query that could go on."""
YIELD_S = 1e-5
"""Seconds that trio's thread gives up the GIL for when it never waits; see ``_GiveWay``."""


class _Call(Generic[R]):
    """One unit of work on its way: made in trio, run as an asyncio task, answered in trio."""

    __slots__ = ("cancelled", "context", "make", "task", "waiter")

    def __init__(self, make: Callable[[], Coroutine[Any, Any, R]], waiter: trio.lowlevel.Task) -> None:
        self.make = make
        self.waiter = waiter
        self.context = contextvars.copy_context()
        self.task: asyncio.Task[R] | None = None
        self.cancelled: Callable[[], Any] | None = None
        """Raises trio's Cancelled, once trio has asked for that."""

    def result(self) -> R:
        task = self.task
        if task is None or task.cancelled():
            if self.cancelled is not None:
                self.cancelled()
            raise StorageUnavailable("the portal is closing")
        return task.result()


class _GiveWay(trio.abc.Instrument):
    """Lets the other thread run while trio is never idle.

    A trio loop that always has something to run drops and takes the GIL at each ``epoll_wait(0)`` so quickly
    that no other thread gets it: no query would ever finish. A short sleep there, only while some are under
    way, cures it. However short, it lasts as long as the kernel likes, so it comes once in a while only.
    """

    def __init__(self, portal: "Portal") -> None:
        self._portal = portal
        self._next = 0.0

    def before_io_wait(self, timeout: float) -> None:
        if timeout == 0 and self._portal.outstanding:
            now = time.monotonic()
            if now >= self._next:
                # A clock that is set while we sleep may end the sleep with an error, and Trio drops for good
                # an instrument that has raised.
                with suppress(OSError):
                    time.sleep(YIELD_S)
                self._next = time.monotonic() + YIELD_EVERY_S


class Portal:
    """Both directions are queues; a crowd of calls costs one wake-up of the other loop."""

    def __init__(self) -> None:
        self.outstanding = 0
        """Units of work that trio waits for; those who do not use ``run`` count themselves."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._token = trio.lowlevel.current_trio_token()
        self._inward: deque[Callable[[], object]] = deque()
        self._outward: deque[Callable[[], object]] = deque()
        self._inward_woken = False
        self._outward_woken = False
        self._closed = False
        self._stop = asyncio.Event()
        self._thread: threading.Thread | None = None

    # --- called in trio's thread ----------------------------------------------------------------------------

    async def run(self, make: Callable[[], Coroutine[Any, Any, R]], *, shield: bool = False) -> R:
        """Run a coroutine in the asyncio thread: one crossing each way, so make the whole unit of work one.

        Context variables go along. A cancelled caller waits until the coroutine has cleaned up, so that no
        connection is left in the middle of something; with ``shield`` it is not told at all, as what commits
        must be let finish.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        call = _Call(make, trio.lowlevel.current_task())
        self.send(lambda: self._start(call))

        def abort(raise_cancel: Callable[[], Any]) -> trio.lowlevel.Abort:
            if not shield:
                call.cancelled = raise_cancel
                self.send(lambda: call.task and call.task.cancel())
            return trio.lowlevel.Abort.FAILED

        self.outstanding += 1
        try:
            await trio.lowlevel.wait_task_rescheduled(abort)
        finally:
            self.outstanding -= 1
        return call.result()

    def send(self, job: Callable[[], object]) -> None:
        """Call ``job`` in the asyncio thread, after those sent before."""
        if self._closed or self._loop is None:
            raise StorageUnavailable("the portal is closed")
        self._inward.append(job)
        if not self._inward_woken:
            self._inward_woken = True
            self._loop.call_soon_threadsafe(self._drain_inward)

    def _drain_outward(self) -> None:
        self._outward_woken = False
        while self._outward:
            self._outward.popleft()()

    # --- called in the asyncio thread -----------------------------------------------------------------------

    def post(self, job: Callable[[], object]) -> None:
        """Call ``job`` in trio's thread, outside of any task; it must not raise."""
        self._outward.append(job)
        if not self._outward_woken:
            self._outward_woken = True
            self._token.run_sync_soon(self._drain_outward)

    def _drain_inward(self) -> None:
        self._inward_woken = False
        while self._inward:
            self._inward.popleft()()

    def _start(self, call: _Call[Any]) -> None:
        task = asyncio.get_running_loop().create_task(_started(call.make), context=call.context)
        call.task = task
        task.add_done_callback(
            lambda _: self.post(lambda: trio.lowlevel.reschedule(call.waiter, outcome.Value(None)))
        )

    # --- opening and closing --------------------------------------------------------------------------------

    async def open(self) -> None:
        """Start the thread and wait for its loop."""
        ready = threading.Event()
        thread = threading.Thread(target=self._serve, args=(ready,), name="sexton-portal", daemon=True)
        thread.start()
        self._thread = thread
        await trio.to_thread.run_sync(ready.wait)

    async def close(self) -> None:
        """Cancel what still runs and join the thread."""
        thread = self._thread
        if thread is None:
            return
        self.send(self._stop.set)
        self._closed = True
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(thread.join)
        # The last answers were queued by the thread that is gone now.
        self._drain_outward()

    def _serve(self, ready: threading.Event) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._until_stopped(ready))

    async def _until_stopped(self, ready: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        ready.set()
        await self._stop.wait()


async def _started(make: Callable[[], Coroutine[Any, Any, R]]) -> R:
    # ``make`` itself runs inside the task, so that what it raises is the task's.
    return await make()


@asynccontextmanager
async def open_portal() -> AsyncIterator[Portal]:
    """Start the asyncio thread and give the way to it; on the way out what still runs there is cancelled."""
    portal = Portal()
    await portal.open()
    trio.lowlevel.add_instrument(give_way := _GiveWay(portal))
    try:
        yield portal
    finally:
        trio.lowlevel.remove_instrument(give_way)
        await portal.close()
