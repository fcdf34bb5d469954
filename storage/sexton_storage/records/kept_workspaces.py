"""Workspaces that stay: snapshots of what runs left in their folders, and what each event started from."""

from typing import Final, Protocol
from uuid import UUID

import msgspec

from sexton_storage.records.leases import Lease, LeaseToken

SNAPSHOTS_KEPT: Final = 10
"""How many of an agent's snapshots stay, so that the events that started from them can be replayed."""


class Snapshot(msgspec.Struct, frozen=True, gc=False):
    """What one lease left; it is known by that lease."""

    lease_id: UUID
    zombie_id: UUID
    workspace_id: UUID
    event_id: UUID
    fencing_token: int
    is_fork: bool
    """It belongs to a replay, or to what continues one: no other event starts from it."""
    blob_id: UUID
    sha256: bytes
    size: int
    created_at: int


class Start(msgspec.Struct, frozen=True, gc=False):
    """What an event started from."""

    zombie_id: UUID
    event_id: UUID
    snapshot_id: UUID | None
    """The lease that left it; None: an empty folder."""
    is_fork: bool


class Started(msgspec.Struct, frozen=True, gc=False):
    """What a lease starts from: an empty folder where ``start`` names no snapshot.

    Where it names one that is not there any more, ``snapshot`` is None, too.
    """

    start: Start
    snapshot: Snapshot | None

    @property
    def is_lost(self) -> bool:
        """Whether there was a snapshot, and it is gone."""
        return self.start.snapshot_id is not None and self.snapshot is None


class KeptWorkspaceStore(Protocol):
    async def start(self, lease: Lease) -> Started | None:
        """Settle what the lease's event starts from, if that is not settled yet; None: the lease is lost."""
        ...

    async def keep(self, lease: Lease, held: LeaseToken, blob_id: UUID, now: int) -> Snapshot | None:
        """Keep a content that came whole under this lease as what it leaves; a second one replaces the first.

        None when the lease is lost, or there is no such content.
        """
        ...

    async def newest(self, zombie_id: UUID) -> Snapshot | None:
        """What the agent's next event would start from."""
        ...

    async def load(self, lease_id: UUID) -> Snapshot | None: ...
    async def reset(self, zombie_id: UUID) -> bool:
        """Have the next event start from an empty folder; False: there is no such agent.

        A run that is under way leaves nothing either.
        """
        ...

    async def prune(self, *, limit: int) -> int:
        """Delete snapshots that nobody will start from; how many."""
        ...
