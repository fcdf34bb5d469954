"""Latencies as a high dynamic range histogram: three digits from a microsecond to a minute, tail and all."""

from array import array
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hdrh.histogram import HdrHistogram

LEAST_US, MOST_US, DIGITS = 1, 60_000_000, 3
SHARES = (50.0, 90.0, 99.0, 99.9, 100.0)
CURVE = (0.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 97.5, 99.0, 99.5, 99.9, 99.95, 99.99)
"""The shares at which the curve is drawn; those that fewer than two samples stand behind are left out."""


def histogram(latencies_ns: Iterable[int]) -> HdrHistogram:
    """Record all; what is beyond a minute counts as a minute."""
    recorded = HdrHistogram(LEAST_US, MOST_US, DIGITS)
    for value in latencies_ns:
        recorded.record_value(min(max(value // 1000, LEAST_US), MOST_US))
    return recorded


def summary(path: Path) -> dict[str, Any]:
    """What is shown of a file of latencies: how many, and percentiles in ms."""
    values: array[int] = array("q")
    values.frombytes(path.read_bytes())
    recorded = histogram(values)
    return {
        "count": len(values),
        "percentiles": {f"{share:g}": at(recorded, share) for share in SHARES},
        "curve": [(share, at(recorded, share)) for share in CURVE if len(values) * (100 - share) / 100 >= 1],
    }


def at(recorded: HdrHistogram, share: float) -> float:
    """The latency in ms that this percentage did not exceed.

    >>> at(histogram(range(1_000_000, 101_000_000, 1_000_000)), 99.0)
    99.0
    """
    return round(float(recorded.get_value_at_percentile(share)) / 1000, 1 if share == 0 else 3)
