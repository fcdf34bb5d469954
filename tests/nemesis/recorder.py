"""Writes down what clients do and see, as the checker reads it, and counts it for the report."""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from typing import IO, Any, Final

from tests.nemesis.checker.history import FAIL, INVOKE, OK, UNKNOWN

NS_A_SECOND: Final = 10**9


class Recorder:
    """One line for each start and each end of an operation, by one monotonic clock."""

    def __init__(self, file: IO[str], clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._file = file
        self._clock = clock
        self._began_ns = clock()
        self._ops = 0
        self._open: dict[int, tuple[int, str]] = {}
        self._last_ok: dict[str, int] = {}
        self.ends: defaultdict[str, Counter[str]] = defaultdict(Counter)
        """Of each operation, how often it ended in which way."""
        self.refusals: Counter[str] = Counter()
        """Statuses and codes of answers that were no yes."""
        self.gaps_s: defaultdict[str, float] = defaultdict(float)
        """Of each operation, the longest time in which none of it was answered with yes."""
        self.events = 0
        """Accepted, each counted once."""
        self.renewals = 0
        self._is_over = False

    def begin(self, process: int, f: str, value: Mapping[str, Any]) -> int:
        """Write down that it begins; gives its number."""
        self._ops += 1
        self._open[self._ops] = (process, f)
        self._write(self._ops, INVOKE, value)
        return self._ops

    def ok(self, op: int, value: Mapping[str, Any]) -> None:
        f = self._open[op][1]
        self._gap(f)
        self._last_ok[f] = self._clock()
        self._end(op, OK, value)

    def fail(self, op: int, status: int, code: str) -> None:
        """It was refused, and nothing of it was done."""
        self.refusals[f"{status} {code}"] += 1
        self._end(op, FAIL, {"status": status, "code": code})

    def unknown(self, op: int, why: str) -> None:
        """It may have been done, and may still be."""
        self.refusals[why] += 1
        self._end(op, UNKNOWN, {"why": why})

    def stop_gaps(self) -> None:
        """Faults have ended: what comes now is the quiet end, where clients have ever less to ask."""
        for f in tuple(self._last_ok):
            self._gap(f)
        self._is_over = True

    def _gap(self, f: str) -> None:
        if not self._is_over:
            since_ns = self._clock() - self._last_ok.get(f, self._began_ns)
            self.gaps_s[f] = max(self.gaps_s[f], since_ns / NS_A_SECOND)

    def close(self) -> None:
        """What is still under way will never be answered."""
        for op in tuple(self._open):
            self.unknown(op, "the run is over")
        self._file.flush()

    def _end(self, op: int, kind: str, value: Mapping[str, Any]) -> None:
        self.ends[self._open[op][1]][kind] += 1
        self._write(op, kind, value)
        del self._open[op]

    def _write(self, op: int, kind: str, value: Mapping[str, Any]) -> None:
        process, f = self._open[op]
        entry = {"op": op, "process": process, "kind": kind, "f": f, "time_ns": self._clock(), "value": value}
        self._file.write(json.dumps(entry, separators=(",", ":"), default=str) + "\n")
