"""Counts how values are spread over fixed bounds, for a few additions a value and without a lock."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

BATCH_BOUNDS: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0)
"""Writes of one batch."""
SHORT_BOUNDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Seconds of what a database does."""


class Example(Struct, frozen=True):
    """One of the values of a bucket, and the trace that tells how it came about."""

    trace_id: str
    value: float
    at_ms: int


class SpreadStatistics(Struct, frozen=True):
    """``counts`` has one more than ``bounds``: what lies above the last."""

    bounds: tuple[float, ...] = ()
    counts: tuple[int, ...] = (0,)
    total: float = 0.0
    examples: tuple[Example | None, ...] = ()
    """The newest of each bucket, where values came with their traces."""

    def cumulative(self) -> list[tuple[str, float]]:
        """As Prometheus wants them: at most so much, so often.

        >>> SpreadStatistics((1.0, 2.0), (3, 1, 2), 9.0).cumulative()
        [('1.0', 3.0), ('2.0', 4.0), ('+Inf', 6.0)]
        """
        sums, so_far = [], 0.0
        for bound, count in zip((*map(str, self.bounds), "+Inf"), self.counts, strict=True):
            so_far += count
            sums.append((bound, so_far))
        return sums


class Spread:
    """One thread notes; any may look."""

    __slots__ = ("_bounds", "_counts", "_examples", "_total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(self._bounds) + 1)
        self._total = 0.0
        self._examples: list[Example | None] = []

    def __repr__(self) -> str:
        return f"<Spread of {sum(self._counts)}>"

    def note(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._total += value

    def note_example(self, example: Example) -> None:
        """Note a value whose trace is known.

        >>> spread = Spread((1.0, 2.0))
        >>> spread.note_example(Example("4bf9", 1.5, 0))
        >>> [found and found.trace_id for found in spread.statistics().examples]
        [None, '4bf9', None]
        """
        self.note(example.value)
        if not self._examples:
            self._examples = [None] * len(self._counts)
        self._examples[bisect_left(self._bounds, example.value)] = example

    def note_all(self, values: Iterable[float]) -> None:
        """Note many for one call."""
        bounds, counts = self._bounds, self._counts
        for value in values:
            counts[bisect_left(bounds, value)] += 1
            self._total += value

    def statistics(self) -> SpreadStatistics:
        return SpreadStatistics(self._bounds, tuple(self._counts), self._total, tuple(self._examples))
