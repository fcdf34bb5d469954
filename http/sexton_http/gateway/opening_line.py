"""Lets few streams be opened at once, and callers in turn, so that hundreds never make one long turn."""

from collections import OrderedDict, deque
from collections.abc import Hashable
from typing import Final

import trio

AT_ONCE: Final = 8
"""To open a stream takes a look-up of its caller and two questions to the database."""
EACH: Final = 4
"""How many of these are one caller's at most, so that others never wait for all of his."""
WAIT_S: Final = 10.0
"""Whoever has had no turn by then is sent away: what he would be told he may no longer want to know."""


class Turn:
    """The right to open one stream now."""

    __slots__ = ("_line", "_whose")

    def __init__(self, line: "OpeningLine", whose: Hashable) -> None:
        self._line: OpeningLine | None = line
        self._whose = whose

    def leave(self) -> None:
        """It is open, or will not be; a second time does nothing."""
        line, self._line = self._line, None
        if line is not None:
            line.leave(self._whose)


class OpeningLine:
    """Who waits to open a stream, by caller; whoever has waited while others were served is next."""

    def __init__(self, at_once: int = AT_ONCE, each: int = EACH) -> None:
        self._at_once, self._each = at_once, each
        self._opening: dict[Hashable, int] = {}
        self._now = 0
        self._lines: OrderedDict[Hashable, deque[trio.Event]] = OrderedDict()

    def __repr__(self) -> str:
        return f"<OpeningLine {self._now}/{self._at_once}, {sum(map(len, self._lines.values()))} wait>"

    async def take(self, whose: Hashable) -> Turn | None:
        """Wait for a turn, which the caller is to leave; None: there was none in time."""
        if whose not in self._lines and self._has_room(whose):
            self._count(whose)
            return Turn(self, whose)
        called = trio.Event()
        self._lines.setdefault(whose, deque()).append(called)
        try:
            with trio.move_on_after(WAIT_S):
                await called.wait()
                return Turn(self, whose)
        except trio.Cancelled:
            self._give_up(whose, called)
            raise
        self._give_up(whose, called)
        return None

    def leave(self, whose: Hashable) -> None:
        """For ``Turn``."""
        self._now -= 1
        self._opening[whose] -= 1
        if not self._opening[whose]:
            del self._opening[whose]
        self._call_next()

    def _give_up(self, whose: Hashable, called: trio.Event) -> None:
        if called.is_set():
            self.leave(whose)
        else:
            self._forget(whose, called)

    def _has_room(self, whose: Hashable) -> bool:
        return self._now < self._at_once and self._opening.get(whose, 0) < self._each

    def _count(self, whose: Hashable) -> None:
        self._now += 1
        self._opening[whose] = self._opening.get(whose, 0) + 1

    def _call_next(self) -> None:
        while self._now < self._at_once:
            whose = next((one for one in self._lines if self._opening.get(one, 0) < self._each), None)
            if whose is None:
                return
            called = self._lines[whose][0]
            self._forget(whose, called)
            if whose in self._lines:
                self._lines.move_to_end(whose)
            self._count(whose)
            called.set()

    def _forget(self, whose: Hashable, called: trio.Event) -> None:
        line = self._lines[whose]
        line.remove(called)
        if not line:
            del self._lines[whose]
