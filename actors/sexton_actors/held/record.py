"""The record as its actor holds it: read, adopted, and changed against other writers."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Hashable
from typing import ClassVar, Generic, TypeVar
from uuid import UUID

from sexton_actors.addresses import uuid_key
from sexton_actors.held.freshness import Freshness, Knowledge
from sexton_actors.held.races import decide_until_kept, raced
from sexton_actors.refusal import Refusal
from sexton_actors.world import World
from sexton_engine import Context
from sexton_storage.refusals import Lost

R = TypeVar("R")
T = TypeVar("T")
Attempt = Callable[[R, int], Awaitable[T | Lost]]
"""Decides on the record at a time (Unix ms), and writes; ``Lost`` or ``Conflict``: another node was first."""


class Held(ABC, Generic[R]):
    """One record of one actor. It may be behind: every write names the version that was seen.

    How it is read, and what follows from it, is each kind's own; when it is read, and what happens when
    another node writes first, is the same for all. docs/reference/states.md shows the states.
    """

    __slots__ = ("_mark", "context", "freshness", "record", "world")

    subject: ClassVar[str]
    """The record, as the beginning of a sentence to a person."""

    def __init__(self, context: Context, world: World, *, fresh_ms: int | None = None) -> None:
        self.context = context
        self.world = world
        self.record: R | None = None
        self.freshness = Freshness(fresh_ms)
        self._mark = 0

    def __repr__(self) -> str:
        known = "not loaded" if self.record is None else f"version {self._version(self.record)}"
        return f"<{type(self).__name__} {self.context.key} {known}>"

    @property
    def id(self) -> UUID:
        return uuid_key(self.context)

    @abstractmethod
    async def _read(self) -> R | None:
        """The record as it is in the database; None when there is none. Raises StorageUnavailable."""

    @abstractmethod
    def _version(self, record: R) -> Hashable:
        """What is different after each write of another node."""

    @abstractmethod
    def unknown(self) -> Refusal:
        """What those are told who ask for a record that does not exist."""

    def _may_have_changed(self, _mark: int) -> bool:
        """Whether another node may have changed it since the mark (of ``ChangedRecords``)."""
        return False

    def raced(self) -> Refusal:
        return raced(self.subject)

    async def refresh(self) -> R | None:
        """The record as it may be decided on, read first if need be; None when there is none."""
        changed = self._may_have_changed(self._mark)
        if self.freshness.at(self.world.now_ms(), changed=changed) is Knowledge.HELD:
            return self.record
        before = self.record
        found = await self.load()
        if before is not None and found is not None and self._version(before) == self._version(found):
            self.freshness.found_unchanged()
        return found

    async def at_hand(self) -> R | None:
        """The record for a write that names its version: age alone is no reason to read it."""
        known = self.record is not None and self.freshness.read_at is not None
        if known and not self.freshness.shared and not self._may_have_changed(self._mark):
            return self.record
        return await self.refresh()

    def confirm(self, version: Hashable, at: int) -> None:
        """Take what is known for read at that time: a commit has seen the record at this version then."""
        if self.record is not None and self._version(self.record) == version:
            self.freshness.confirm(at)

    async def load(self) -> R | None:
        """Read it, however good what is known is."""
        # Noted before the read: what is changed meanwhile is read again.
        now, mark = self.world.now_ms(), self.world.changed_records.mark
        found = await self._read()
        if found is None:
            self.forget()
        else:
            self.adopt(found)
        self.freshness.read(now, found=found is not None)
        self._mark = mark
        return found

    def adopt(self, record: R) -> R:
        """Take a record that was read or saved for the truth. How old the rest is does not change by that."""
        self.record = record
        if self.freshness.read_at is None:
            self.freshness.read(self.world.now_ms(), found=True)
        return record

    def doubt(self) -> None:
        """Have it read before the next decision."""
        self.freshness.doubt()

    def forget(self) -> None:
        """There is none, or no longer."""
        self.record = None
        self.freshness.doubt()

    async def until_kept(self, attempt: Attempt[R, T], *, write: str = "", lost: int = 0) -> T | Refusal:
        """Decide and write, again after each lost race; a refusal when there is none, or all were lost.

        ``write`` is what lost races are counted under, if they are. ``lost``: races that this decision has
        lost before, noted by whoever lost them.
        """

        async def on_record() -> T | Refusal | Lost:
            record = await self.refresh()
            return self.unknown() if record is None else await attempt(record, self.world.now_ms())

        return await decide_until_kept(
            on_record, self.subject, self.world, lost=lost, on_lost=lambda: self.race_lost(write)
        )

    def race_lost(self, write: str = "") -> None:
        """Another node was first: from here on it is read first, until nobody else writes it."""
        self.freshness.race_lost()
        if write:
            self.world.meters.races[write] += 1
