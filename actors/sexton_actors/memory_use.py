"""What this process holds of memory, and how the C library gives back to the kernel what it has freed."""

import ctypes
import os
from pathlib import Path
from typing import Final, Protocol

import trio

STATM: Final = Path("/proc/self/statm")
RESIDENT_FIELD: Final = 1
"""The field of ``statm`` that counts resident pages."""


class MemoryUse(Protocol):
    """The memory of one process."""

    def resident(self) -> int:
        """Bytes that are in use now; 0 where the kernel does not tell."""
        ...

    def trim(self) -> None:
        """Begin to give free memory back, and do not wait for the end."""
        ...


class ProcessMemory:
    """The memory of this process, on Linux with glibc; elsewhere nothing is known and nothing done."""

    def __init__(self) -> None:
        self._page = os.sysconf("SC_PAGE_SIZE") if STATM.exists() else 0
        self._trim = _malloc_trim()

    def __repr__(self) -> str:
        return f"<ProcessMemory {self.resident()}>"

    def resident(self) -> int:
        if self._page == 0:
            return 0
        return int(STATM.read_text(encoding="ascii").split()[RESIDENT_FIELD]) * self._page

    def trim(self) -> None:
        if self._trim is not None:
            # In a thread, and without the interpreter's lock: the loop goes on meanwhile.
            trio.lowlevel.start_thread_soon(self._trim, _ignore, "sexton-trim")


class _Trim:
    """Call ``malloc_trim``: all arenas give back whole pages that are free, also between those in use."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    def __call__(self) -> None:
        self._library.malloc_trim(0)


def _malloc_trim() -> _Trim | None:
    try:
        library = ctypes.CDLL(None)
        library.malloc_trim.argtypes = [ctypes.c_size_t]
        library.malloc_trim.restype = ctypes.c_int
    except (OSError, AttributeError, TypeError):
        return None  # Not glibc.
    return _Trim(library)


def _ignore(_outcome: object) -> None:
    """Nobody waits for it; the next round sees what came of it."""
