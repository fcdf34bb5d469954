"""Batches of the archive: rows that are past keeping, on their way out of the database."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol
from uuid import UUID

import msgspec

from sexton_storage.errors import StorageError
from sexton_storage.records.tenants import PlanTier


class RowsDiffer(StorageError):
    """The rows that would be deleted are not those that were archived; nothing was deleted."""


class ArchiveKind(StrEnum):
    EVENTS = "events"
    TRANSCRIPTS = "transcripts"
    DELIVERIES = "deliveries"
    METERING = "metering"
    """Slices before they are compacted."""


class ArchiveStatus(StrEnum):
    COLLECTED = "collected"
    """It is decided which rows these are; nothing that was written of them counts."""
    WRITTEN = "written"
    """All objects are in the archive, and it is known what they must be."""
    VERIFIED = "verified"
    """Objects and manifest were read back, and are what was sent."""
    DROPPED = "dropped"
    """The rows are deleted."""


class ArchiveBatch(msgspec.Struct, frozen=True, gc=False):
    number: int
    id: UUID
    kind: ArchiveKind
    status: ArchiveStatus
    place: str
    """Where it is written to, as a person would name it."""
    workspace_id: UUID | None
    """None: of all workspaces, as metering rows are."""
    source: str
    """What is to be compacted, where these are metering rows."""
    agents: tuple[UUID, ...]
    """The agent of each id; of events and transcripts."""
    ids: tuple[UUID, ...]
    """Events, deliveries, or the first and the last id of a day of metering rows."""
    attempts: tuple[int, ...]
    """The attempt of each id; of transcripts."""
    fence: int
    """Grows whenever a node takes the batch. Whoever has an older number changes nothing any more."""
    held_until: int
    manifest: bytes | None
    sha256: bytes | None
    created_at: int
    updated_at: int


class ArchiveBounds(NamedTuple):
    """How long rows are kept, in ms."""

    plans: Mapping[PlanTier, int]
    server: int | None
    """For every workspace; of metering the only one. None: no bound."""


class TableSum(NamedTuple):
    """What tells whether a table's lines are the same lines, in whatever order."""

    rows: int
    sum: int


class DroppedRows(NamedTuple):
    rows: int
    """Rows of the kind's own table."""
    left: int
    """What metering rows became; 0 for other kinds."""


class ArchiveStore(Protocol):
    """One batch is under way at a time. None from what only its holder may do: it holds it no longer."""

    async def claim(self, *, place: str, hold_ms: int) -> ArchiveBatch | None:
        """Take the batch that was written, and that nobody holds.

        One that was written to another place is collected again.
        """
        ...

    async def collect(
        self,
        kind: ArchiveKind,
        bounds: ArchiveBounds,
        *,
        batch_id: UUID,
        place: str,
        limit: int,
        hold_ms: int,
    ) -> ArchiveBatch | None:
        """Begin a batch of what is due now, of one workspace; None: nothing is, or another is under way.

        One that was collected and that nobody holds begins again. ``limit``: rows of the kind; of metering
        events, where no whole day is due.
        """
        ...

    def tables(self, kind: ArchiveKind) -> Sequence[str]:
        """List what a batch of this kind is made of, its own table first."""
        ...

    def lines(self, batch: ArchiveBatch, table: str) -> AsyncGenerator[Sequence[str], None]:
        """Give all rows of a table as JSON, some at a time."""
        ...

    async def types(self, table: str) -> Mapping[str, str]:
        """Give the columns of a table in their order, each with the name of its type in PostgreSQL."""
        ...

    async def hold(self, batch: ArchiveBatch, *, hold_ms: int) -> bool:
        """Keep it for longer, or with 0 let it go; False: somebody else has it."""
        ...

    async def previous(self, place: str) -> tuple[int, bytes] | None:
        """Give number and hash of the last manifest at a place."""
        ...

    async def written(self, batch: ArchiveBatch, manifest: bytes) -> ArchiveBatch | None: ...

    async def verified(self, batch: ArchiveBatch, sha256: bytes | None) -> ArchiveBatch | None: ...

    async def again(self, batch: ArchiveBatch) -> bool:
        """Have it collected again: what is in the archive is not what it should be."""
        ...

    async def drop(
        self, batch: ArchiveBatch, sums: Mapping[str, TableSum], bounds: ArchiveBounds, *, limit: int
    ) -> DroppedRows | None:
        """Delete the rows.

        It is one transaction, with the end of the batch in it. None: not now, or it is another's. Raises
        RowsDiffer where the rows are not those of ``sums``, or are not due any more. Of metering the rows are
        compacted.
        """
        ...
