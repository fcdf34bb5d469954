"""Decides which of the connections that have just been taken is served first."""

import socket
from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Final

ROOM: Final = 1024
"""How many may be taken and not served yet. The others stay in the kernel, where nobody sees who they are."""
ROOM_SHARE: Final = 16
"""They are at most the files that may be open divided by this."""
TAKEN: Final = 256
"""How many are taken in one turn of the loop, which costs a tenth of what it costs to serve them."""
AT_ONCE: Final = 16
"""How many begin to be served in one turn of the loop at least. With one, a busy loop would keep those behind
it waiting for as many turns; with all, a flood of them would make one long turn."""
SHARE: Final = 4
"""More begin where this part of those that wait is more: else the line would outlast their patience."""
OTHERS: Final = 4
"""How many of those that begin at least are not of those that go first, if any waits."""


class Rank(Enum):
    """When a connection is served."""

    DONE = "done"
    """It was answered, and is closed."""
    FIRST = "first"
    """Before those that come in turn: what it asks for is never held back."""
    IN_TURN = "in turn"


def newcomers_within(files: int) -> int:
    """How many newcomers may wait under a limit on open files.

    >>> newcomers_within(1024), newcomers_within(524_288)
    (64, 1024)
    """
    return min(ROOM, files // ROOM_SHARE)


class Newcomers:
    """Two lines, each in the order in which they came.

    >>> begun = []
    >>> newcomers = Newcomers(begun.append)
    >>> for number in range(20):
    ...     newcomers.put(number, Rank.IN_TURN)
    >>> newcomers.put("health", Rank.FIRST)
    >>> newcomers.begin_some()
    >>> begun[0], len(begun), bool(newcomers)
    ('health', 16, True)
    >>> newcomers.begin_some(), len(begun), bool(newcomers)
    (None, 21, False)
    """

    def __init__(self, begin: Callable[[socket.socket], None], room: int = ROOM) -> None:
        """``begin`` serves one, and does not wait. ``room``: how many may wait."""
        self._begin = begin
        self._room = room
        self._first: deque[socket.socket] = deque()
        self._in_turn: deque[socket.socket] = deque()

    def __repr__(self) -> str:
        return f"<Newcomers {len(self._first)} first, {len(self._in_turn)} in turn>"

    def __bool__(self) -> bool:
        return bool(self._first or self._in_turn)

    @property
    def room(self) -> int:
        """How many more may be put in now."""
        return min(TAKEN, self._room - len(self._first) - len(self._in_turn))

    def put(self, taken: socket.socket, rank: Rank) -> None:
        """Have it wait."""
        if rank is not Rank.DONE:
            (self._first if rank is Rank.FIRST else self._in_turn).append(taken)

    def begin_some(self) -> None:
        """Serve those whose turn it is."""
        most = max(AT_ONCE, (len(self._first) + len(self._in_turn)) // SHARE)
        first = min(most, len(self._first))
        for _ in range(first):
            self._begin(self._first.popleft())
        for _ in range(min(max(OTHERS, most - first), len(self._in_turn))):
            self._begin(self._in_turn.popleft())

    def begin_all(self) -> None:
        """Serve all that wait: nobody comes after them for now."""
        while self:
            self.begin_some()
