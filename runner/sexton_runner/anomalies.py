"""Notices a run that does the same thing too often, by the anomaly rules of its agent's trigger file.

The control plane counts what people are asked about; a call for which nobody is asked, only the run sees.
"""

from collections import deque
from collections.abc import Callable, Sequence

import msgspec

MAX_ACTIONS = 256
"""Different actions that are remembered; the one that is not seen for the longest is forgotten first."""
KIND = "anomaly"
"""The kind of gate that is opened then: the control plane pauses the agent without asking anybody."""


class AnomalyRule(msgspec.Struct, frozen=True):
    """The same tool and action ``threshold_count`` times within ``threshold_window_s`` seconds."""

    threshold_count: int
    threshold_window_s: int
    pattern: str = "same_action"


class Occurrences:
    """Counts the calls of one run.

    >>> seen = Occurrences([AnomalyRule(2, 10)], clock=iter([0.0, 11.0, 12.0]).__next__)
    >>> [seen.count("shell", "run") for _ in range(3)]
    [False, False, True]
    """

    def __init__(self, rules: Sequence[AnomalyRule], clock: Callable[[], float]) -> None:
        self._rules = tuple(rules)
        self._clock = clock
        self._times: dict[tuple[str, str], deque[float]] = {}

    def __repr__(self) -> str:
        return f"<Occurrences of {len(self._times)} actions>"

    def count(self, tool: str, action: str) -> bool:
        """Count one more; whether it breaks a rule."""
        if not self._rules:
            return False
        now, key = self._clock(), (tool, action)
        # Taken out and put back at the end: the first is the one that is not seen for the longest.
        times = self._times.pop(key, None)
        if times is None:
            times = deque(maxlen=max(rule.threshold_count for rule in self._rules))
        times.append(now)
        self._times[key] = times
        if len(self._times) > MAX_ACTIONS:
            del self._times[next(iter(self._times))]
        return any(
            sum(at >= now - rule.threshold_window_s for at in times) >= rule.threshold_count
            for rule in self._rules
        )
