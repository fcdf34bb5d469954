"""Virtual time: it stands while a task can run, then jumps to what is due next."""

import heapq
from collections.abc import Callable
from typing import Final

import trio

START_S: Final = 1_732_060_800.0
"""What calendars show when a simulation begins, unless it says another time: 2024-11-20 00:00 UTC."""


class Timeline(trio.abc.Clock):
    """The clock of the run, in seconds from 0, and what happens at which time."""

    def __init__(self, start_s: float = START_S) -> None:
        self.start_s = start_s
        """What calendars show at 0, in seconds since 1970."""
        self.now = 0.0
        self._number = 0
        self._later: list[tuple[float, int, Callable[[], None]]] = []

    def start_clock(self) -> None:
        """It runs from the beginning."""

    def current_time(self) -> float:
        return self.now

    def deadline_to_sleep_time(self, deadline: float) -> float:
        return deadline - self.now

    def at(self, when: float, call: Callable[[], None]) -> None:
        """Call at that time; of one time in the order of asking."""
        self._number += 1
        heapq.heappush(self._later, (when, self._number, call))

    def after(self, delay_s: float, call: Callable[[], None]) -> None:
        """Call after a while."""
        self.at(self.now + delay_s, call)

    async def rest(self, delay_s: float) -> None:
        """Sleep as ``trio.sleep`` does, at a third of its cost: there is no deadline to cancel."""
        task = trio.lowlevel.current_task()
        is_cancelled = False

        def wake() -> None:
            if not is_cancelled:
                trio.lowlevel.reschedule(task)

        def abort(_: object) -> trio.lowlevel.Abort:
            nonlocal is_cancelled
            is_cancelled = True
            return trio.lowlevel.Abort.SUCCEEDED

        self.after(delay_s, wake)
        await trio.lowlevel.wait_task_rescheduled(abort)

    def next_due(self) -> float:
        """When the next call is due; infinity if there is none."""
        return self._later[0][0] if self._later else float("inf")

    def fire(self) -> bool:
        """Make the calls that are due; whether there were any."""
        later, fired = self._later, False
        while later and later[0][0] <= self.now:
            heapq.heappop(later)[2]()
            fired = True
        return fired
