"""Transcripts: what each attempt at an event said and did, in numbered entries."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol
from uuid import UUID

import msgspec

from sexton_storage.documents import Json
from sexton_storage.records.leases import LeaseToken

CUT: Final = "cut"
"""The kind of the entry that says that nothing follows, as the bound of a run was reached."""
WHOLE_BYTES: Final = 4096
"""In a list, the data of a longer entry is left out."""
MIB: Final = 1024 * 1024


class TranscriptBounds(msgspec.Struct, frozen=True):
    """How much is kept."""

    days: int = 30
    """0: nothing is kept."""
    run_bytes: int = 8 * MIB
    """The most of one attempt; what is beyond it is not kept, and the last entry says so."""
    workspace_bytes: int = 1024 * MIB
    """The most of one workspace; beyond it the oldest attempts make room."""


class Transcript(msgspec.Struct, frozen=True, gc=False):
    """What is known of one attempt's transcript, beside its entries."""

    zombie_id: UUID
    event_id: UUID
    attempt: int
    workspace_id: UUID
    began_at: int
    entries: int = 0
    bytes: int = 0
    last_number: int = 0
    is_cut: bool = False
    is_removed: bool = False

    @property
    def missing(self) -> int:
        """Entries that were numbered and never came.

        >>> Transcript(UUID(int=1), UUID(int=2), 1, UUID(int=3), 0, entries=3, last_number=5).missing
        2
        """
        return self.last_number - self.entries


class NewEntry(msgspec.Struct, frozen=True, gc=False):
    """An entry as its runner sends it: numbered from 1 within the attempt."""

    number: int
    kind: str
    at_ms: int | None
    data: Mapping[str, Any]


class TranscriptEntry(msgspec.Struct, frozen=True, gc=False):
    """An entry as it is kept."""

    zombie_id: UUID
    event_id: UUID
    attempt: int
    number: int
    kind: str
    at_ms: int
    data: Json
    size: int
    """Bytes of ``data`` as JSON."""


class EntryPlace(msgspec.Struct, frozen=True):
    """After which entry of an event a list goes on; ``EntryPlace()`` comes before the first."""

    attempt: int = 0
    number: int = 0


class EntryQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which entries of an event to read."""

    attempt: int | None = None
    after: EntryPlace = EntryPlace()
    limit: int
    max_bytes: int
    whole: bool = False
    """With long data too; without it the data of such an entry is empty."""


class TranscriptStore(Protocol):
    async def append(
        self, zombie_id: UUID, held: LeaseToken, entries: Sequence[NewEntry], bounds: TranscriptBounds
    ) -> Transcript | None:
        """Add entries under a lease of this agent that is live and unexpired by the database's clock.

        None, and nothing is added, when it is not. A number that is there already stays as it is.
        """
        ...

    async def attempts(self, zombie_id: UUID, event_id: UUID, *, limit: int) -> Sequence[Transcript]:
        """The newest attempts that have a transcript, oldest first."""
        ...

    async def read(self, zombie_id: UUID, event_id: UUID, query: EntryQuery) -> Sequence[TranscriptEntry]:
        """Entries by attempt and number: as many as ``max_bytes`` of shown data allow, and at least one."""
        ...

    async def prune(self, bounds: TranscriptBounds, *, limit: int) -> int:
        """Delete at most ``limit`` transcripts that are past keeping or over a workspace's bound; how many.

        Of those over a bound the row of the attempt stays, and says that its entries are gone.
        """
        ...
