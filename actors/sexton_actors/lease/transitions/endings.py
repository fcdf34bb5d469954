"""How a lease ends, by its runner's word or without it, and what becomes of its event."""

from typing import Literal
from uuid import UUID

import msgspec

from sexton_actors.failure_codes import CHECK_FAILURES, FAILURE_CODES, failure_of
from sexton_actors.lease.metering import Usage, next_slice, out_of_range
from sexton_actors.lease.transitions.state import STALE, LeaseState, fenced, is_live
from sexton_actors.protocol.lease import Abort, Park, Release, Report
from sexton_actors.refusal import Refusal
from sexton_actors.terms import COUNT_MAX, MAX_ATTEMPTS
from sexton_storage.records.events import Event, EventStatus
from sexton_storage.records.frames import NewFrame
from sexton_storage.records.gates import Gate
from sexton_storage.records.improvement import Proposal
from sexton_storage.records.leases import Lease, LeaseStatus
from sexton_storage.records.metering import Slice
from sexton_storage.rules import CANCELLED_LABEL, LIVE_LEASE
from sexton_storage.writes import EndLease, EventEnd

Cause = Literal["expired", "revoked", "died"]
"""Why it is taken back: its term has passed, its runner was revoked, its runner is known to have died."""
_CANCELLED = EventEnd(status=EventStatus.CANCELLED, failure_label=CANCELLED_LABEL)


def report(
    state: LeaseState,
    message: Report,
    now: int,
    proposals: tuple[Proposal, ...] = (),
    follower: Event | None = None,
) -> EndLease | Refusal:
    """Settle and finish the event; a run that was told to stop ends cancelled, whatever it says.

    ``proposals`` are made of the report's drafts; those of a run that was stopped are not kept. Nor is the
    ``follower`` then, which ``continuation`` made.
    """
    lease = state.lease
    if lease.event_id != message.event_id and lease.runner_id == message.runner_id:
        return Refusal("UZ-REQ-001", f"/event_id: lease {lease.id} is for event {lease.event_id}.")
    if refusal := fenced(lease, message.runner_id, message.fencing_token, now, STALE):
        return refusal
    usage = Usage(message.input_tokens, message.cached_input_tokens, message.output_tokens)
    if refusal := out_of_range(usage):
        return refusal
    if not 0 <= message.wall_ms <= COUNT_MAX:
        return Refusal("UZ-REQ-001", f"/telemetry/wall_ms: between 0 and {COUNT_MAX}.")
    end = _as_reported(lease, message)
    ended = _ended(lease, LeaseStatus.REPORTED, end, now)
    if end.status is EventStatus.PROCESSED and follower is not None:
        end = msgspec.structs.replace(end, checkpoint=None)
        frames = (*ended.frames, _continues(follower))
        ended = msgspec.structs.replace(ended, event=end, follower=follower, frames=frames)
    return msgspec.structs.replace(
        ended,
        slice=next_slice(lease, usage, state.waits, now),
        require_unexpired=True,
        report_digest=message.digest,
        memory=message.memory,
        proposals=() if end.status is EventStatus.CANCELLED else proposals,
    )


def continuation(event: Event, message: Report, event_id: UUID, now: int) -> Event | None:
    """The event that goes on from a report's checkpoint; None when the report asks for none.

    A run that was well but could not finish says so by leaving a checkpoint: its event is processed, and what
    is left to do is another one, which begins with the same request.
    """
    if message.outcome != "processed" or message.checkpoint is None:
        return None
    return Event(
        id=event_id,
        zombie_id=event.zombie_id,
        workspace_id=event.workspace_id,
        tenant_id=event.tenant_id,
        actor=event.actor,
        event_type=event.event_type,
        status=EventStatus.RECEIVED,
        request_json=event.request_json,
        created_at=now,
        updated_at=now,
        source_event_id=event.source_event_id,
        resumes_event_id=event.id,
        traceparent=event.traceparent,
        checkpoint=dict(message.checkpoint),
    )


def _continues(follower: Event) -> NewFrame:
    data = {
        "actor": follower.actor,
        "event_type": follower.event_type,
        "source_event_id": follower.source_event_id,
        "resumes_event_id": str(follower.resumes_event_id),
    }
    return NewFrame(follower.zombie_id, follower.id, "event_received", follower.created_at, data)


def _as_reported(lease: Lease, message: Report) -> EventEnd:
    status, label, code = _outcome(lease, message)
    return EventEnd(
        status=status,
        failure_label=label,
        error_code=code,
        response_text=message.response_text,
        evidence=message.evidence,
        checkpoint=message.checkpoint,
        input_tokens=max(lease.input_tokens, message.input_tokens),
        cached_input_tokens=max(lease.cached_input_tokens, message.cached_input_tokens),
        output_tokens=max(lease.output_tokens, message.output_tokens),
        wall_ms=message.wall_ms,
        failed_checks=1 if label in CHECK_FAILURES else 0,
    )


def _outcome(lease: Lease, message: Report) -> tuple[EventStatus, str | None, str | None]:
    if lease.status is LeaseStatus.CANCELLING or message.outcome == "cancelled":
        return EventStatus.CANCELLED, CANCELLED_LABEL, None
    if message.outcome == "processed":
        return EventStatus.PROCESSED, None, None
    return EventStatus.AGENT_ERROR, *failure_of(message.failure_reason)


