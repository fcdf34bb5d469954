"""All deadlines of the system, in one heap that one task watches."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from itertools import count
from typing import Final, Protocol

import trio

__all__ = ["NEVER", "Deadline", "Deadlines"]

NEVER: Final = math.inf
"""The ``due`` of a deadline that was cancelled."""

COMPACT_FROM: Final = 1024
"""Cancelled entries that may lie in the heap before it is worth rebuilding."""

FIRE_BURST: Final = 256
"""Deadlines fired before the sleeping task lets others run."""


class Deadline(Protocol):
    """Something that wants to be told when a moment has come."""

    due: float

    def fire(self, now: float) -> float | None:
        """Act, or answer when to be asked again (a deadline may have moved later meanwhile)."""


class Deadlines:
    """A heap with lazy deletion.

    Cancelling sets ``due`` to ``NEVER`` and leaves the entry; moving later changes ``due`` alone and the
    entry finds its new place when the old one comes up. So a deadline that is renewed a thousand times
    before it passes costs one push, and one that is cancelled costs no search.
    """

    __slots__ = ("_cancelled", "_heap", "_monotonic", "_scope", "_sequence", "_wakes_at")

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._heap: list[tuple[float, int, Deadline]] = []
        self._sequence = count()
        self._cancelled = 0
        self._scope: trio.CancelScope | None = None
        self._wakes_at = NEVER

    def __len__(self) -> int:
        return len(self._heap) - self._cancelled

    def __repr__(self) -> str:
        return f"<Deadlines {len(self)}, {self._cancelled} cancelled>"

    def arm(self, item: Deadline) -> None:
        """Have ``item.fire`` called once the clock reaches ``item.due``."""
        due = item.due
        heapq.heappush(self._heap, (due, next(self._sequence), item))
        if due < self._wakes_at and self._scope is not None:
            self._sleep_until(self._scope, due)

    def cancel(self, item: Deadline) -> None:
        """Forget an armed deadline; one that is already cancelled stays so."""
        if item.due != NEVER:
            item.due = NEVER
            self._cancelled += 1
            if self._cancelled > COMPACT_FROM and self._cancelled * 2 > len(self._heap):
                self._compact()

    def _compact(self) -> None:
        # Paid for by the cancellations since the last time, so a cancellation costs O(1) amortised
        # and the heap is never more than half dead.
        self._heap = [entry for entry in self._heap if entry[2].due != NEVER]
        heapq.heapify(self._heap)
        self._cancelled = 0

    async def run(self) -> None:
        """Sleep and fire, for ever; the only task that waits for time."""
        while True:
            await self._fire_due()
            with trio.CancelScope() as scope:
                self._sleep_until(scope, self._heap[0][0] if self._heap else NEVER)
                self._scope = scope
                await trio.sleep_forever()
            self._scope = None

    def _sleep_until(self, scope: trio.CancelScope, due: float) -> None:
        # The injected clock need not be trio's; only the remaining time is carried over.
        self._wakes_at = due
        scope.deadline = trio.current_time() + (due - self._monotonic())

    async def _fire_due(self) -> None:
        self._wakes_at = -NEVER  # nobody needs to wake the task while it is awake
        fired = 0
        # Whatever was cancelled goes as soon as it is the first: left there, each question that was answered
        # in time would wake the task once more when its time is over.
        while self._heap and (self._heap[0][2].due == NEVER or self._heap[0][0] <= self._monotonic()):
            self._fire_first()
            fired += 1
            if fired % FIRE_BURST == 0:
                await trio.lowlevel.checkpoint()

    def _fire_first(self) -> None:
        _, _, item = heapq.heappop(self._heap)
        if item.due == NEVER:
            self._cancelled -= 1
            return
        again = item.fire(self._monotonic())
        if again is not None:
            heapq.heappush(self._heap, (again, next(self._sequence), item))
