"""Files that events bring: each lies in the folder of every run of its event."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, Protocol
from uuid import UUID

import msgspec

FILES_OF_EVENT: Final = 100
"""One more is refused."""


class EventFile(msgspec.Struct, frozen=True, gc=False):
    """A file that an event brings; ``name`` is its path below the folder ``in`` of a run."""

    event_id: UUID
    number: int
    """The place among those of the event, from 0."""
    zombie_id: UUID
    workspace_id: UUID
    name: str
    media_type: str
    blob_id: UUID
    sha256: bytes
    size: int
    created_at: int


class WantedFile(msgspec.Struct, frozen=True, gc=False):
    """A file that a message is to bring: an upload of its sender, or what a run of another event left.

    One of ``upload_id`` and ``event_id`` is given. ``media_type`` None: the artefact's own.
    """

    name: str
    media_type: str | None = None
    upload_id: UUID | None = None
    event_id: UUID | None = None


class NewFiles(msgspec.Struct, frozen=True, gc=False):
    """The event that files are to be of, and who sends them."""

    event_id: UUID
    zombie_id: UUID
    workspace_id: UUID
    sender_id: UUID
    """What ``senders.sender_of`` gives: only this sender's uploads are taken."""
    max_bytes: int
    """The most of all of them together."""
    now: int


class NotBrought(StrEnum):
    """Why a file is not brought."""

    NOT_SENT = "not_sent"
    """The upload is not whole, or is another sender's."""
    NOT_LEFT = "not_left"
    """No run of that event of the workspace left a file of this name, or it was deleted."""
    TOO_LARGE = "too_large"
    """With those before it, it has more bytes than an event may bring."""


class Missing(msgspec.Struct, frozen=True, gc=False):
    """The first file that is not brought; nothing was kept."""

    number: int
    why: NotBrought


class EventFileStore(Protocol):
    """The files are kept first, and then the event: so no run begins without them."""

    async def bring(self, new: NewFiles, wanted: Sequence[WantedFile]) -> Sequence[EventFile] | Missing:
        """Keep all of the files for an event that is to come, or none."""
        ...

    async def copy(self, source_id: UUID, event_id: UUID) -> Sequence[EventFile]:
        """Keep the files of one event for another that is to come; what is left of them."""
        ...

    async def list(self, event_id: UUID) -> Sequence[EventFile]:
        """Give the files of an event by their numbers."""
        ...

    async def load(self, event_id: UUID, number: int) -> EventFile | None: ...
    async def drop(self, event_id: UUID) -> None:
        """Give up the files of an event that was not kept; those of one that was stay."""
        ...

    async def prune(self, *, keep_ms: int, limit: int) -> int:
        """Delete a bounded number of those that are older and whose events are over; how many.

        Those without an event go an hour after they were kept.
        """
        ...
