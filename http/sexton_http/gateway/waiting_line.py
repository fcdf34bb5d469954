"""The line in which ingress waits for its turn: short by time, fair between those who stand in it.

It is CoDel's idea, in the form that suits servers (Maurer, "Fail at Scale", ACM Queue 13(8), 2015): a line
that empties now and then absorbs a burst, so each may wait for the whole ``INTERVAL_S``. One that has not
been empty for that long only delays everybody, so whoever has waited for longer than ``TARGET_S`` is sent
away when his turn comes, and those who came last are served at once.

Whoever could not have a turn in that time need not wait to be told so: by the rate at which places become
free it is known beforehand how many will have one (Little's law), and no more are let into the line.
"""

from collections import OrderedDict, deque
from collections.abc import Hashable, Iterator
from math import ceil
from typing import Final, Generic, NamedTuple, TypeVar

INTERVAL_S: Final = 0.1
TARGET_S: Final = 0.02
LEAST: Final = 2
"""However slow it is, one that comes seldom finds a place beside one that never stops."""

T = TypeVar("T")


def patience_s(empty_at: float, now: float) -> float:
    """How long somebody may have waited, if the line was empty at ``empty_at`` last.

    >>> patience_s(10.0, 10.05), patience_s(10.0, 10.2)
    (0.1, 0.02)
    """
    return INTERVAL_S if now - empty_at <= INTERVAL_S else TARGET_S


class Rooms(NamedTuple):
    """How many a line holds: one that has just formed, and one that never empties."""

    burst: int
    standing: int


def rooms_of(rate: float, limit: float, most: int) -> Rooms:
    """As many as have their turn in time, where ``rate`` places become free in a second.

    A burst after a quiet time knows no rate: as many as may be under way at once may wait as well.

    >>> rooms_of(200.0, 8.0, 256), rooms_of(0.0, 8.0, 256), rooms_of(10_000.0, 8.0, 256)
    (Rooms(burst=20, standing=4), Rooms(burst=8, standing=2), Rooms(burst=256, standing=200))
    """
    burst, standing = ceil(max(limit, rate * INTERVAL_S)), ceil(rate * TARGET_S)
    return Rooms(min(most, max(LEAST, burst)), min(most, max(LEAST, standing)))


class WaitingLine(Generic[T]):
    """Who waits, by whom it is for: each of those has a turn in rotation, however many wait for it.

    >>> line = WaitingLine[str](room=3)
    >>> [line.join("loud", "a", 0.0), line.join("loud", "b", 0.0), line.join("quiet", "c", 0.0)]
    [None, None, None]
    >>> line.join("loud", "e", 0.0), line.has_place("loud", 0.0), line.has_place("other", 0.0)
    ('e', False, True)
    >>> line.join("other", "d", 0.0)  # Full: the longest part loses its last.
    'b'
    >>> line.take(0.0), line.take(0.0), line.take(0.0), line.take(0.0)
    (('a', []), ('c', []), ('d', []), (None, []))
    """

    def __init__(self, room: int) -> None:
        self.rooms = Rooms(room, room)
        """Changed as the line is served faster or slower; who stands in it keeps his place."""
        self._lines: OrderedDict[Hashable, deque[tuple[float, T]]] = OrderedDict()
        self._size = 0
        self._empty_at = 0.0

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        return f"<WaitingLine {self._size}/{self.rooms.burst}, of {len(self._lines)}>"

    def has_place(self, whose: Hashable, now: float) -> bool:
        """Whether there is room, or one who takes more of it than this one would."""
        return self._size < self._room(now) or self._longest_beside(whose) is not None

    def join(self, whose: Hashable, who: T, now: float) -> T | None:
        """Stand in line; gives whoever has to go for it, who may be the same."""
        if self._size >= self._room(now):
            longest = self._longest_beside(whose)
            if longest is None:
                return who
            gone = self._pop(longest, last=True)
        else:
            gone = None
        if not self._size:
            self._empty_at = now
        self._lines.setdefault(whose, deque()).append((now, who))
        self._size += 1
        return gone

    def take(self, now: float) -> tuple[T | None, list[T]]:
        """Call the next; gives it, and those before who had waited too long by then."""
        late: list[T] = []
        while self._size:
            bound_s = patience_s(self._empty_at, now)
            whose = next(iter(self._lines))
            since = self._lines[whose][0][0]
            who = self._pop(whose)
            if now - since <= bound_s:
                if whose in self._lines:
                    self._lines.move_to_end(whose)
                return who, late
            late.append(who)
        self._empty_at = now
        return None, late

    def leave(self, whose: Hashable, who: T) -> None:
        """Whoever does not wait any longer."""
        line = self._lines.get(whose, deque())
        for place, (_, one) in enumerate(line):
            if one is who:
                del line[place]
                self._size -= 1
                break
        if not line:
            self._lines.pop(whose, None)

    def __iter__(self) -> Iterator[T]:
        return (who for line in self._lines.values() for _, who in line)

    def _room(self, now: float) -> int:
        has_formed_now = not self._size or now - self._empty_at <= INTERVAL_S
        return self.rooms.burst if has_formed_now else self.rooms.standing

    def _longest_beside(self, whose: Hashable) -> Hashable | None:
        """The longest part, if it is longer than that of ``whose`` with one more would be."""
        if not self._lines:
            return None
        longest = max(self._lines, key=lambda one: len(self._lines[one]))
        mine = len(self._lines.get(whose, ()))
        return longest if len(self._lines[longest]) > mine + 1 else None

    def _pop(self, whose: Hashable, *, last: bool = False) -> T:
        line = self._lines[whose]
        _, who = line.pop() if last else line.popleft()
        self._size -= 1
        if not line:
            del self._lines[whose]
        return who
