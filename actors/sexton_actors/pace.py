"""How long bulk work rests between two pages, so that the work of others goes first; pure."""

from typing import Final

QUEUED_MANY: Final = 32
"""Writes of others that wait while a page is done: more than these, and the database is busy."""
QUIET_SHARE: Final = 0.1
"""The rest, as a part of the time that a page took, on a server that has little else to do."""
BUSY_SHARE: Final = 4.0
"""The same on a busy one: four fifths of the time are the others'."""
MAX_REST_S: Final = 2.0


class Utilization:
    """Which part of the time something was busy, by a counter of its busy seconds.

    >>> lane = Utilization(100.0, busy_s=40.0)
    >>> lane.since_last(102.0, busy_s=41.0), lane.since_last(104.0, busy_s=41.0), lane.since_last(104.0, 41.0)
    (0.5, 0.0, 0.0)
    """

    def __init__(self, now_s: float, busy_s: float) -> None:
        self._now_s, self._busy_s = now_s, busy_s

    def since_last(self, now_s: float, busy_s: float) -> float:
        """Give the part since this was asked last, or since the beginning: 0 to 1, and 0 of no time."""
        passed_s, grown_s = now_s - self._now_s, busy_s - self._busy_s
        self._now_s, self._busy_s = now_s, busy_s
        return min(1.0, grown_s / passed_s) if passed_s > 0 else 0.0


def rest_s(took_s: float, events: int, queued: int, rate_limit: int) -> float:
    """Seconds until the next page.

    ``took_s``: how long this one took. ``queued``: writes that waited before it. ``rate_limit``: events a
    second at most; 0 for as many as there may be.

    >>> rest_s(0.125, 512, queued=0, rate_limit=0), rest_s(0.125, 512, queued=100, rate_limit=0)
    (0.0125, 0.5)
    >>> rest_s(0.5, 100, queued=0, rate_limit=100), rest_s(9.0, 1, queued=100, rate_limit=0)
    (0.5, 2.0)
    """
    share = BUSY_SHARE if queued > QUEUED_MANY else QUIET_SHARE
    fair = min(MAX_REST_S, took_s * share)
    return max(fair, events / rate_limit - took_s) if rate_limit else fair
