"""Makes one history of those of many processes, and counts it, with one line of each in memory."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from heapq import merge
from pathlib import Path
from typing import IO, Any, Final

import orjson

from tests.nemesis.checker.history import FAIL, INVOKE, UNKNOWN

NS_A_SECOND: Final = 10**9
Entry = dict[str, Any]
CUT_SHORT: Final = "its client was killed"


class Tally:
    """What a run came to, as its history has it."""

    def __init__(self, began_ns: int, ended_ns: int) -> None:
        """Gaps are those between the two; what comes later is the quiet end, with ever less to ask."""
        self._began_ns = began_ns
        self._ended_ns = ended_ns
        self._last_ok: dict[str, int] = {}
        self._accepted: set[str] = set()
        self.ends: defaultdict[str, Counter[str]] = defaultdict(Counter)
        """Of each operation, how often it ended in which way."""
        self.refusals: Counter[str] = Counter()
        """Statuses and codes of answers that were no yes."""
        self.gaps_s: defaultdict[str, float] = defaultdict(float)
        """Of each operation, the longest time in which none of it was answered with yes."""
        self.renewals = 0
        self.refused_renewals: Counter[str] = Counter()
        """Of leases in a batch, by status."""

    @property
    def events(self) -> int:
        """Accepted, each counted once."""
        return len(self._accepted)

    def count(self, entry: Entry) -> None:
        """One more line, in the order of time."""
        kind, f, value = entry["kind"], entry["f"], entry["value"]
        if kind == INVOKE:
            return
        self.ends[f][kind] += 1
        if kind == FAIL:
            self.refusals[f"{value['status']} {value['code']}"] += 1
        elif kind == UNKNOWN:
            self.refusals[value["why"]] += 1
        else:
            self._answered(f, entry["time_ns"], value)

    def _answered(self, f: str, time_ns: int, value: Entry) -> None:
        self._gap(f, time_ns)
        self._last_ok[f] = time_ns
        if f == "send":
            self._accepted.add(value["event"])
        elif f == "renew-batch":
            self.renewals += len(value["slices"])
            self.refused_renewals.update(str(status) for status in value["refused"].values())

    def close(self) -> None:
        """No line is left."""
        for f in tuple(self._last_ok):
            self._gap(f, self._ended_ns)

    def _gap(self, f: str, until_ns: int) -> None:
        since_ns = max(self._last_ok.get(f, self._began_ns), self._began_ns)
        gap_s = (min(until_ns, self._ended_ns) - since_ns) / NS_A_SECOND
        if not f.startswith("read-"):
            self.gaps_s[f] = max(self.gaps_s[f], gap_s)


def merge_histories(parts: Sequence[Path], into: IO[bytes], tally: Tally) -> None:
    """Write all in the order of time; an operation whose process was killed ends, at last, as unknown."""
    under_way: dict[int, Entry] = {}
    last_ns = 0
    with ExitStack() as stack:
        files = [stack.enter_context(part.open("rb")) for part in parts]
        for time_ns, _, _, entry, line in merge(*map(_lines, range(len(files)), files)):
            last_ns = time_ns
            if entry["kind"] == INVOKE:
                under_way[entry["op"]] = entry
            else:
                del under_way[entry["op"]]
            tally.count(entry)
            into.write(line)
    for entry in under_way.values():
        ended = entry | {"kind": UNKNOWN, "time_ns": last_ns, "value": {"why": CUT_SHORT}}
        tally.count(ended)
        into.write(orjson.dumps(ended) + b"\n")
    tally.close()


def _lines(place: int, file: Iterable[bytes]) -> Iterator[tuple[int, int, int, Entry, bytes]]:
    """With the time, and what keeps two lines of one moment in their order."""
    for number, line in enumerate(file):
        if line.endswith(b"\n"):  # The last one of a process that was killed may be cut short.
            entry = orjson.loads(line)
            yield entry["time_ns"], place, number, entry, line
