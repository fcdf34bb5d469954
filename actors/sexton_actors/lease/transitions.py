"""What a lease may become, and what each call on it is answered."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import msgspec
from sexton_storage.records import Event, EventStatus, Gate, GateStatus, Lease, LeaseStatus, Slice
from sexton_storage.writes import AppendFrames, EndLease, EventEnd, NewFrame, OpenGate, RenewLease, Renewed

from sexton_actors.failures import failure_of
from sexton_actors.lease.messages import Activity, Park, Release, Renew, Renewal, Report
from sexton_actors.lease.metering import Usage, Wait, advance, next_slice
from sexton_actors.refusal import Refusal
from sexton_actors.terms import LEASE_TERM_MS, MAX_ATTEMPTS

LIVE = frozenset({LeaseStatus.ACTIVE, LeaseStatus.CANCELLING})


class LeaseState(msgspec.Struct, frozen=True):
    """A lease and the gates that were pending under it."""

    lease: Lease
    waits: tuple[Wait, ...] = ()


def is_live(lease: Lease, now: int) -> bool:
    """Held, and not past its deadline."""
    return lease.status in LIVE and now < lease.expires_at


def _foreign(lease: Lease, runner_id: UUID) -> Refusal | None:
    # Another runner's lease reads as none at all: its existence is not this runner's business.
    return None if lease.runner_id == runner_id else Refusal("UZ-RUN-006", f"There is no lease {lease.id} of this runner.")


def _lost(lease: Lease, code: str, now: int) -> Refusal:
    facts: dict[str, Any] = {"current_state": str(lease.status) if lease.status not in LIVE else "expired"}
    why = "its term passed" if lease.status in LIVE else f"it is {lease.status}"
    return Refusal(code, f"Lease {lease.id} is not held any more: {why}.", facts | {"now": now})


def fenced(lease: Lease, runner_id: UUID, token: int | None, now: int, code: str) -> Refusal | None:
    """None when this runner holds the lease now under this token (None: the route carries none)."""
    if refusal := _foreign(lease, runner_id):
        return refusal
    if token is not None and token != lease.fencing_token:
        return Refusal(code, f"Fencing token {token} is not that of lease {lease.id}.")
    return None if is_live(lease, now) else _lost(lease, code, now)


# --- renew ------------------------------------------------------------------------------------------------------


def renew(state: LeaseState, message: Renew, now: int) -> RenewLease | Refusal:
    """One term more, and the bill for the slice; the deadline never moves back and never past the ceiling."""
    lease = state.lease
    if lease.ceiling_at <= now and lease.runner_id == message.runner_id and lease.status in LIVE:
        return Refusal("UZ-RUN-010", f"The event has had its 12 hours, at {lease.ceiling_at}.")
    if refusal := fenced(lease, message.runner_id, message.fencing_token, now, "UZ-RUN-011"):
        return refusal
    usage = Usage(message.input_tokens, message.cached_input_tokens, message.output_tokens, message.run_ms)
    billed = next_slice(lease, usage, state.waits, now)
    renewed = msgspec.structs.replace(
        advance(lease, usage, billed, now),
        version=lease.version + 1,
        expires_at=max(lease.expires_at, min(now + LEASE_TERM_MS, lease.ceiling_at)),
    )
    return RenewLease(lease=renewed, slice=billed, now=now)


def answer_renewal(lease: Lease, saved: Renewed) -> Renewal | Refusal:
    """What the runner is told once the renewal is kept: it may have been the last it could pay for."""
    if saved.balance_nanos == 0 and saved.charged_nanos == 0:
        return Refusal("UZ-RUN-012", "The tenant's balance is used up; stop the run and report.", {"balance_nanos": 0})
    if over_budget(lease, saved.spent_day_nanos, saved.spent_month_nanos):
        facts = {"spent_today_nanos": saved.spent_day_nanos, "balance_nanos": saved.balance_nanos}
        return Refusal("UZ-ZMB-001", "The agent's budget is spent; stop the run and report.", facts)
    return Renewal(
        lease_expires_at=lease.expires_at,
        slice_seq=lease.slice_seq,
        charged_nanos=saved.charged_nanos,
        balance_nanos=saved.balance_nanos,
        ceiling_at=lease.ceiling_at,
        state="cancelling" if lease.status is LeaseStatus.CANCELLING else "active",
    )


def over_budget(lease: Lease, day_nanos: int, month_nanos: int) -> bool:
    """Whether the agent's spend has reached one of its budgets."""
    daily, monthly = lease.budget_daily_nanos, lease.budget_monthly_nanos
    return (daily is not None and day_nanos >= daily) or (monthly is not None and month_nanos >= monthly)


