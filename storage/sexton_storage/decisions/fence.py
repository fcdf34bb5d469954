"""Whether a lease still holds its agent."""

from uuid import UUID

from sexton_storage.decisions.rows import Head
from sexton_storage.records.leases import Lease
from sexton_storage.rules import LIVE_LEASE


def is_live(lease: Lease, clock: int) -> bool:
    """Say whether it has neither ended nor expired; ``clock`` is the database's, in ms."""
    return lease.status in LIVE_LEASE and lease.expires_at > clock


def holds(head: Head | None, lease: Lease | None, lease_id: UUID | None, token: int, clock: int) -> bool:
    """Say whether the lease of this id and token is the agent's live one, and unexpired.

    ``lease`` is the row that the head names.
    """
    if head is None or lease is None or head.live_lease_id != lease_id or head.fence != token:
        return False
    return is_live(lease, clock)
