"""Spreads out when callers come again: those who were turned away together would come back together."""

import random
from typing import Final

SPREAD_MIN_S: Final = 2
SPREAD_MAX_S: Final = 60
SPREAD_SHARE: Final = 4
"""A wait grows by up to this part of it, within the two bounds."""


def jittered_s(wait_s: int, luck: float | None = None) -> int:
    """A wait in whole seconds, never shorter than ``wait_s``; ``luck`` is from 0 up to, not including, 1.

    >>> [jittered_s(1, luck) for luck in (0.0, 0.5, 0.99)]
    [1, 2, 3]
    >>> jittered_s(40, 0.99), jittered_s(86_400, 0.99)
    (50, 86460)
    """
    spread = max(SPREAD_MIN_S, min(wait_s // SPREAD_SHARE, SPREAD_MAX_S))
    return wait_s + int(_luck(luck) * (spread + 1))


def jittered_ms(wait_ms: int, luck: float | None = None) -> int:
    """A wait in milliseconds, up to twice as long as ``wait_ms``: what streams are told in ``retry``.

    >>> [jittered_ms(2000, luck) for luck in (0.0, 0.5)]
    [2000, 3000]
    """
    return wait_ms + int(_luck(luck) * wait_ms)


def _luck(given: float | None) -> float:
    return random.random() if given is None else given  # noqa: S311 - it spreads callers, and keeps no secret