# --- end --------------------------------------------------------------------------------------------------------


def report(state: LeaseState, message: Report, now: int) -> EndLease | Refusal:
    """Settle and finish the event; a run that was told to stop ends cancelled, whatever it says."""
    lease = state.lease
    if lease.event_id != message.event_id and lease.runner_id == message.runner_id:
        return Refusal("UZ-REQ-001", f"/event_id: lease {lease.id} is for event {lease.event_id}.")
    if refusal := fenced(lease, message.runner_id, message.fencing_token, now, "UZ-RUN-005"):
        return refusal
    usage = Usage(message.input_tokens, message.cached_input_tokens, message.output_tokens)
    status, label, code = _outcome(lease, message)
    end = EventEnd(
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
    )
    billed = next_slice(lease, usage, state.waits, now)
    return EndLease(
        lease_id=lease.id,
        version=lease.version,
        status=LeaseStatus.REPORTED,
        now=now,
        slice=billed,
        event=end,
        frames=(_complete(lease, status, label, now),),
        require_unexpired=True,
        report_digest=message.digest,
    )


def _outcome(lease: Lease, message: Report) -> tuple[EventStatus, str | None, str | None]:
    if lease.status is LeaseStatus.CANCELLING or message.outcome == "cancelled":
        return EventStatus.CANCELLED, "cancelled", None
    if message.outcome == "processed":
        return EventStatus.PROCESSED, None, None
    return EventStatus.AGENT_ERROR, *failure_of(message.failure_reason)


def _complete(lease: Lease, status: EventStatus, label: str | None, now: int) -> NewFrame:
    data = {"status": str(status)} | ({"failure_label": label} if label else {})
    return NewFrame(lease.zombie_id, lease.event_id, "event_complete", now, data)


def release(state: LeaseState, message: Release, now: int) -> EndLease | Refusal:
    """Back to the queue at once; one that was to be cancelled ends instead."""
    lease = state.lease
    if refusal := fenced(lease, message.runner_id, None, now, "UZ-RUN-005"):
        return refusal
    cancelled = lease.status is LeaseStatus.CANCELLING
    return EndLease(
        lease_id=lease.id,
        version=lease.version,
        status=LeaseStatus.RELEASED,
        now=now,
        slice=_to_now(state, now),
        event=EventEnd(status=EventStatus.CANCELLED, failure_label="cancelled")
        if cancelled
        else EventEnd(status=EventStatus.RECEIVED, give_attempt_back=True),
        frames=(_complete(lease, EventStatus.CANCELLED, "cancelled", now),)
        if cancelled
        else (_returned(lease, "released", now, message.reason),),
        require_unexpired=True,
    )


def park(state: LeaseState, message: Park, gate: Gate | None, now: int) -> EndLease | Refusal:
    """Leave the slot while a gate of this event is pending; the run goes on from its checkpoint."""
    lease = state.lease
    if refusal := fenced(lease, message.runner_id, None, now, "UZ-RUN-005"):
        return refusal
    if gate is None or gate.event_id != lease.event_id:
        return Refusal("UZ-APPROVAL-002", f"/gate_id: {message.gate_id} is no gate of this event.")
    # A gate resolved meanwhile does not keep the event waiting: it is received again in the same commit.
    return EndLease(
        lease_id=lease.id,
        version=lease.version,
        status=LeaseStatus.PARKED,
        now=now,
        slice=_to_now(state, now),
        event=EventEnd(status=EventStatus.WAITING_APPROVAL, give_attempt_back=True, checkpoint=message.checkpoint),
        frames=(),
        require_unexpired=True,
        parked_gate_id=gate.id,
    )


