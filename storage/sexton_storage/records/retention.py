"""How long a workspace keeps what it has, and what would go."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, Protocol
from uuid import UUID

import msgspec

from sexton_storage.records.tenants import PlanTier

DAYS_MAX: Final = 36_500
"""A hundred years: as good as for ever."""


class KeptClass(StrEnum):
    """What has days of its own."""

    EVENTS = "events"
    TRANSCRIPTS = "transcripts"
    FILES = "files"
    DELIVERIES = "deliveries"


class RetentionPolicy(msgspec.Struct, frozen=True, gc=False):
    """What a workspace has chosen; None: as long as its plan and the server keep it."""

    workspace_id: UUID
    event_days: int | None
    transcript_days: int | None
    file_days: int | None
    delivery_days: int | None
    updated_at: int

    def of(self, kept: KeptClass) -> int | None:
        """The days of one class.

        >>> RetentionPolicy(UUID(int=1), 30, None, 7, None, 0).of(KeptClass.FILES)
        7
        """
        match kept:
            case KeptClass.EVENTS:
                return self.event_days
            case KeptClass.TRANSCRIPTS:
                return self.transcript_days
            case KeptClass.FILES:
                return self.file_days
            case KeptClass.DELIVERIES:
                return self.delivery_days


class Due(msgspec.Struct, frozen=True, gc=False):
    """What of a class is older than it would be kept."""

    rows: int
    bytes: int
    """The size of payloads, entries, contents and bodies as they are stored."""
    oldest_at: int | None
    charged_nanos: int
    """What the events among them were charged; it stays."""
    more: bool
    """There are more rows than were counted."""


class RetentionStore(Protocol):
    async def load(self, workspace_id: UUID) -> RetentionPolicy | None: ...

    async def save(self, policy: RetentionPolicy) -> None:
        """Replace the workspace's policy."""
        ...

    async def due(self, workspace_id: UUID, kept: KeptClass, *, keep_ms: int, limit: int) -> Due:
        """Count the oldest rows that would go if they were kept so long; at most ``limit`` of each table."""
        ...

    async def drop(self, kept: KeptClass, plans: Mapping[PlanTier, int], *, limit: int) -> int:
        """Delete what workspaces no longer keep; gives how many rows went.

        The smaller of the workspace's days and those of its tenant's plan (ms, by tier) counts; where neither
        says anything, nothing goes. Of events only those go that have ended, with payload, answer, leases,
        gates, scores, transcripts and files; charges and metering rows stay.
        """
        ...
