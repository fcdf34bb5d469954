"""Measures in alternating rounds, compares round by round, and says what was met."""

import os
import statistics
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import orjson

WARM_UP_SHARE = 0.25
"""The part of a round's time that a warm-up round takes."""
_share: ContextVar[float] = ContextVar("share", default=1.0)

Measure = Callable[[], Awaitable[float]]
"""One round of one contender; answers its figure."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Some samples: their median, and the least and greatest of them."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, samples: Sequence[float]) -> "Spread":
        """Raises statistics.StatisticsError when there are none."""
        return cls(statistics.median(samples), min(samples), max(samples))


@dataclass(frozen=True, slots=True)
class Budget:
    """What a figure has to reach."""

    text: str
    holds: Callable[[float, float | None], bool]
    """Takes the value and the ratio."""


def at_least_times(factor: float) -> Budget:
    """At least this many times what it is measured against, in the median of the rounds."""
    return Budget(f"≥ {factor:g} x", lambda _, ratio: ratio is not None and ratio >= factor)


def at_least(bound: float, unit: str) -> Budget:
    return Budget(f"≥ {bound:,g} {unit}", lambda value, _: value >= bound)


def at_most(bound: float, unit: str) -> Budget:
    return Budget(f"≤ {bound:,g} {unit}", lambda value, _: value <= bound)


def at_most_times(factor: float) -> Budget:
    """At most this many times what it is measured against, in the median of the rounds."""
    return Budget(f"≤ {factor:g} x", lambda _, ratio: ratio is not None and ratio <= factor)


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table: a value, what it is compared with, and what it has to reach."""

    name: str
    value: Spread
    unit: str
    against: str | None = None
    ratio: Spread | None = None
    budgets: tuple[Budget, ...] = ()

    @property
    def met(self) -> bool | None:
        """None when there is no budget."""
        if not self.budgets:
            return None
        ratio = self.ratio.median if self.ratio else None
        return all(budget.holds(self.value.median, ratio) for budget in self.budgets)

    def as_json(self) -> dict[str, Any]:
        ratio = self.ratio
        return {
            "name": self.name,
            "value": _short(self.value.median),
            "spread": [_short(self.value.low), _short(self.value.high)],
            "unit": self.unit,
            "against": self.against,
            "ratio": _short(ratio.median) if ratio else None,
            "ratio_spread": [_short(ratio.low), _short(ratio.high)] if ratio else None,
            "budget": " and ".join(budget.text for budget in self.budgets) or None,
            "met": self.met,
        }


def _short(value: float) -> float:
    """Four significant digits; whole numbers from 1,000 on. More would only look exact."""
    return round(value) if abs(value) >= 1000 else float(f"{value:.4g}")


async def alternate(
    contenders: Mapping[str, Measure], *, rounds: int, warm_up: int = 1
) -> dict[str, list[float]]:
    """Run the contenders in turn, ``warm_up`` uncounted and ``rounds`` counted times each.

    Every other round goes backwards, so that what drifts (a busy neighbour, a growing table, a warm
    processor) weighs on all of them alike.
    """
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(warm_up + rounds):
        counts = number >= warm_up
        share = _share.set(1.0 if counts else WARM_UP_SHARE)
        for name in list(contenders)[:: 1 if number % 2 == 0 else -1]:
            sample = await contenders[name]()
            if counts:
                samples[name].append(sample)
        _share.reset(share)
    return samples


def lasting(seconds: float) -> float:
    """How long a round has to last that takes so long when it counts: what warms up may be shorter."""
    return seconds * _share.get()


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> Spread:
    """Round by round, so that a slow minute of the machine does not fall on one side only."""
    return Spread.of([a / b for a, b in zip(ours, theirs, strict=True)])


def once(value: float) -> Spread:
    """A figure that was counted, not sampled."""
    return Spread(value, value, value)


def report(name: str, machine: Mapping[str, Any], figures: Sequence[Figure]) -> dict[str, Any]:
    """What a benchmark answers."""
    return {"bench": name, "machine": dict(machine), "figures": [figure.as_json() for figure in figures]}


def size(name: str, default: int) -> int:
    """How large a benchmark is to be: ``BENCH_<NAME>`` of the environment, or what it is by itself."""
    return int(os.environ.get(f"BENCH_{name}", default))


def tell(what: str) -> None:
    """Progress, beside the figures."""
    print(f"  … {what}", file=sys.stderr, flush=True)


def line(result: Mapping[str, Any]) -> str:
    return orjson.dumps(result).decode()
