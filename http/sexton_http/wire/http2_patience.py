"""Until when an answer of HTTP/2 waits for its client."""

import math
from typing import Final

from sexton_http.wire import timeouts

PART_BYTES: Final = 16 * 1024
"""Whoever takes less in ``WRITE_S`` is not reading: else a byte now and then would hold an answer."""


class Patience:
    """A client has ``WRITE_S`` for each part of an answer, and as long for a last part that is shorter.

    >>> patience = Patience()
    >>> patience.begin(now=0.0, taken=100)
    >>> [patience.look(now, 100 + took) for now, took in ((19.0, 16_383), (19.5, 16_384), (30.0, 20_000))]
    [20.0, 39.5, 39.5]
    >>> patience.end()
    >>> patience.due
    inf
    """

    __slots__ = ("_taken", "due")

    def __init__(self) -> None:
        self._taken = 0
        self.due = math.inf
        """When the client must have taken the next part; ``math.inf`` while none waits for it."""

    def begin(self, now: float, taken: int) -> None:
        """Something waits for the client. ``taken``: bytes of the answer that are on their way."""
        if self.due == math.inf:
            self.due, self._taken = now + timeouts.WRITE_S, taken

    def look(self, now: float, taken: int) -> float:
        """Until when it is waited now."""
        if taken - self._taken >= PART_BYTES:
            self.due, self._taken = now + timeouts.WRITE_S, taken
        return self.due

    def exhaust(self) -> None:
        """It is waited no longer."""
        self.due = -math.inf

    def end(self) -> None:
        """The client has taken all, or has gone."""
        self.due = math.inf
