"""A lease as its transitions see it, and who may act on it."""

from typing import Any
from uuid import UUID

import msgspec

from sexton_actors.lease.metering import Wait
from sexton_actors.refusal import Refusal
from sexton_storage.records.leases import Lease
from sexton_storage.rules import LIVE_LEASE

UNKNOWN = "UZ-RUN-006"
LOST = "UZ-RUN-011"
STALE = "UZ-RUN-005"
CEILING = "UZ-RUN-010"


class LeaseState(msgspec.Struct, frozen=True):
    """A lease and the gates that were pending under it."""

    lease: Lease
    waits: tuple[Wait, ...] = ()


def is_live(lease: Lease, now: int) -> bool:
    """Held, and not past its deadline."""
    return lease.status in LIVE_LEASE and now < lease.expires_at


def fenced(lease: Lease, runner_id: UUID, token: int | None, now: int, code: str) -> Refusal | None:
    """None when this runner holds the lease now under this token (None: the route carries none)."""
    if lease.runner_id.int != runner_id.int:  # a number is compared without a call of Python
        # Another runner's lease reads as none at all: its existence is not this runner's business.
        return Refusal(UNKNOWN, f"There is no lease {lease.id} of this runner.")
    if token is not None and token != lease.fencing_token:
        return Refusal(code, f"Fencing token {token} is not that of lease {lease.id}.")
    return None if is_live(lease, now) else _lost(lease, code, now)


def _lost(lease: Lease, code: str, now: int) -> Refusal:
    held = lease.status in LIVE_LEASE
    facts: dict[str, Any] = {"current_state": "expired" if held else str(lease.status), "now": now}
    why = "its term passed" if held else f"it is {lease.status}"
    return Refusal(code, f"Lease {lease.id} is not held any more: {why}.", facts)
