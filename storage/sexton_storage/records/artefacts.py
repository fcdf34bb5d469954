"""Artefacts: the files that runs leave."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, Protocol
from uuid import UUID

import msgspec

from sexton_storage.paging import Page
from sexton_storage.records.leases import LeaseToken

ARTEFACTS_OF_ATTEMPT: Final = 1_000
"""One more is refused."""


class Artefact(msgspec.Struct, frozen=True, gc=False):
    """A file that a run left; ``name`` is its path there, and unique within the attempt."""

    id: UUID
    zombie_id: UUID
    workspace_id: UUID
    event_id: UUID
    lease_id: UUID
    attempt: int
    name: str
    media_type: str
    blob_id: UUID
    sha256: bytes
    size: int
    created_at: int


class NotKept(StrEnum):
    """Why an artefact is not kept."""

    FENCED = "fenced"
    """The lease does not hold the agent any more."""
    NOT_SENT = "not_sent"
    """The content has not come whole under this lease."""
    TAKEN = "taken"
    """The attempt has another content under this name."""
    FULL = "full"
    """The attempt has as many as it may."""


class ArtefactStore(Protocol):
    async def keep(self, artefact: Artefact, held: LeaseToken) -> Artefact | NotKept:
        """Keep one under a lease that is live and unexpired by the database's clock.

        The same name and content again is the artefact that is there.
        """
        ...

    async def list(self, event_id: UUID, *, after: Page | None, limit: int) -> Sequence[Artefact]:
        """Give an event's artefacts, in the order in which they came."""
        ...

    async def load(self, artefact_id: UUID) -> Artefact | None: ...
    async def delete(self, workspace_id: UUID, artefact_id: UUID) -> bool:
        """False when the workspace has no such artefact."""
        ...

    async def prune(self, *, keep_ms: int, limit: int) -> int:
        """Delete a bounded number of those that are older; how many."""
        ...
