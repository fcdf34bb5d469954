"""Sees to it that no answer of an HTTP/2 connection waits for ever while others are sent."""

from typing import Final

TURN_BYTES: Final = 64 * 1024
"""How much may be sent to a client before an answer that has had no part of it goes first."""
PART_BYTES: Final = 16 * 1024
"""A part: less of it may be due to a window that was nearly closed."""


class Turn:
    """One answer's place among those that wait for the same client.

    libnghttp2 lets answers take turns, but a new one joins at the front. So a client that keeps asking for
    small answers would never be sent a large one.

    >>> turn = Turn()
    >>> [turn.look(0, sent) for sent in (0, 40_000, 80_000)], turn.is_first
    ([False, False, True], True)
    >>> turn.look(16_384, 96_384), turn.is_first
    (True, False)
    """

    __slots__ = ("_at", "_own", "is_first")

    def __init__(self) -> None:
        self._own = 0
        self._at: int | None = None
        self.is_first = False
        """It goes before those that do not, until a part of it is sent."""

    def look(self, own: int, sent: int) -> bool:
        """Whether ``is_first`` changes. ``own``, ``sent``: bytes sent so far of it, and on the connection."""
        was_first = self.is_first
        if self._at is None or own - self._own >= PART_BYTES:
            self._own, self._at, self.is_first = own, sent, False
        elif sent - self._at >= TURN_BYTES:
            self.is_first = True
        return self.is_first != was_first
