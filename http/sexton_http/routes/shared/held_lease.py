"""The lease that a runner names, if it holds it now."""

from typing import Any
from uuid import UUID

from sexton_actors.lease.transitions.shadows import IN_SHADOW, may_take_effect
from sexton_http.answers import Problem
from sexton_http.gateway.call import Call
from sexton_storage.records.leases import Lease, LeaseToken
from sexton_storage.rules import LIVE_LEASE

__all__ = ("IN_SHADOW", "check_effects", "check_live", "held_lease")


async def held_lease(call: Call[Any, Any], lease_id: UUID, token: int | None) -> Lease:
    """Load the lease of this runner. Raises Problem UZ-RUN-006, and UZ-RUN-005 when it is over."""
    lease = await call.ctx.world.storage.leases.load(lease_id)
    if lease is None or lease.runner_id != call.host.runner.id:
        raise Problem("UZ-RUN-006", "the runner does not hold this lease")
    check_live(lease, token, call.ctx.world.now_ms())
    return lease


def check_effects(lease: Lease) -> None:
    """Raises Problem UZ-SHADOW-001 for a shadow run."""
    if refusal := may_take_effect(lease):
        raise Problem(refusal.code, refusal.detail)


def check_live(lease: Lease, token: int | None, now: int) -> LeaseToken:
    """Give the lease as its writes name it. Raises Problem UZ-RUN-005."""
    current = lease.status in LIVE_LEASE and now < lease.expires_at
    if not current or token not in {None, lease.fencing_token}:
        raise Problem(
            "UZ-RUN-005", f"lease {lease.id} is no longer held, or the fencing token is not the lease's"
        )
    return LeaseToken(lease.id, lease.fencing_token)