def release(state: LeaseState, message: Release, now: int) -> EndLease | Refusal:
    """Back to the queue at once; one that was to be cancelled ends instead."""
    lease = state.lease
    if refusal := fenced(lease, message.runner_id, message.fencing_token, now, STALE):
        return refusal
    ended = _back(lease, now, "released", message.reason)
    return msgspec.structs.replace(ended, slice=_to_now(state, now), require_unexpired=True)


def undelivered(state: LeaseState, now: int) -> EndLease | None:
    """The grant reached nobody: back at once, unbilled; None when it is over or up for reclaim already."""
    if not is_live(state.lease, now):
        return None
    return _back(state.lease, now, "undelivered")


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
        ended = _back(lease, now, "released")
    else:
        end = EventEnd(
            status=EventStatus.WAITING_APPROVAL,
            give_attempt_back=True,
            checkpoint=message.checkpoint,
            input_tokens=lease.input_tokens,
            cached_input_tokens=lease.cached_input_tokens,
            output_tokens=lease.output_tokens,
            wall_ms=max(0, now - lease.granted_at),
        )
        ended = _ended(lease, LeaseStatus.PARKED, end, now)
        # A gate resolved meanwhile does not keep the event waiting: it is received again in the same commit.
        ended = msgspec.structs.replace(ended, parked_gate_id=gate.id)
    return msgspec.structs.replace(ended, slice=_to_now(state, now), require_unexpired=True)


def abort(state: LeaseState, message: Abort, now: int) -> EndLease | None:
    """End a run that must not start, unbilled; None when its lease is over already."""
    lease = state.lease
    if lease.status not in LIVE_LEASE:
        return None
    if lease.status is LeaseStatus.CANCELLING:
        return _ended(lease, LeaseStatus.REPORTED, _CANCELLED, now)
    end = EventEnd(
        status=EventStatus.AGENT_ERROR,
        failure_label=message.label,
        error_code=FAILURE_CODES[message.label],
        response_text=message.detail,
    )
    return _ended(lease, LeaseStatus.REPORTED, end, now)


def reclaim(state: LeaseState, event: Event, now: int, cause: Cause) -> EndLease | None:
    """Take the lease back when its deadline has passed, or its runner was revoked or has died; else None.

    It is billed up to its last renewal: nobody can say how long a dead runner worked.
    """
    lease = state.lease
    if lease.status not in LIVE_LEASE or (now < lease.expires_at and cause == "expired"):
        return None
    ended = _ended(lease, LeaseStatus.RECLAIMED, _after_reclaim(lease, event, now), now)
    returned = _returned(lease, cause, now)
    return msgspec.structs.replace(
        ended, frames=(returned, *ended.frames), require_expired=cause == "expired"
    )


def _after_reclaim(lease: Lease, event: Event, now: int) -> EventEnd:
    if lease.status is LeaseStatus.CANCELLING:
        return _CANCELLED
    if now >= lease.ceiling_at:
        return EventEnd(status=EventStatus.AGENT_ERROR, failure_label="ceiling", error_code="UZ-RUN-010")
    if event.attempts >= MAX_ATTEMPTS:
        return EventEnd(
            status=EventStatus.DEAD_LETTERED, failure_label="runner_lost", error_code="UZ-RUN-016"
        )
    return EventEnd(status=EventStatus.RECEIVED)


def _back(lease: Lease, now: int, cause: str, reason: str = "") -> EndLease:
    """To the queue without an attempt lost, unless it was to be cancelled: then that is what happens."""
    if lease.status is LeaseStatus.CANCELLING:
        return _ended(lease, LeaseStatus.RELEASED, _CANCELLED, now)
    end = EventEnd(status=EventStatus.RECEIVED, give_attempt_back=True)
    ended = _ended(lease, LeaseStatus.RELEASED, end, now)
    return msgspec.structs.replace(ended, frames=(_returned(lease, cause, now, reason),))


def _ended(lease: Lease, status: LeaseStatus, end: EventEnd, now: int) -> EndLease:
    """With the frame that tells the event's end, if it is one."""
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


def _complete(lease: Lease, end: EventEnd, now: int) -> NewFrame:
    data = {"status": str(end.status)} | ({"failure_label": end.failure_label} if end.failure_label else {})
    return NewFrame(lease.zombie_id, lease.event_id, "event_complete", now, data)


def _returned(lease: Lease, cause: str, now: int, reason: str = "") -> NewFrame:
    data = {
        "lease_id": str(lease.id),
        "runner_id": str(lease.runner_id),
        "fencing_token": lease.fencing_token,
        "attempt": lease.attempt,
        "cause": cause,
    } | ({"reason": reason} if reason else {})
    return NewFrame(lease.zombie_id, lease.event_id, "lease_reclaimed", now, data)


def _to_now(state: LeaseState, now: int) -> Slice:
    lease = state.lease
    said = Usage(lease.input_tokens, lease.cached_input_tokens, lease.output_tokens)
    return next_slice(lease, said, state.waits, now)
