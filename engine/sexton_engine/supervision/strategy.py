"""Decides what a supervisor does about a child that has ended; no clock, no randomness, no waiting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from sexton_engine.spec import Backoff, Intensity, Restart, Strategy

__all__ = ["affected", "delay", "restarts", "within"]


def restarts(restart: Restart, *, crashed: bool) -> bool:
    """Whether a child of this type is started again.

    >>> restarts(Restart.TRANSIENT, crashed=False)
    False
    """
    match restart:
        case Restart.PERMANENT:
            return True
        case Restart.TRANSIENT:
            return crashed
        case Restart.TEMPORARY:
            return False
        case _:
            assert_never(restart)


def affected(strategy: Strategy, index: int, children: int) -> range:
    """The children, by their place in the order of start, that go down when the one at ``index`` does.

    >>> affected(Strategy.REST_FOR_ONE, 1, 4)
    range(1, 4)
    """
    match strategy:
        case Strategy.ONE_FOR_ONE:
            return range(index, index + 1)
        case Strategy.REST_FOR_ONE:
            return range(index, children)
        case Strategy.ONE_FOR_ALL:
            return range(children)
        case _:
            assert_never(strategy)


def within(intensity: Intensity, restarted_at: Sequence[float], now: float) -> list[float] | None:
    """The restarts that still count, with the one now; ``None`` if that is one too many.

    >>> within(Intensity(max_restarts=1, period_s=10), [1.0], 12.0)
    [12.0]
    >>> within(Intensity(max_restarts=1, period_s=10), [5.0], 12.0) is None
    True
    """
    recent = [at for at in restarted_at if at > now - intensity.period_s]
    if len(recent) >= intensity.max_restarts:
        return None
    return [*recent, now]


def delay(backoff: Backoff, attempt: int, chance: float) -> float:
    """Seconds before restart number ``attempt`` (from 0); ``chance`` is a random number in [0, 1).

    >>> delay(Backoff(first_s=1, factor=2, max_s=5, jitter=0), 2, 0.5)
    4.0
    """
    # The exponent is capped so that a long outage cannot overflow a float.
    plain = min(backoff.first_s * backoff.factor ** min(attempt, 64), backoff.max_s)
    return float(plain * (1 + backoff.jitter * (2 * chance - 1)))
