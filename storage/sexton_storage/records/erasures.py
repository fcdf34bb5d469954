"""Erasures: a person's value is taken out of all that a workspace keeps; and what is left to prove it."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple, Protocol
from uuid import UUID

import msgspec

from sexton_storage.paging import Page

CHARS_MIN: Final = 3
CHARS_MAX: Final = 512
ERASURES_LIMIT: Final = 8
"""Erasures of one workspace that are not over; one more is refused."""


class Needle(NamedTuple):
    """What is looked for. Neither this nor any row has the value itself."""

    path: str
    """Where a request of the person has it: keys, with a dot between each two."""
    sha256: bytes
    """The hash of the value in UTF-8."""
    chars: int


class ErasureStatus(StrEnum):
    RUNNING = "running"
    WAITING = "waiting"
    """A pass has found something, or what has not ended has the value; another pass follows."""
    DONE = "done"
    STOPPED = "stopped"


OVER: Final = frozenset({ErasureStatus.DONE, ErasureStatus.STOPPED})


class Erasure(msgspec.Struct, frozen=True, gc=False):
    """What is asked, how far it is, and in the end the receipt."""

    id: UUID
    tenant_id: UUID
    workspace_id: UUID
    path: str
    sha256: bytes
    chars: int
    dry_run: bool
    """Only count."""
    restored: bool
    """It was done before, in a database that was lost since."""
    status: ErasureStatus
    created_by: str
    created_by_name: str
    created_at: int
    updated_at: int
    surface: int = 0
    """How many of the surfaces are looked through, in this pass."""
    after: tuple[str, ...] = ()
    """The key of the last row that was looked at."""
    passes: int = 0
    """How often all was looked through."""
    waits: int = 0
    """What this pass had to leave, as it has not ended yet."""
    erased: Mapping[str, int] = msgspec.field(default_factory=dict)
    """Rows that were changed or deleted, by surface."""
    kept: Mapping[str, int] = msgspec.field(default_factory=dict)
    """Rows that have the value and stay, by surface, as the last pass found them."""
    ended_at: int | None = None
    found: int = 0
    """Rows that this pass has changed or deleted because they had the value."""
    confirms: bool = False
    """This pass looks only at what was written since one began that left nothing to wait for."""

    @property
    def needle(self) -> Needle:
        return Needle(self.path, self.sha256, self.chars)


class Tombstone(msgspec.Struct, frozen=True, gc=False):
    """What has to be erased again wherever older data comes back."""

    id: UUID
    tenant_id: UUID
    workspace_id: UUID
    path: str
    sha256: str
    """In hex."""
    chars: int
    by: str
    name: str
    created_at: int
    ended_at: int


class ErasureStore(Protocol):
    async def add(self, erasure: Erasure, *, limit: int) -> bool:
        """Keep a new one; False where ``limit`` of its workspace are not over. One that is there stays."""
        ...

    async def load(self, erasure_id: UUID) -> Erasure | None: ...
    async def list(self, workspace_id: UUID, *, limit: int, before: Page | None = None) -> Sequence[Erasure]:
        """Newest first."""
        ...

    async def due(self, *, now: int, limit: int) -> Sequence[UUID]:
        """Those that are not over, the oldest first; one that waits only some seconds after its last pass."""
        ...

    async def step(self, erasure_id: UUID) -> Erasure | None:
        """Look through the next page of rows, and keep how far that is, in one commit.

        None where another node is at it, or it is over, or gone.
        """
        ...

    async def stop(self, erasure_id: UUID) -> Erasure | None:
        """End one that is not over; what is gone stays gone. Gives it as it is then."""
        ...

    async def newest_change(self) -> int:
        """Grows when rows were erased, so that a node forgets what it holds in memory."""
        ...

    async def tombstones(self) -> Sequence[Tombstone]:
        """All that were done and were no dry run, the oldest first."""
        ...

    async def restore(self, tombstones: Sequence[Tombstone]) -> Sequence[UUID]:
        """Begin those again that this database does not know, where it has their workspace; their ids."""
        ...
