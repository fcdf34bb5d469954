"""A storage with events to archive, a place for the archive, and nodes that do it, of which some die."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from inspect import isasyncgenfunction, iscoroutinefunction
from typing import Any, Final
from uuid import UUID

import pytest

from sexton_storage.archives import batches
from sexton_storage.archives.batches import Archiver, Dropped, PackParquet, Writer
from sexton_storage.archives.place import ArchivePlace
from sexton_storage.archives.verification import Finding, ManifestRead, rows_of_event, verify
from sexton_storage.postgres import PostgresStorage
from sexton_storage.records.archives import ArchiveBounds, ArchiveKind
from sexton_storage.records.events import EventStatus
from sexton_storage.records.tenants import PlanTier
from sexton_storage.writes import EventEnd
from tests.worlds.storage import HOUR_MS, StorageWorld, new_id

DONE: Final = EventEnd(EventStatus.PROCESSED)
SOON: Final = ArchiveBounds({PlanTier.FREE: -HOUR_MS}, None)
"""To keep for that long keeps nothing that has ended by now."""
BOUNDS: Final = {
    ArchiveKind.EVENTS: SOON,
    ArchiveKind.TRANSCRIPTS: SOON,
    ArchiveKind.DELIVERIES: SOON,
    ArchiveKind.METERING: ArchiveBounds({}, -24 * HOUR_MS),
}
KEEPS: Final = {kind: ArchiveBounds({}, None) for kind in ArchiveKind}
LIMITS: Final = dict.fromkeys(ArchiveKind, 100)
INSTALLATION: Final = "019363b0-0000-7000-8000-00000000abcd"


class Killed(BaseException):
    """A node ends here; nothing of it goes on, and it lets go of nothing."""


class Mortal:
    """Passes calls on, until the one before or after which the node is killed."""

    def __init__(self, real: Any, life: Life) -> None:
        self._real = real
        self._life = life

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        if isasyncgenfunction(found):
            return lambda *args, **rest: self._life.pages(found(*args, **rest))
        if iscoroutinefunction(found):
            return lambda *args, **rest: self._life.call(name, found, *args, **rest)
        return found


class Life:
    """Ends at a moment: moments are counted before and after each call."""

    def __init__(self, moments: int) -> None:
        self.left = moments
        self.died_at = ""

    def pass_moment(self, name: str) -> None:
        self.left -= 1
        if not self.left:
            self.died_at = name
            raise Killed

    async def call(self, name: str, real: Callable[..., Any], *args: Any, **rest: Any) -> Any:
        self.pass_moment(f"before {name}")
        answer = await real(*args, **rest)
        self.pass_moment(f"after {name}")
        return answer

    async def pages(self, real: AsyncGenerator[Any, None]) -> AsyncGenerator[Any, None]:
        async with aclosing(real):
            async for page in real:
                self.pass_moment("between lines")
                yield page


class ArchiveWorld:
    def __init__(self, world: StorageWorld, storage: PostgresStorage, place: ArchivePlace) -> None:
        self.world = world
        self.storage = storage
        self.place = place
        self.parquet: PackParquet | None = None

    @classmethod
    async def found(cls, storage: PostgresStorage, place: ArchivePlace) -> ArchiveWorld:
        return cls(await StorageWorld(storage).found(), storage, place)

    async def ended(self, count: int = 1, *, nanos: int = 11, **changes: Any) -> list[UUID]:
        """Events that have ended, each with a lease, a gate and a charge."""
        agent, found = await self.world.agent(), []
        for _ in range(count):
            await self.world.append(agent, **changes)
            lease = (await self.world.claim(agent)).lease
            await self.world.end(lease, DONE, nanos=nanos)
            found.append(lease.event_id)
        return found

    def writer(self) -> Writer:
        return Writer(INSTALLATION, "0.0.0", 60, self.parquet)

    def node(self, life: Life | None = None, place: ArchivePlace | None = None) -> Archiver:
        store, where = self.storage.archives, place or self.place
        writer = self.writer()
        if life is None:
            return Archiver(store, where, writer)
        mortal_store: Any = Mortal(store, life)
        mortal_place: Any = Mortal(where, life)
        return Archiver(mortal_store, mortal_place, writer)

    async def go(
        self, kind: ArchiveKind = ArchiveKind.EVENTS, node: Archiver | None = None
    ) -> Dropped | None:
        """One batch of a kind, from its beginning to its end."""
        return await (node or self.node()).work(kind, BOUNDS, batch_id=new_id(), limits=LIMITS)

    async def go_until_killed(self, moments: int, kind: ArchiveKind = ArchiveKind.EVENTS) -> str:
        """The moment at which a node was killed; "" when it came to its end before."""
        life = Life(moments)
        try:
            await self.go(kind, self.node(life))
        except Killed:
            return life.died_at
        return ""

    async def verified(self, place: ArchivePlace | None = None) -> tuple[list[ManifestRead], list[Finding]]:
        whole, wrong = list[ManifestRead](), list[Finding]()
        async for one in verify(place or self.place):
            if isinstance(one, Finding):
                wrong.append(one)
            else:
                whole.append(one)
        return whole, wrong

    async def tables_of(self, event_id: UUID) -> list[str]:
        """The tables of which the archive has rows of this event."""
        return sorted([table async for table, _ in rows_of_event(self.place, event_id)])


def let_go_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have others take the batch of a node that was killed at once, and not minutes later."""
    monkeypatch.setattr(batches, "HOLD_MS", -1)
    # No machine loses its power here, and a disk that others use is slow.
    monkeypatch.setattr(os, "fsync", lambda _: None)
