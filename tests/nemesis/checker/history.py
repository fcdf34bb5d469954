"""What clients did and saw, one line of JSON for each entry; knows nothing of the product."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

INVOKE: Final = "invoke"
OK: Final = "ok"
FAIL: Final = "fail"
UNKNOWN: Final = "unknown"
"""No answer came, or one that leaves open whether it was done."""
KINDS: Final = (INVOKE, OK, FAIL, UNKNOWN)


class Entry(NamedTuple):
    """The start or the end of one operation."""

    op: int
    """The same at its start and its end."""
    process: int
    """Of the client; it has one operation under way."""
    kind: str
    f: str
    """What is done: ``send``, ``grant``, ``renew``, ``renew-batch``, ``report``, ``open-gate``, ``decide``,
    ``follow``, or one of the reads."""
    time_ns: int
    value: dict[str, Any]


class Done(NamedTuple):
    """One operation that was answered with yes."""

    f: str
    began_ns: int
    ended_ns: int
    value: dict[str, Any]


class NotAHistory(ValueError):
    """The entries are no history: nothing can be said about them."""


def answered(entries: Iterable[Entry]) -> Iterator[Done]:
    """All that ended with yes, in the order of their ends; keeps what is under way alone. Raises NotAHistory.

    >>> begin = Entry(1, 0, INVOKE, "send", 10, {"agent": "a"})
    >>> list(answered([begin, Entry(1, 0, OK, "send", 20, {"event": "e"})]))
    [Done(f='send', began_ns=10, ended_ns=20, value={'agent': 'a', 'event': 'e'})]
    """
    under_way: dict[int, Entry] = {}
    seen: set[int] = set()
    for entry in entries:
        if entry.kind not in KINDS:
            raise NotAHistory(f"operation {entry.op} is of no known kind: {entry.kind}")
        if entry.kind == INVOKE:
            if entry.op in seen:
                raise NotAHistory(f"operation {entry.op} began twice")
            seen.add(entry.op)
            under_way[entry.op] = entry
            continue
        start = under_way.pop(entry.op, None)
        if start is None or start.f != entry.f or entry.time_ns < start.time_ns:
            raise NotAHistory(f"operation {entry.op} ended without a beginning, or twice")
        if entry.kind == OK:
            yield Done(entry.f, start.time_ns, entry.time_ns, start.value | entry.value)


def write(entries: Iterable[Entry], path: Path) -> None:
    """Keep a history."""
    with path.open("w", encoding="utf-8") as file:
        for entry in entries:
            file.write(json.dumps(entry._asdict(), separators=(",", ":")) + "\n")


def read(path: Path) -> Iterator[Entry]:
    """A history that was kept. Raises NotAHistory."""
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                yield Entry(**json.loads(line))
            except (TypeError, ValueError) as error:
                raise NotAHistory(f"line {number}: {error}") from error