def reclaim(state: LeaseState, event: Event, now: int, *, revoked: bool) -> EndLease | None:
    """Take the lease back when its deadline has passed, or its runner was revoked; None when neither is so.

    It is billed up to its last renewal: nobody can say how long a dead runner worked.
    """
    lease = state.lease
    if lease.status not in LIVE or (now < lease.expires_at and not revoked):
        return None
    end = _after_reclaim(lease, event, now)
    frames = [_returned(lease, "revoked" if revoked else "expired", now)]
    if end.status is not EventStatus.RECEIVED:
        frames.append(_complete(lease, end.status, end.failure_label, now))
    return EndLease(
        lease_id=lease.id,
        version=lease.version,
        status=LeaseStatus.RECLAIMED,
        now=now,
        slice=None,
        event=end,
        frames=tuple(frames),
        require_expired=not revoked,
    )


def _after_reclaim(lease: Lease, event: Event, now: int) -> EventEnd:
    if lease.status is LeaseStatus.CANCELLING:
        return EventEnd(status=EventStatus.CANCELLED, failure_label="cancelled")
    if now >= lease.ceiling_at:
        return EventEnd(status=EventStatus.AGENT_ERROR, failure_label="ceiling", error_code="UZ-RUN-010")
    if event.attempts >= MAX_ATTEMPTS:
        return EventEnd(status=EventStatus.DEAD_LETTERED, failure_label="runner_lost")
    return EventEnd(status=EventStatus.RECEIVED)


def _to_now(state: LeaseState, now: int) -> Slice:
    lease = state.lease
    return next_slice(lease, Usage(lease.input_tokens, lease.cached_input_tokens, lease.output_tokens), state.waits, now)


def _returned(lease: Lease, cause: str, now: int, reason: str = "") -> NewFrame:
    data = {
        "lease_id": str(lease.id),
        "runner_id": str(lease.runner_id),
        "fencing_token": lease.fencing_token,
        "attempt": lease.attempt,
        "cause": cause,
    } | ({"reason": reason} if reason else {})
    return NewFrame(lease.zombie_id, lease.event_id, "lease_reclaimed", now, data)


# --- activity and gates -----------------------------------------------------------------------------------------

ACTIVITY_KINDS = frozenset({"tool_call_started", "tool_call_progress", "tool_call_completed", "chunk"})


def activity(state: LeaseState, message: Activity, now: int) -> AppendFrames | Refusal:
    """A runner's frames, stamped no later than now; only the kinds that are a runner's to write."""
    lease = state.lease
    if refusal := fenced(lease, message.runner_id, None, now, "UZ-RUN-005"):
        return refusal
    for i, frame in enumerate(message.frames):
        if frame.kind not in ACTIVITY_KINDS:
            return Refusal("UZ-REQ-001", f"/frames/{i}/kind: {frame.kind!r} is not a runner's to write.")
    frames = tuple(
        NewFrame(lease.zombie_id, lease.event_id, f.kind, now if f.at_ms is None else min(f.at_ms, now), f.data)
        for f in message.frames
    )
    return AppendFrames(lease.zombie_id, frames, lease.id, lease.fencing_token)


def open_gate(state: LeaseState, gate: Gate, now: int) -> OpenGate:
    """Ask people; the frame says what is waited for."""
    data: Mapping[str, Any] = {
        "gate_id": str(gate.id),
        "action_id": gate.action_id,
        "tool_name": gate.tool_name,
        "action_name": gate.action_name,
        "proposed_action": gate.proposed_action,
        "timeout_at": gate.timeout_at,
    }
    kind = "gate_pending" if gate.status is GateStatus.PENDING else "gate_resolved"
    if kind == "gate_resolved":
        data = {**data, "status": str(gate.status), "resolved_by": gate.resolved_by}
    frame = NewFrame(gate.zombie_id, gate.event_id, kind, now, data)
    return OpenGate(gate, state.lease.fencing_token, (frame,))
