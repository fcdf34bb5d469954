"""What sets a seed apart from a calm run, as a list from which each part can be left out.

Without any, tasks run in the order of their numbers, every delay is the mean one, and nothing goes wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Final, Literal

from tests.simulation.world.timeline import Timeline

WINDOW_S: Final = 1.0
"""Orders and delays are left out or kept by the second."""
Kind = Literal["order", "delay", "fault"]
Deviation = tuple[Kind, int]
"""An order or a delay by the number of its window, a fault by its place among those that the seed plans."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The deviations that a run keeps; None: all of that kind."""

    orders: frozenset[int] | None = None
    delays: frozenset[int] | None = None
    faults: frozenset[int] | None = None

    @classmethod
    def of(cls, deviations: Iterable[Deviation]) -> Kept:
        """Keep these and no others.

        >>> Kept.of([("fault", 3), ("order", 7)])
        Kept(orders=frozenset({7}), delays=frozenset(), faults=frozenset({3}))
        """
        found: dict[Kind, set[int]] = {"order": set(), "delay": set(), "fault": set()}
        for kind, number in deviations:
            found[kind].add(number)
        return cls(*(frozenset(found[kind]) for kind in ("order", "delay", "fault")))

    def has_fault(self, number: int) -> bool:
        return self.faults is None or number in self.faults


def deviations_until(seconds: float, faults: int) -> Iterator[Deviation]:
    """All deviations that a run may have had by that time, the likeliest causes first."""
    windows = range(math.floor(seconds / WINDOW_S) + 1)
    yield from (("fault", number) for number in range(faults))
    yield from (("order", number) for number in windows)
    yield from (("delay", number) for number in windows)


class Windows:
    """One kind of chance, with a generator for each window: to leave one out changes no other."""

    def __init__(self, timeline: Timeline, seed: int, kept: frozenset[int] | None) -> None:
        self._timeline = timeline
        self._seed = seed
        self._kept = kept
        self._until = -1.0
        self._rng: Random | None = None

    def now(self) -> Random | None:
        """The generator of this window; None where it is left out."""
        if self._timeline.now >= self._until:
            window = math.floor(self._timeline.now / WINDOW_S)
            self._until = (window + 1) * WINDOW_S
            is_kept = self._kept is None or window in self._kept
            self._rng = Random((self._seed << 32) + window) if is_kept else None
        return self._rng

    def uniform(self, least: float, most: float) -> float:
        """A number between the two; their mean where the window is left out."""
        rng = self.now()
        return (least + most) / 2 if rng is None else least + (most - least) * rng.random()
