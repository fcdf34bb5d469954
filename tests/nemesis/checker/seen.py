"""A history as the rules look at it, held compactly: a long run has more than a million rows.

The last operations of a history read all rows once the faults have healed, on as many pages as it takes:
``read-events``, ``read-leases``, ``read-gates``, ``read-metering`` and ``read-money``. A history without them
proves nothing, and is refused.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from sys import intern
from typing import Any, Final

from tests.nemesis.checker.history import INVOKE, Done, Entry, NotAHistory, answered

Row = dict[str, Any]
READ: Final = "read-"
METERING: Final = "read-metering"
READS: Final = ("events", "leases", "gates", "metering", "money")


class Metered:
    """All slices of all attempts, with what each was charged."""

    def __init__(self) -> None:
        self.slices: defaultdict[tuple[str, int], dict[int, int]] = defaultdict(dict)
        """Of each event and attempt, by number."""
        self.of_event: Counter[str] = Counter()
        self.of_tenant: Counter[str] = Counter()
        self.twice: list[tuple[str, int, int]] = []

    def add(self, row: Row) -> None:
        event, attempt, number, charged = intern(row["event"]), row["attempt"], row["slice"], row["charged"]
        of_attempt = self.slices[event, attempt]
        if number in of_attempt:
            self.twice.append((event, attempt, number))
        of_attempt[number] = charged
        self.of_event[event] += charged
        self.of_tenant[intern(row["tenant"])] += charged


class Seen:
    """A history, sorted by what was asked; it is read once, entry by entry."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.metered = Metered()
        self.first_tried: dict[str, int] = {}
        """When a delivery was sent first, whatever became of that try: it may be the one that was kept."""
        self._done: defaultdict[str, list[Done]] = defaultdict(list)
        self._rows: dict[str, list[Row]] = {}
        for one in answered(self._noted(entries)):
            if one.f.startswith(READ) and "rows" in one.value:
                self._keep(one)
            else:
                self._done[one.f].append(one._replace(f=intern(one.f), value=_compact(one.value)))
        missing = [name for name in READS if name not in self._rows]
        if missing:
            raise NotAHistory(f"nobody read the {' and '.join(missing)} at the end")

    def done(self, f: str) -> list[Done]:
        return self._done.get(f, [])

    def rows(self, name: str) -> list[Row]:
        """What all pages of the last read gave together; those of metering are in ``metered``."""
        return self._rows[name]

    def _noted(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        for entry in entries:
            if entry.f == "send" and entry.kind == INVOKE:
                self.first_tried.setdefault(intern(entry.value["delivery"]), entry.time_ns)
            yield entry

    def _keep(self, page: Done) -> None:
        rows = self._rows.setdefault(page.f.removeprefix(READ), [])
        if page.f == METERING:
            for row in page.value["rows"]:
                self.metered.add(row)
        else:
            rows.extend(map(_compact, page.value["rows"]))


def _compact(value: Any) -> Any:
    """The same, with one string in memory for all that are equal: ids come again and again."""
    if isinstance(value, str):
        return intern(value)
    if isinstance(value, dict):
        return {intern(key): _compact(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_compact(one) for one in value]
    return value
