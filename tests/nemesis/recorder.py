"""Writes down what clients do and see, as the checker reads it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import IO, Any

import orjson

from tests.nemesis.checker.history import FAIL, INVOKE, OK, UNKNOWN


class Recorder:
    """One line for each start and each end of an operation, by the one monotonic clock of a machine.

    Nothing is kept of what has ended: the file has it.
    """

    def __init__(
        self, file: IO[bytes], clock: Callable[[], int] = time.monotonic_ns, *, first_op: int = 0
    ) -> None:
        """``file`` holds nothing back; ``first_op``: operations get the numbers from the next on."""
        self._file = file
        self._clock = clock
        self._ops = first_op
        self._open: dict[int, tuple[int, str]] = {}
        self.events = 0
        """Accepted, each counted once."""
        self.renewals = 0

    def begin(self, process: int, f: str, value: Mapping[str, Any]) -> int:
        """Write down that it begins; gives its number."""
        self._ops += 1
        self._open[self._ops] = (process, f)
        self._write(self._ops, INVOKE, value)
        return self._ops

    def ok(self, op: int, value: Mapping[str, Any]) -> None:
        self._end(op, OK, value)

    def fail(self, op: int, status: int, code: str) -> None:
        """It was refused, and nothing of it was done."""
        self._end(op, FAIL, {"status": status, "code": code})

    def unknown(self, op: int, why: str) -> None:
        """It may have been done, and may still be."""
        self._end(op, UNKNOWN, {"why": why})

    def close(self) -> None:
        """What is still under way will never be answered."""
        for op in tuple(self._open):
            self.unknown(op, "the run is over")

    def _end(self, op: int, kind: str, value: Mapping[str, Any]) -> None:
        self._write(op, kind, value)
        del self._open[op]

    def _write(self, op: int, kind: str, value: Mapping[str, Any]) -> None:
        process, f = self._open[op]
        entry = {"op": op, "process": process, "kind": kind, "f": f, "time_ns": self._clock(), "value": value}
        self._file.write(orjson.dumps(entry) + b"\n")
