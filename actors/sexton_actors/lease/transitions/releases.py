"""How an event goes back before its run is over: released, parked at a gate, or never delivered."""

import msgspec

from sexton_actors.lease.metering import next_slice, out_of_range
from sexton_actors.lease.transitions.end import back_to_queue, end_lease, slice_to
from sexton_actors.lease.transitions.state import STALE, LeaseState, fenced, is_live
from sexton_actors.protocol.lease import Park, Release
from sexton_actors.refusal import Refusal
from sexton_storage.records.events import EventStatus
from sexton_storage.records.gates import Gate
from sexton_storage.records.leases import Lease, LeaseStatus
from sexton_storage.records.metering import Slice
from sexton_storage.writes import EndLease, EventEnd


def release(state: LeaseState, message: Release, now: int) -> EndLease | Refusal:
    """Back to the queue, at once or after a time; one that was to be cancelled ends instead.

    Only a run that says what it has used leaves a checkpoint to go on from.
    """
    lease, usage = state.lease, message.usage
    if refusal := fenced(lease, message.runner_id, message.fencing_token, now, STALE):
        return refusal
    if usage is not None and (refusal := out_of_range(usage)):
        return refusal
    retry_at = None if message.retry_after_ms is None else now + message.retry_after_ms
    ended = back_to_queue(lease, now, "released", message.reason, retry_at)
    end = ended.event
    if end.status is EventStatus.RECEIVED and usage is not None:
        end = msgspec.structs.replace(end, checkpoint=message.checkpoint)
    billed = slice_to(state, now) if usage is None else next_slice(lease, usage, state.waits, now)
    return _given_back(ended, lease, end, billed)


def undelivered(state: LeaseState, now: int) -> EndLease | None:
    """The grant reached nobody: back at once, unbilled; None when it is over or up for reclaim already."""
    if not is_live(state.lease, now):
        return None
    return back_to_queue(state.lease, now, "undelivered")


def park(state: LeaseState, message: Park, gate: Gate | None, now: int) -> EndLease | Refusal:
    """Leave the slot while a gate of this event is pending; the run goes on from its checkpoint.

    A run that is to be cancelled waits for nothing any more: it ends.
    """
    lease = state.lease
    if refusal := fenced(lease, message.runner_id, message.fencing_token, now, STALE):
        return refusal
    if gate is None or gate.event_id != lease.event_id:
        return Refusal("UZ-APPROVAL-002", f"/gate_id: {message.gate_id} is no gate of this event.")
    if lease.status is LeaseStatus.CANCELLING:
        ended = back_to_queue(lease, now, "released")
    else:
        end = EventEnd(
            status=EventStatus.WAITING_APPROVAL,
            give_attempt_back=True,
            checkpoint=message.checkpoint,
        )
        ended = end_lease(lease, LeaseStatus.PARKED, end, now)
        # A gate resolved meanwhile does not keep the event waiting: it is received again in the same commit.
        ended = msgspec.structs.replace(ended, parked_gate_id=gate.id)
    return _given_back(ended, lease, ended.event, slice_to(state, now))


def _given_back(ended: EndLease, lease: Lease, end: EventEnd, billed: Slice) -> EndLease:
    """The write of a runner that leaves its run. The time of its lease counts, also if the event is over."""
    end = msgspec.structs.replace(end, wall_ms=max(0, ended.now - lease.granted_at))
    return msgspec.structs.replace(ended, event=end, slice=billed, require_unexpired=True)
