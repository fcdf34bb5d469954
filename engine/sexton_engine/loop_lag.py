"""Measures the delay of the event loop."""

from __future__ import annotations

from collections import deque
from typing import Final

__all__ = ["LAG_PROBES", "LAG_PROBE_S", "LagProbe"]

LAG_PROBE_S: Final = 1.0
"""Seconds between two probes."""

LAG_PROBES: Final = 60
"""Probes over which the peak is taken: the last minute."""


class LagProbe:
    """A deadline that is always armed; how late it fires is the lag."""

    __slots__ = ("_recent", "due")

    def __init__(self, now: float) -> None:
        self.due = now + LAG_PROBE_S
        self._recent: deque[float] = deque([0.0], maxlen=LAG_PROBES)

    @property
    def latest_s(self) -> float:
        """How late the latest probe fired."""
        return self._recent[-1]

    @property
    def peak_s(self) -> float:
        """How late the latest of the recent ones fired."""
        return max(self._recent)

    def fire(self, now: float) -> float:
        """Note the lag; again in ``LAG_PROBE_S``, counted from now."""
        self._recent.append(max(now - self.due, 0.0))
        self.due = now + LAG_PROBE_S
        return self.due
