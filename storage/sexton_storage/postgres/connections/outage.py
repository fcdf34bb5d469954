"""Says once that the database went away, and once that it is back, whoever of us notices."""

import logging
import time
from collections.abc import Callable

log = logging.getLogger("sexton.storage")


class Outage:
    """Shared by the pool and the lanes of one node; lives in the asyncio thread.

    It lasts from the first who lost the database until all of them that did have it back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._without: set[str] = set()
        self._since = 0.0
        self._listeners: list[Callable[[], None]] = []

    def on_begin(self, listener: Callable[[], None]) -> None:
        self._listeners.append(listener)

    def part(self, name: str) -> "Part":
        """Give one of those who share it a name."""
        return Part(self, name)

    def begin(self, who: str, error: BaseException) -> bool:
        """``who`` has no database now; False when that was known."""
        if who in self._without:
            return False
        if not self._without:
            self._since = self._clock()
            log.warning("the database went away: %s", one_line(error))
            for listener in self._listeners:
                listener()
        self._without.add(who)
        return True

    def end(self, who: str) -> None:
        """``who`` has it again."""
        if who not in self._without:
            return
        self._without.remove(who)
        if not self._without:
            log.warning("the database is back after %.1f s", self._clock() - self._since)


class Part:
    """One of those who use the database."""

    def __init__(self, outage: Outage, name: str) -> None:
        self._outage = outage
        self._name = name

    def begin(self, error: BaseException) -> bool:
        """It has no database now; False when that was known."""
        return self._outage.begin(self._name, error)

    def end(self) -> None:
        """It has its database again."""
        self._outage.end(self._name)


def one_line(error: BaseException) -> str:
    r"""Tell an error's kind and its first line; asyncpg adds hints on lines of their own.

    >>> one_line(OSError("refused\nHINT: look"))
    'OSError: refused'
    >>> one_line(TimeoutError())
    'TimeoutError'
    """
    first = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
