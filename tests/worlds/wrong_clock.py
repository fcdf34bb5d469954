"""Clocks of processes that are wrong, by libfaketime; their time passes as ever."""

from pathlib import Path
from typing import Final

LIBRARY: Final = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
"""None where the package ``faketime`` is not installed."""
RIGHT: Final = "+0"
# Without the last, a thread that waits for a while does so in a busy loop.
_MONOTONIC: Final = {"FAKETIME_DONT_FAKE_MONOTONIC": "1", "FAKETIME_FORCE_MONOTONIC_FIX": "0"}


def wrong_by(skew: str) -> dict[str, str]:
    """The environment of a process whose clock is wrong by so much, such as ``+300s``."""
    return {"LD_PRELOAD": str(LIBRARY), "FAKETIME": skew, **_MONOTONIC}


class Clock:
    """A clock that is set while its process runs, by what stands in a file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.set_right()

    def set_right(self) -> None:
        self.set(RIGHT)

    def set(self, skew: str) -> None:
        """Let it be wrong by so much, such as ``-300s``, within a second."""
        new = self._file.with_suffix(".new")
        new.write_text(f"{skew}\n")
        new.replace(self._file)

    @property
    def environment(self) -> dict[str, str]:
        read = {"FAKETIME_TIMESTAMP_FILE": str(self._file), "FAKETIME_CACHE_DURATION": "1"}
        return {"LD_PRELOAD": str(LIBRARY), **read, **_MONOTONIC}
