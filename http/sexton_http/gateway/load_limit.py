"""Decides how much ingress may be under way at once, by what the server's latency is now."""

from typing import Final

import msgspec

INTERVAL_S: Final = 0.1
"""How often it is decided again."""
JOURNAL_BATCHES: Final = 4
"""Where commits are slow: the age in batches. One is being committed, one waits; more is a queue."""
HUNGRY: Final = 4.0
"""How much more is borne while nothing waits for a runner: to hold ingress back would leave runners idle."""
GROWTH: Final = 0.1
"""The part of the limit that it grows by in an interval in which nothing was late."""
STEP: Final = 0.5
"""And this much more, so that a small limit grows as well."""
CUT: Final = 0.3
"""What is taken off the limit for being late by as much as is borne."""
CUT_MAX: Final = 0.5
"""The most that is taken off after one interval, however late everything was."""
IDLE_MAX: Final = 50
"""Quiet intervals that are made up for at once: five seconds."""


class Bounds(msgspec.Struct, frozen=True):
    """The latencies, in seconds, at which a class of ingress is held back, and the least that is let in."""

    lag_s: float
    """What a request that comes at any moment may have to wait for the loop."""
    journal_s: float
    """How old the oldest write may be, where commits are quick."""
    runner_s: float
    """How long a runner's call may take, on average."""
    floor: float
    """Ingress never stops altogether."""


def bounds_of(lag_s: float, *, patience: float, floor: float) -> Bounds:
    """The bounds of a class that bears ``patience`` times the lag; the others go with it.

    >>> bounds_of(0.01, patience=2.0, floor=4.0)
    Bounds(lag_s=0.02, journal_s=0.2, runner_s=0.2, floor=4.0)
    """
    borne_s = lag_s * patience
    return Bounds(borne_s, 10 * borne_s, 10 * borne_s, floor)


class Sample(msgspec.Struct, frozen=True):
    """What was measured over one interval; seconds."""

    lag_s: float = 0.0
    journal_s: float = 0.0
    """The age of the oldest write that has not been committed."""
    batch_s: float = 0.0
    """How long the journal's latest batches took."""
    runner_s: float = 0.0
    """The mean time of the runners' calls that were answered; long polls are none of them."""
    peak: int = 0
    """The most ingress that was under way at once."""
    hungry: bool = False
    """No event waits for a runner."""
    intervals: int = 1
    """More than one after a time without any request."""


class Limit(msgspec.Struct, frozen=True):
    """How much may be under way at once: ``value``, at most ``most``."""

    value: float
    most: float

    @property
    def is_open(self) -> bool:
        """Nothing is held back."""
        return self.value >= self.most


def open_limit(most: int) -> Limit:
    """The limit at the start."""
    return Limit(float(most), float(most))


def lateness(sample: Sample, bounds: Bounds) -> float:
    """The worst of the latencies, as a share of what is borne: above 1.0 something is late.

    >>> bounds = bounds_of(0.01, patience=1.0, floor=1.0)
    >>> lateness(Sample(lag_s=0.005), bounds), lateness(Sample(runner_s=0.2), bounds)
    (0.5, 2.0)
    >>> lateness(Sample(journal_s=0.2), bounds), lateness(Sample(journal_s=0.2, batch_s=0.1), bounds)
    (2.0, 0.5)
    >>> lateness(Sample(lag_s=0.02, hungry=True), bounds)
    0.5
    """
    slow_s = JOURNAL_BATCHES * sample.batch_s
    worst = max(
        sample.lag_s / bounds.lag_s,
        sample.journal_s / max(bounds.journal_s, slow_s),
        sample.runner_s / max(bounds.runner_s, slow_s),
    )
    return worst / HUNGRY if sample.hungry else worst


def decide(limit: Limit, sample: Sample, bounds: Bounds) -> Limit:
    """The limit of the next interval: it grows while nothing is late, and is cut when something is.

    The cut is taken off what was under way, where that was less than the limit: a limit that nobody had
    reached says nothing about how much is too much.

    >>> bounds, narrow = bounds_of(0.01, patience=1.0, floor=1.0), Limit(10.0, 256.0)
    >>> decide(narrow, Sample(), bounds).value, decide(narrow, Sample(lag_s=0.01), bounds).value
    (11.5, 10.0)
    >>> [decide(narrow, Sample(lag_s=lag_s, peak=10), bounds).value for lag_s in (0.02, 1.0)]
    [7.0, 5.0]
    >>> decide(open_limit(256), Sample(lag_s=0.02, peak=20), bounds).value
    14.0
    >>> decide(narrow, Sample(intervals=50), bounds).is_open
    True
    """
    late = lateness(sample, bounds)
    if late > 1.0:
        reached = min(limit.value, max(float(sample.peak), bounds.floor))
        left = 1.0 - min(CUT_MAX, CUT * (late - 1.0))
        return msgspec.structs.replace(limit, value=min(limit.most, max(bounds.floor, reached * left)))
    value = limit.value
    for _ in range(min(sample.intervals, IDLE_MAX)):
        value += (1.0 - late) * (GROWTH * value + STEP)
    return msgspec.structs.replace(limit, value=min(limit.most, value))
