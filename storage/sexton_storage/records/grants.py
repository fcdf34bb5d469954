"""Integration grants: whether an agent may use a service, and who said so."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol
from uuid import UUID

import msgspec

from sexton_storage.paging import Page
from sexton_storage.records.frames import NewFrame
from sexton_storage.records.leases import LeaseToken
from sexton_storage.refusals import Lost


class GrantStatus(StrEnum):
    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"
    REVOKED = "revoked"


class Grant(msgspec.Struct, frozen=True, gc=False):
    """What one agent may do with one service; there is one for each such pair."""

    id: UUID
    tenant_id: UUID
    workspace_id: UUID
    zombie_id: UUID
    service: str
    reason: str
    """Why the agent asks, in its own words, of the newest request."""
    status: GrantStatus
    version: int
    """Grows by one with every save; a save names the version it saw."""
    requested_at: int
    """The time of the newest request."""
    requested_by: str
    created_at: int
    """The time of the first request."""
    decided_at: int | None = None
    decided_by: str | None = None


class GrantStore(Protocol):
    async def load(self, grant_id: UUID) -> Grant | None: ...
    async def find(self, zombie_id: UUID, service: str) -> Grant | None: ...
    async def of_zombie(self, zombie_id: UUID) -> Sequence[Grant]:
        """All of one agent, by service."""
        ...

    async def list(
        self,
        workspace_id: UUID,
        *,
        limit: int,
        before: Page | None = None,
        zombie_id: UUID | None = None,
        status: GrantStatus | None = None,
    ) -> Sequence[Grant]:
        """By the time of the first request, newest first."""
        ...

    async def save(
        self, grant: Grant, frames: Sequence[NewFrame], held: LeaseToken | None = None
    ) -> Lost | None:
        """Add (version 1), or save where ``version`` is one below ``grant.version``, with its frames.

        With ``held`` only under that lease, live and unexpired by the database's clock: ``Lost`` ``fenced``
        when it is not. ``Lost`` ``gone`` when the agent does not exist, ``stale`` when the row is at another
        version, or the agent has a grant for that service already, ``full`` when it has ``GRANTS_LIMIT``.
        """
        ...
