"""What agents remember from one run to the next, and which of it makes room when there is too much."""

import unicodedata
from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple, Protocol
from uuid import UUID

import msgspec

from sexton_storage.documents import storable
from sexton_storage.records.leases import LeaseToken
from sexton_storage.terms import DAILY_KEEP_MS, MEMORY_LIMIT, QUERY_WORDS

CORE = "core"
"""The category that never makes room for another."""
DAILY = "daily"
"""The category that is forgotten by itself."""


class Memory(msgspec.Struct, frozen=True, gc=False):
    """One entry; the key is its name within its agent."""

    zombie_id: UUID
    key: str
    content: str
    category: str
    updated_at: int


class MemoryChange(msgspec.Struct, frozen=True, gc=False):
    """An entry to keep under its key, replacing one that is there; ``content`` None forgets it."""

    key: str
    content: str | None
    category: str = ""


class Remembered(msgspec.Struct, frozen=True, gc=False):
    """``refused`` are the keys for which there was no room: all entries that are kept are ``core``."""

    refused: tuple[str, ...]


class Mark(NamedTuple):
    """What decides about an entry that is kept."""

    category: str
    updated_at: int


class Plan(NamedTuple):
    """``put`` by key, ``drop`` is deleted; no key is in both."""

    put: Mapping[str, MemoryChange]
    drop: frozenset[str]
    refused: tuple[str, ...]


def plan(kept: Mapping[str, Mark], changes: Sequence[MemoryChange], now: int) -> Plan:
    """Change by change, as if each came alone; a new entry takes the place of the oldest not ``core``.

    >>> plan({}, [MemoryChange("a", "1", "core"), MemoryChange("a", None)], 0).put
    {}
    >>> full = {str(n): Mark("core", n) for n in range(MEMORY_LIMIT)}
    >>> plan(full, [MemoryChange("new", "1", "core")], 0).refused
    ('new',)
    """
    room = _Room(
        {key: mark for key, mark in kept.items() if not is_over(mark.category, mark.updated_at, now)}
    )
    put: dict[str, MemoryChange] = {}
    refused: dict[str, None] = {}
    for change in changes:
        key, category = storable(change.key), storable(change.category)
        refused.pop(key, None)
        if change.content is None:
            room.marks.pop(key, None)
        elif key in room.marks or room.make():
            room.take(key, Mark(category, now))
            put[key] = MemoryChange(key, storable(change.content), category)
        else:
            refused[key] = None
    here = {key: change for key, change in put.items() if key in room.marks}
    return Plan(here, frozenset(kept.keys() - room.marks.keys()), tuple(refused))


class _Room:
    """The entries that stay, and the next to go; those are sorted only when the first has to."""

    def __init__(self, marks: dict[str, Mark]) -> None:
        self.marks = marks
        self._oldest: list[tuple[int, str]] | None = None

    def take(self, key: str, mark: Mark) -> None:
        self.marks[key] = mark
        if self._oldest is not None:
            heappush(self._oldest, (mark.updated_at, key))

    def make(self) -> bool:
        """Whether there is room for one more, if need be in place of the oldest that is not ``core``."""
        if len(self.marks) < MEMORY_LIMIT:
            return True
        if self._oldest is None:
            self._oldest = [(mark.updated_at, key) for key, mark in self.marks.items()]
            heapify(self._oldest)
        while self._oldest:
            at, key = heappop(self._oldest)
            mark = self.marks.get(key)
            # What was changed or forgotten since stands further back, or not at all.
            if mark is not None and mark.category != CORE and mark.updated_at == at:
                del self.marks[key]
                return True
        return False


def is_over(category: str, updated_at: int, now: int) -> bool:
    """Whether an entry has outlived its category.

    >>> is_over("daily", 0, DAILY_KEEP_MS - 1), is_over("daily", 0, DAILY_KEEP_MS), is_over("core", 0, 10**15)
    (False, True, False)
    """
    return category == DAILY and updated_at + DAILY_KEEP_MS <= now


def folded(text: str) -> str:
    r"""Text as it is searched: without the difference between capitals, widths and ways to write an accent.

    >>> folded("Straße \uff21") == folded("STRASSE a")
    True
    """
    return storable(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()))


def words_of(query: str) -> tuple[str, ...]:
    """What is looked for: the first words, each once.

    >>> words_of("  The deploy  THE ")
    ('the', 'deploy')
    """
    return tuple(dict.fromkeys(folded(query).split()))[:QUERY_WORDS]


class MemoriesStore(Protocol):
    """Only of entries that live: a ``daily`` one past its time is not there, swept or not."""

    async def keep(
        self, zombie_id: UUID, held: LeaseToken, changes: Sequence[MemoryChange], now: int
    ) -> Remembered | None:
        """Change entries under a lease of this agent that is live and unexpired by the database's clock.

        None, and nothing is changed, when it is not. Two at once never pass ``MEMORY_LIMIT``.
        """
        ...

    async def forget(self, zombie_id: UUID, key: str) -> bool:
        """Forget an entry as a person asks, whatever lease is held; False where there is none."""
        ...

    async def search(
        self, zombie_id: UUID, *, query: str, category: str | None, limit: int
    ) -> tuple[Sequence[Memory], int]:
        """Entries that hold a word of the query anywhere, in key or content, with the number of all such.

        Those with more of its words come first, then the newest, then by key. Without words: all entries.
        """
        ...

    async def of_lease(self, zombie_id: UUID, *, limit: int) -> Sequence[Memory]:
        """What a run begins with: ``core`` first, then the newest, then by key."""
        ...
