"""What happened in a simulation, line by line, and one number for all of it."""

import hashlib
from typing import Final

LINES_AT_ONCE: Final = 1_000


class Trace:
    """Grows by lines; ``lines`` holds them where they are kept to be read."""

    def __init__(self, *, kept: bool = False) -> None:
        self._digest = hashlib.sha256()
        self._kept = kept
        self._fresh: list[str] = []
        """Lines that the digest does not have yet: it takes many at once."""
        self.lines: list[str] = []

    def note(self, at: float, *words: object) -> None:
        """Add a line. No word may depend on an address in memory, or on the hash of a text."""
        self.add(f"{at:.9f} {' '.join(map(str, words))}")

    def turn(self, at: float, number: int) -> None:
        """Note the turn of a task that nobody else wanted to have, as most are."""
        self.add(f"{at:.9f} turn {number}")

    def add(self, line: str) -> None:
        fresh = self._fresh
        fresh.append(line)
        if len(fresh) == LINES_AT_ONCE:
            self._take_in()
        if self._kept:
            self.lines.append(line)

    def _take_in(self) -> None:
        self._fresh.append("")
        self._digest.update("\n".join(self._fresh).encode())
        self._fresh.clear()

    def sha256(self) -> str:
        """The digest of all lines so far."""
        if self._fresh:
            self._take_in()
        return self._digest.hexdigest()
