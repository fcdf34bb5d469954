"""Notices an agent that does the same thing too often."""

import msgspec

from sexton_actors.gate_rules.model import AnomalyRule, Gates


class Observation(msgspec.Struct, frozen=True):
    """``record`` is what to keep for this tool and action; ``rule`` is the first one broken, if any."""

    record: tuple[int, ...]
    rule: AnomalyRule | None


def anomaly(gates: Gates, record: tuple[int, ...], now_ms: int) -> Observation:
    """Count one more occurrence of the same tool and action at ``now_ms``.

    ``record`` holds the earlier occurrences in ms, oldest first, and stays within the longest window and the
    highest count of the rules. A rule is broken by the occurrence that reaches its count within its window.

    >>> gates = Gates(anomaly_rules=(AnomalyRule("same_action", threshold_count=3, threshold_window_s=10),))
    >>> anomaly(gates, (1_000, 9_000), now_ms=10_000).rule is gates.anomaly_rules[0]
    True
    >>> anomaly(gates, (1_000, 9_000), now_ms=11_001)
    Observation(record=(9000, 11001), rule=None)
    """
    if not gates.anomaly_rules:
        return Observation((), None)
    longest_ms = 1_000 * max(rule.threshold_window_s for rule in gates.anomaly_rules)
    highest = max(rule.threshold_count for rule in gates.anomaly_rules)
    recent = (*(at for at in record if at >= now_ms - longest_ms), now_ms)[-highest:]
    broken = (rule for rule in gates.anomaly_rules if _is_broken(rule, recent, now_ms))
    return Observation(recent, next(broken, None))


def _is_broken(rule: AnomalyRule, recent: tuple[int, ...], now_ms: int) -> bool:
    start = now_ms - 1_000 * rule.threshold_window_s
    return sum(at >= start for at in recent) >= rule.threshold_count
