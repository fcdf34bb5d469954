"""What all ends of a lease have in common: the write, its frames, and the last slice."""

import msgspec

from sexton_actors.lease.metering import fallback_counts, next_slice
from sexton_actors.lease.transitions.state import LeaseState
from sexton_actors.token_counts import Usage
from sexton_storage.records.events import EventStatus
from sexton_storage.records.frame_kinds import FrameKind
from sexton_storage.records.frames import NewFrame
from sexton_storage.records.leases import Lease, LeaseStatus
from sexton_storage.records.metering import Slice
from sexton_storage.rules import CANCELLED_LABEL
from sexton_storage.writes import EndLease, EventEnd

CANCELLED = EventEnd(status=EventStatus.CANCELLED, failure_label=CANCELLED_LABEL)


def end_lease(lease: Lease, status: LeaseStatus, end: EventEnd, now: int) -> EndLease:
    """The write, with the frame that shows the end of the event if this is one. Nothing is billed yet."""
    open_still = end.status in {EventStatus.RECEIVED, EventStatus.WAITING_APPROVAL}
    return EndLease(
        lease_id=lease.id,
        version=lease.version,
        status=status,
        now=now,
        slice=None,
        event=end,
        frames=() if open_still else (_complete(lease, end, now),),
    )


def back_to_queue(
    lease: Lease, now: int, cause: str, reason: str = "", retry_at: int | None = None
) -> EndLease:
    """To the queue without an attempt lost, unless it was to be cancelled: then that is what happens.

    With ``retry_at`` nobody is given it before then.
    """
    if lease.status is LeaseStatus.CANCELLING:
        return end_lease(lease, LeaseStatus.RELEASED, CANCELLED, now)
    end = EventEnd(status=EventStatus.RECEIVED, give_attempt_back=True, retry_at=retry_at)
    ended = end_lease(lease, LeaseStatus.RELEASED, end, now)
    return msgspec.structs.replace(ended, frames=(returned(lease, cause, now, reason, retry_at),))


def returned(lease: Lease, cause: str, now: int, reason: str = "", retry_at: int | None = None) -> NewFrame:
    """The frame that shows why the lease was taken back."""
    data = {
        "lease_id": str(lease.id),
        "runner_id": str(lease.runner_id),
        "fencing_token": lease.fencing_token,
        "attempt": lease.attempt,
        "cause": cause,
    } | ({"reason": reason} if reason else {})
    if retry_at is not None:
        data["retry_at"] = retry_at
    return NewFrame(lease.zombie_id, lease.event_id, FrameKind.LEASE_RECLAIMED, now, data)


def slice_to(state: LeaseState, now: int) -> Slice:
    """The last slice of a lease whose runner says no counts: those of its last renewal, and the time."""
    lease = state.lease
    said = Usage(
        lease.input_tokens,
        lease.cached_input_tokens,
        lease.output_tokens,
        cache_write_tokens=lease.cache_write_tokens,
        fallbacks=fallback_counts(lease),
    )
    return next_slice(lease, said, state.waits, now)


def _complete(lease: Lease, end: EventEnd, now: int) -> NewFrame:
    data = {"status": str(end.status)} | ({"failure_label": end.failure_label} if end.failure_label else {})
    return NewFrame(lease.zombie_id, lease.event_id, FrameKind.EVENT_COMPLETE, now, data)
