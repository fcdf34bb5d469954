"""Stands in for the kernel: numbers for what is open, and who waits until it can be read or written."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from typing import Any, Final

import outcome
import trio

from tests.simulation.world.ground import Ground
from tests.simulation.world.processes import PROCESS, Process

FIRST: Final = 1 << 20
"""Lower numbers are those of the real kernel, which a simulation never asks."""
MOST_IDLE_TURNS: Final = 20_000
"""A program that takes more turns while the clock stands will never let it go on."""
Numbered = int | Any


class Descriptor:
    """Something that a program has open."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.numbers: list[int] = []
        self.process: Process | None = None

    def can_read(self) -> bool:
        """Whether to read would not block."""
        return False

    def can_write(self) -> bool:
        """Whether to write would not block."""
        return False

    def release(self, *, silent: bool = False) -> None:
        """The last number of it was closed; ``silent``: with the power of its machine."""

    @property
    def is_open(self) -> bool:
        return bool(self.numbers)

    def wake(self) -> None:
        """Wake whoever waits for what it now can do."""
        self.kernel.wake(self)


class Flag(Descriptor):
    """Can be read once it is set; a process descriptor, for one."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        self._is_set = False

    def set(self) -> None:
        self._is_set = True
        self.wake()

    def can_read(self) -> bool:
        return self._is_set


class Stalled(AssertionError):
    """Nothing will ever happen again, or everything happens at one moment."""


class Kernel:
    """Takes the place of trio's manager of I/O."""

    def __init__(self, world: Ground) -> None:
        self._world = world
        self._next = FIRST
        self._open: dict[int, Descriptor] = {}
        self._readers: dict[int, trio.lowlevel.Task] = {}
        self._writers: dict[int, trio.lowlevel.Task] = {}
        self._runner: Any = None
        self._replaced: Any = None
        self._idle_turns = 0
        self.end = trio.CancelScope()
        """Cancelled when the simulation cannot go on; ``stalled`` says why."""
        self.stalled: str | None = None

    def install(self, runner: Any, queue: Any) -> None:
        """Take over the run of trio that is under way."""
        self._runner = runner
        self._replaced, runner.io_manager = runner.io_manager, self
        queue.extend(runner.runq)
        runner.runq = queue

    def uninstall(self) -> None:
        """Give the run back: as it ends, trio wakes itself through a socket of its own."""
        self._runner.io_manager = self._replaced

    # --- what is open ---------------------------------------------------------------------------------------

    def open(self, thing: Descriptor, process: Process | None = None) -> int:
        """Give a number for it, another one if it has one."""
        number, self._next = self._next, self._next + 1
        process = process or PROCESS.get()
        self._open[number] = thing
        thing.numbers.append(number)
        if process is not None:
            thing.process = process
            process.numbers[number] = None
        return number

    def get(self, number: int) -> Descriptor:
        """Raises OSError when nothing has that number."""
        found = self._open.get(number)
        if found is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return found

    def replace(self, number: int, thing: Descriptor) -> None:
        """Let the number stand for something else, as a socket that begins to listen does."""
        old = self._open[number]
        old.numbers.remove(number)
        self._open[number] = thing
        thing.numbers.append(number)
        thing.process = old.process

    def shut(self, number: int, *, silent: bool = False) -> None:
        """Raises OSError when it is closed already."""
        thing = self.get(number)
        self.notify_closing(number)
        del self._open[number]
        thing.numbers.remove(number)
        if thing.process is not None:
            thing.process.numbers.pop(number, None)
        if not thing.numbers:
            thing.release(silent=silent)

    def close_all(self, process: Process, *, silent: bool = False) -> None:
        """What the kernel does for a process that has ended."""
        for number in list(process.numbers):
            # The tasks of one that was killed wait here for good, so nobody is to be woken.
            self._readers.pop(number, None)
            self._writers.pop(number, None)
            self.shut(number, silent=silent)

    # --- what trio asks -------------------------------------------------------------------------------------

    async def wait_readable(self, fd: Numbered) -> None:
        await self._wait(fd, self._readers)

    async def wait_writable(self, fd: Numbered) -> None:
        await self._wait(fd, self._writers)

    async def _wait(self, fd: Numbered, waiting: dict[int, trio.lowlevel.Task]) -> None:
        number = fd if isinstance(fd, int) else fd.fileno()
        if number < FIRST:
            if PROCESS.get() is not None:
                raise Stalled(f"a program of a simulation waits for the real descriptor {number}")
            await trio.sleep_forever()  # Trio's own, which wakes it when another thread has a word for it.
        thing = self.get(number)
        if number in waiting:
            raise trio.BusyResourceError("another task waits for the same")
        if thing.can_read() if waiting is self._readers else thing.can_write():
            await trio.lowlevel.checkpoint()
            return
        waiting[number] = trio.lowlevel.current_task()

        def abort(_: object) -> trio.lowlevel.Abort:
            waiting.pop(number, None)
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)

    def wake(self, thing: Descriptor) -> None:
        for number in thing.numbers:
            if number in self._readers and thing.can_read():
                trio.lowlevel.reschedule(self._readers.pop(number))
            if number in self._writers and thing.can_write():
                trio.lowlevel.reschedule(self._writers.pop(number))

    def notify_closing(self, fd: Numbered) -> None:
        number = fd if isinstance(fd, int) else fd.fileno()
        for waiting in (self._readers, self._writers):
            task = waiting.pop(number, None)
            if task is not None:
                gone = trio.ClosedResourceError("another task closed this")
                trio.lowlevel.reschedule(task, outcome.Error(gone))

    def get_events(self, timeout_s: float) -> tuple[()]:
        """Let the time pass that nobody uses, and what is due happen."""
        runner, timeline = self._runner, self._world.timeline
        if runner.ki_pending:
            raise KeyboardInterrupt
        if timeline.fire() or timeout_s <= 0:
            self._idle_turns += 1
            if self._idle_turns > MOST_IDLE_TURNS:
                self._stall(f"the clock stands at {timeline.now} although programs take turns")
            return ()
        due = min(runner.deadlines.next_deadline(), timeline.next_due())
        if due == float("inf"):
            self._stall(f"at {timeline.now} nobody waits for a time, and nothing is on its way")
            return ()
        if due > timeline.now:
            timeline.now, self._idle_turns = due, 0
        timeline.fire()
        return ()

    def _stall(self, why: str) -> None:
        if self.stalled is not None:
            raise Stalled(f"{self.stalled}; nor does it end when it is cancelled")
        self.stalled, self._idle_turns = why, 0
        self.end.cancel()

    def process_events(self, events: tuple[()]) -> None:
        """There are none: whoever causes one wakes who waits for it."""

    def force_wakeup(self) -> None:
        """It never sleeps."""

    def statistics(self) -> Any:
        return self._replaced.statistics()

    def close(self) -> None:
        """It is given back before that."""

    def put_back(self, tasks: Iterable[trio.lowlevel.Task]) -> None:
        """Let tasks run that could run before."""
        self._runner.runq.extend(tasks)
