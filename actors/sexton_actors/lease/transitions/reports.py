"""How a lease ends by its runner's report, and the event that goes on from a checkpoint."""

from uuid import UUID

import msgspec

from sexton_actors.failure_codes import CHECK_FAILURES, failure_of
from sexton_actors.lease.metering import next_slice, out_of_range
from sexton_actors.lease.transitions.end import end_lease
from sexton_actors.lease.transitions.shadows import without_changes
from sexton_actors.lease.transitions.state import STALE, LeaseState, fenced
from sexton_actors.protocol.lease import Report
from sexton_actors.refusal import Refusal
from sexton_actors.terms import COUNT_MAX
from sexton_actors.token_counts import Usage
from sexton_storage.records.events import Event, EventStatus
from sexton_storage.records.frame_kinds import FrameKind
from sexton_storage.records.frames import NewFrame
from sexton_storage.records.improvement import Proposal
from sexton_storage.records.leases import Lease, LeaseStatus
from sexton_storage.rules import CANCELLED_LABEL
from sexton_storage.writes import EndLease, EventEnd


def report(
    state: LeaseState,
    message: Report,
    now: int,
    proposals: tuple[Proposal, ...] = (),
    continuation: Event | None = None,
) -> EndLease | Refusal:
    """Settle and finish the event; a run that was told to stop ends cancelled, whatever it says.

    ``proposals`` are made of the report's drafts; those of a run that was stopped are not kept. Nor is the
    ``continuation`` then. A shadow run leaves nothing but what it says and costs.
    """
    lease = state.lease
    if lease.shadow:
        message, proposals, continuation = without_changes(message), (), None
    if lease.event_id != message.event_id and lease.runner_id == message.runner_id:
        return Refusal("UZ-REQ-001", f"/event_id: lease {lease.id} is for event {lease.event_id}.")
    if refusal := fenced(lease, message.runner_id, message.fencing_token, now, STALE):
        return refusal
    usage = Usage(
        message.input_tokens,
        message.cached_input_tokens,
        message.output_tokens,
        cache_write_tokens=message.cache_write_tokens,
        fallbacks=message.fallbacks,
    )
    if refusal := out_of_range(usage):
        return refusal
    if not 0 <= message.wall_ms <= COUNT_MAX:
        return Refusal("UZ-REQ-001", f"/telemetry/wall_ms: between 0 and {COUNT_MAX}.")
    end = _as_reported(lease, message)
    ended = end_lease(lease, LeaseStatus.REPORTED, end, now)
    if end.status is EventStatus.PROCESSED and continuation is not None:
        end = msgspec.structs.replace(end, checkpoint=None)
        frames = (*ended.frames, _continues(continuation))
        ended = msgspec.structs.replace(ended, event=end, continuation=continuation, frames=frames)
    return msgspec.structs.replace(
        ended,
        slice=next_slice(lease, usage, state.waits, now),
        require_unexpired=True,
        report_digest=message.digest,
        memory=message.memory,
        proposals=() if end.status is EventStatus.CANCELLED else proposals,
    )


def continuation_of(event: Event, message: Report, event_id: UUID, now: int) -> Event | None:
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
        asked_version=event.asked_version,
        trial_id=event.trial_id,
    )


def _continues(continuation: Event) -> NewFrame:
    data = {
        "actor": continuation.actor,
        "event_type": continuation.event_type,
        "source_event_id": continuation.source_event_id,
        "resumes_event_id": str(continuation.resumes_event_id),
    }
    return NewFrame(
        continuation.zombie_id, continuation.id, FrameKind.EVENT_RECEIVED, continuation.created_at, data
    )


def _as_reported(lease: Lease, message: Report) -> EventEnd:
    status, label, code = _outcome(lease, message)
    return EventEnd(
        status=status,
        failure_label=label,
        error_code=code,
        response_text=message.response_text,
        evidence=message.evidence,
        checkpoint=message.checkpoint,
        wall_ms=message.wall_ms,
        failed_checks=1 if label in CHECK_FAILURES else 0,
    )


def _outcome(lease: Lease, message: Report) -> tuple[EventStatus, str | None, str | None]:
    if lease.status is LeaseStatus.CANCELLING or message.outcome == "cancelled":
        return EventStatus.CANCELLED, CANCELLED_LABEL, None
    if message.outcome == "processed":
        return EventStatus.PROCESSED, None, None
    return EventStatus.AGENT_ERROR, *failure_of(message.failure_reason)
