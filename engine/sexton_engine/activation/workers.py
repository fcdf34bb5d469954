"""A few worker tasks, shared by all actors, that run those with messages."""

from __future__ import annotations

from collections import deque
from contextvars import copy_context
from functools import partial
from typing import Final

import trio

from sexton_engine.activation.cell import Cell
from sexton_engine.activation.delivery import interrupted
from sexton_engine.activation.turn import run_turn

__all__ = ["PARKED_MAX", "WORKER_BURST", "Workers"]

PARKED_MAX: Final = 256
"""Idle workers that are kept for reuse; more end when they run out of work."""

WORKER_BURST: Final = 64
"""Messages that a worker handles, over all actors, before it lets other tasks run."""


class Workers:
    """A queue of actors that are ready, and the tasks that serve it.

    A handler that waits holds its worker, and another one takes over the queue. There is never more
    than one worker that was woken and has not begun, so 100,000 ready actors need one task, not 100,000.
    """

    __slots__ = ("_context", "_nursery", "_parked", "_ready", "_woken", "total")

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        # A worker serves everybody, and not only the one whose message happened to need a new one.
        self._context = copy_context()
        self._ready: deque[Cell] = deque()
        self._parked: list[trio.lowlevel.Task] = []
        self._woken = 0
        self.total = 0
        """Workers there are, those parked included."""

    def __repr__(self) -> str:
        return f"<Workers {self.total - self.parked} of {self.total} busy, {len(self._ready)} ready>"

    @property
    def parked(self) -> int:
        """Workers that wait for work."""
        return len(self._parked)

    def schedule(self, cell: Cell) -> None:
        """Have the cell run; it must not be in the queue already."""
        self._ready.append(cell)
        if not self._woken:
            self._wake_one()

    def _wake_one(self) -> None:
        self._woken += 1
        if self._parked:
            trio.lowlevel.reschedule(self._parked.pop())
        else:
            self.total += 1
            self._context.run(partial(self._nursery.start_soon, self._work, name="actor worker"))

    async def _work(self) -> None:
        try:
            self._woken -= 1
            while await self._serve_until_cancelled():
                pass
        finally:
            self.total -= 1

    async def _serve_until_cancelled(self) -> bool:
        """Serve the queue in one cancel scope; ``False`` if the worker is not needed any more.

        The scope is what a kill cancels. It is opened once, not for each message, and replaced when it
        was used.
        """
        running: list[Cell] = []
        with trio.CancelScope() as scope:
            await self._serve(scope, running)
            if not scope.cancel_called:
                return False
        if running:
            interrupted(running[0])
            if running[0].scheduled:
                self.schedule(running[0])
        return True

    async def _serve(self, scope: trio.CancelScope, running: list[Cell]) -> None:
        task = trio.lowlevel.current_task()
        ready = self._ready
        budget = WORKER_BURST
        while True:
            while ready:
                cell = ready.popleft()
                if ready and not self._woken:
                    # This cell's handler may wait: somebody must be there for the others.
                    self._wake_one()
                running.append(cell)
                cell.worker, cell.worker_task = scope, task
                budget -= await run_turn(cell)
                running.clear()
                if cell.scheduled and cell.held_by is None:
                    cell.worker = cell.worker_task = None
                    ready.append(cell)
                if scope.cancel_called:
                    return
                if budget <= 0:
                    # It comes back to the queue by itself, so meanwhile no other worker need be woken.
                    self._woken += 1
                    await trio.lowlevel.checkpoint()
                    self._woken -= 1
                    budget = WORKER_BURST
            if not await self._park(task):
                return
            budget = WORKER_BURST

    async def _park(self, task: trio.lowlevel.Task) -> bool:
        if len(self._parked) >= PARKED_MAX:
            return False

        def leave(_raise_cancel: object) -> trio.lowlevel.Abort:
            self._parked.remove(task)
            return trio.lowlevel.Abort.SUCCEEDED

        self._parked.append(task)
        await trio.lowlevel.wait_task_rescheduled(leave)
        self._woken -= 1
        return True
