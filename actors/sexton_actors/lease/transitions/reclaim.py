"""How a lease ends without its runner: it is reclaimed, or its run must not start."""

from typing import Literal

import msgspec

from sexton_actors.failure_codes import FAILURE_CODES
from sexton_actors.lease.transitions.end import CANCELLED, end_lease, returned
from sexton_actors.lease.transitions.state import LeaseState
from sexton_actors.protocol.lease import Abort
from sexton_actors.terms import MAX_ATTEMPTS
from sexton_storage.records.events import Event, EventStatus
from sexton_storage.records.leases import Lease, LeaseStatus
from sexton_storage.rules import LIVE_LEASE
from sexton_storage.writes import EndLease, EventEnd

Cause = Literal["expired", "revoked", "died"]
"""Why it is taken back: its term has passed, its runner was revoked, its runner is known to have died."""


def abort(state: LeaseState, message: Abort, now: int) -> EndLease | None:
    """End a run that must not start, unbilled; None when its lease is over already."""
    lease = state.lease
    if lease.status not in LIVE_LEASE:
        return None
    if lease.status is LeaseStatus.CANCELLING:
        return end_lease(lease, LeaseStatus.REPORTED, CANCELLED, now)
    end = EventEnd(
        status=EventStatus.AGENT_ERROR,
        failure_label=message.label,
        error_code=FAILURE_CODES[message.label],
        response_text=message.detail,
    )
    return end_lease(lease, LeaseStatus.REPORTED, end, now)


def reclaim(state: LeaseState, event: Event, now: int, cause: Cause) -> EndLease | None:
    """Take the lease back when its deadline has passed, or its runner was revoked or has died; else None.

    It is billed up to its last renewal: nobody can say how long a dead runner worked.
    """
    lease = state.lease
    if lease.status not in LIVE_LEASE or (now < lease.expires_at and cause == "expired"):
        return None
    ended = end_lease(lease, LeaseStatus.RECLAIMED, _after_reclaim(lease, event, now), now)
    frames = (returned(lease, cause, now), *ended.frames)
    return msgspec.structs.replace(ended, frames=frames, require_expired=cause == "expired")


def _after_reclaim(lease: Lease, event: Event, now: int) -> EventEnd:
    if lease.status is LeaseStatus.CANCELLING:
        return CANCELLED
    if now >= lease.ceiling_at:
        return EventEnd(status=EventStatus.AGENT_ERROR, failure_label="ceiling", error_code="UZ-RUN-010")
    if event.attempts >= MAX_ATTEMPTS:
        return EventEnd(
            status=EventStatus.DEAD_LETTERED, failure_label="runner_lost", error_code="UZ-RUN-016"
        )
    return EventEnd(status=EventStatus.RECEIVED)
