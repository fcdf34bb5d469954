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


def answered(entries: Iterable[Entry]) -> list[Done]:
    """All that ended with yes, in the order of their ends. Raises NotAHistory.

    >>> begin = Entry(1, 0, INVOKE, "send", 10, {"agent": "a"})
    >>> answered([begin, Entry(1, 0, OK, "send", 20, {"event": "e"})])
    [Done(f='send', began_ns=10, ended_ns=20, value={'agent': 'a', 'event': 'e'})]
    """
    began: dict[int, Entry] = {}
    ended: set[int] = set()
    done: list[Done] = []
    for entry in entries:
        if entry.kind not in KINDS:
            raise NotAHistory(f"operation {entry.op} is of no known kind: {entry.kind}")
        if entry.kind == INVOKE:
            if entry.op in began:
                raise NotAHistory(f"operation {entry.op} began twice")
            began[entry.op] = entry
            continue
        start = began.get(entry.op)
        if start is None or entry.op in ended or start.f != entry.f or entry.time_ns < start.time_ns:
            raise NotAHistory(f"operation {entry.op} ended without a beginning, or twice")
        ended.add(entry.op)
        if entry.kind == OK:
            done.append(Done(entry.f, start.time_ns, entry.time_ns, start.value | entry.value))
    return done


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
