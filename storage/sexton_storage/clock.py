"""The database's time as this node knows it."""

import time
from collections.abc import Callable


def monotonic_ms() -> float:
    return time.monotonic() * 1000


class NodeClock:
    """Our own monotonic clock plus an offset that every batch may correct.

    Being told is for any thread: an offset is one word.
    """

    def __init__(self, monotonic: Callable[[], float] = monotonic_ms) -> None:
        self._monotonic = monotonic
        self._offset: float | None = None

    def now_ms(self) -> int:
        """Give Unix ms; an error before the first observation."""
        if self._offset is None:
            raise RuntimeError("the database has not told its time yet")
        return int(self._monotonic() + self._offset)

    def observe(self, database_ms: float, sent: float, received: float) -> None:
        """Take note that the database's clock stood at ``database_ms`` between two moments of ours.

        The offset stays while it is possible at all, so that the clock does not tremble with the round trips.
        """
        least, most = database_ms - received, database_ms - sent
        if self._offset is None or not least <= self._offset <= most:
            self._offset = (least + most) / 2
