"""What happened in a simulation, line by line, and one number for all of it."""

import hashlib


class Trace:
    """Grows by lines; ``lines`` holds them where they are kept to be read."""

    def __init__(self, *, kept: bool = False) -> None:
        self._digest = hashlib.sha256()
        self._kept = kept
        self.lines: list[str] = []

    def note(self, at: float, *words: object) -> None:
        """Add a line. No word may depend on an address in memory, or on the hash of a text."""
        line = f"{at:.9f} {' '.join(map(str, words))}"
        self._digest.update(line.encode() + b"\n")
        if self._kept:
            self.lines.append(line)

    def sha256(self) -> str:
        """The digest of all lines so far."""
        return self._digest.hexdigest()
