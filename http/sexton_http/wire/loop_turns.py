"""Measures how long the loop is away from its sockets: the wait of whatever comes meanwhile."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import trio


class Turns(NamedTuple):
    """The turns of the loop that ended within some time."""

    span_s: float
    """How long that was."""
    lag_s: float
    """What a request that came at any moment of it had to wait until the loop looked, on average."""


class LoopTurns(trio.abc.Instrument):
    """Notes the time from one look at the sockets to the next, while something is to be done.

    It needs no task that wakes up only to see how late it is: a loop that has nothing to do stays asleep, and
    no turn between two probes is missed.

    >>> clock = iter([10.0, 10.0, 10.04, 10.1])
    >>> turns = LoopTurns(lambda: next(clock))
    >>> turns.after_io_wait(0.0)
    >>> turns.before_io_wait(0.0)
    >>> read = turns.read()
    >>> round(read.span_s, 3), round(read.lag_s, 3)
    (0.1, 0.008)
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._since = self._read_at = clock()
        self._squares = 0.0

    def __repr__(self) -> str:
        return f"<LoopTurns since {self._read_at:.3f}>"

    def after_io_wait(self, timeout: float) -> None:
        """The loop has looked: what it found is worked on now."""
        del timeout
        self._since = self._clock()

    def before_io_wait(self, timeout: float) -> None:
        """It has worked on all of it, and looks again."""
        del timeout
        turn = self._clock() - self._since
        self._squares += turn * turn

    def read(self) -> Turns:
        """What was noted since it was read last."""
        now = self._clock()
        span_s, squares = now - self._read_at, self._squares
        self._read_at, self._squares = now, 0.0
        # Who comes within a turn of length t waits t/2 on average, and comes within it with chance t/span.
        return Turns(span_s, squares / (2 * span_s) if span_s > 0 else 0.0)


@contextmanager
def measured_turns() -> Iterator[LoopTurns]:
    """For as long as the block lasts; in a trio task."""
    turns = LoopTurns()
    trio.lowlevel.add_instrument(turns)
    try:
        yield turns
    finally:
        trio.lowlevel.remove_instrument(turns)
