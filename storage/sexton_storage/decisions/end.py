"""Whether a lease ends, what becomes of its event, and what the run has cost and earned."""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from sexton_storage.decisions.charge import Charged, bill, charge, with_sums
from sexton_storage.decisions.park import park
from sexton_storage.decisions.rows import Decided, EventRow, Head, Row, Spent
from sexton_storage.documents import copied, storable
from sexton_storage.records.events import Event, EventStatus
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.records.improvement import Proposal, ProposalStatus
from sexton_storage.records.leases import Lease
from sexton_storage.records.metering import MeteringPeriod
from sexton_storage.records.tenants import Tenant
from sexton_storage.refusals import FENCED, STALE, Lost
from sexton_storage.rules import FINISHED_EVENT, LIVE_LEASE
from sexton_storage.scoring import score_of
from sexton_storage.writes import Ended, EndLease, EventEnd

_REFUSED = frozenset({GateStatus.DENIED, GateStatus.TIMED_OUT, GateStatus.AUTO_KILLED})
_FAILURES = frozenset({EventStatus.AGENT_ERROR, EventStatus.DEAD_LETTERED})


class EndRows(msgspec.Struct, frozen=True, gc=False):
    """What is on record of a lease that is to end."""

    lease: Lease
    event: EventRow
    head: Head
    tenant: Tenant
    gates: Sequence[Gate]
    """The event's gates."""
    parked_gate: Gate | None
    """The one that the write names, whichever event it is of."""
    periods: Sequence[MeteringPeriod]
    """The event's metering periods, those of earlier leases included."""
    spent: Spent
    next: Event | None
    """The first of the agent's other received events; a continuation of the write's is none yet."""
    handed: Sequence[Proposal]
    """What the lease was told of."""
    scored: bool
    """The event has a score already, which stays."""
    agent_version: int | None = None
    """The version of the agent's record; None when there is none."""


def may_end(lease: Lease | None, write: EndLease, clock: int) -> Lost | None:
    """Say why the lease cannot be ended by this write; ``clock`` is the database's, in ms.

    Of a report, which needs a lease unexpired, and a reclaim, which needs it expired, only one can hold.
    """
    if lease is None or lease.version != write.version:
        return Lost(STALE)
    expired = lease.expires_at <= clock
    if lease.status not in LIVE_LEASE or (write.require_unexpired and expired):
        return Lost(FENCED)
    return Lost(STALE) if write.require_expired and not expired else None


def end(rows: EndRows, write: EndLease) -> Decided[Ended]:
    """End a lease that may end: settle it, move its event, free its agent, and score what is finished.

    Proposals, memories and the continuation of the write are kept beside this.
    """
    lease, paid = rows.lease, _paid(rows, write)
    periods = rows.periods if paid is None else (*rows.periods, paid.period)
    row = after(rows.event, write, rows.parked_gate, periods)
    ended = _ended(lease, write)
    changed: list[Row] = [ended, row, _freed(rows.head, lease, row.event.status)]
    if paid is not None:
        changed += (paid.period, paid.tenant, paid.spend)
    if (charged := bill(ended, periods, write.now)) is not None:
        changed.append(charged)
    if row.event.completed_at is not None and not rows.scored and not lease.shadow:
        denied = sum(gate.status in _REFUSED for gate in rows.gates)
        changed.append(score_of(row.event, denied, write.event.failed_checks, lease.budget_daily_nanos))
    if row.event.status is EventStatus.PROCESSED:
        changed += (replace(p, heard_at=write.now) for p in rows.handed if _is_unheard(p))
    answer = Ended(
        charged_nanos=0 if paid is None else paid.nanos,
        balance_nanos=(rows.tenant if paid is None else paid.tenant).balance_nanos,
        event=row.event,
        next_event_at=_next_at(rows, row.event, write.continuation),
        agent_version=rows.agent_version,
    )
    return Decided(answer, tuple(changed), write.frames)


def _paid(rows: EndRows, write: EndLease) -> Charged | None:
    part = write.slice
    return None if part is None else charge(rows.lease, part, rows.tenant, rows.spent, write.now)


def _ended(lease: Lease, write: EndLease) -> Lease:
    ended = replace(
        lease,
        status=write.status,
        version=lease.version + 1,
        ended_at=write.now,
        report_digest=write.report_digest,
    )
    if write.slice is None:
        return ended
    return replace(
        ended,
        metered_at=write.now,
        slice_seq=write.slice.seq,
        input_tokens=lease.input_tokens + write.slice.d_input_tokens,
        cached_input_tokens=lease.cached_input_tokens + write.slice.d_cached_tokens,
        output_tokens=lease.output_tokens + write.slice.d_output_tokens,
        cache_write_tokens=lease.cache_write_tokens + write.slice.d_cache_write_tokens,
        shares=lease.shares if write.slice.shares is None else write.slice.shares,
    )


def after(row: EventRow, write: EndLease, gate: Gate | None, periods: Sequence[MeteringPeriod]) -> EventRow:
    """Give the event as its lease leaves it; ``periods`` are all of its metering rows, this end's too."""
    event, ending = row.event, write.event
    parks = ending.status is EventStatus.WAITING_APPROVAL
    status, waits_at = park(event.id, gate) if parks else (ending.status, None)
    moved = replace(
        with_sums(_reported(event, ending), periods),
        status=status,
        attempts=max(0, event.attempts - ending.give_attempt_back),
        parked_at=write.now if parks else event.parked_at,
        updated_at=write.now,
        completed_at=write.now if status in FINISHED_EVENT else None,
    )
    return replace(row, event=moved, waits_at=waits_at)


def _reported(event: Event, ending: EventEnd) -> Event:
    """Add what the run says of itself; None leaves a field as it is."""
    return replace(
        event,
        failure_label=event.failure_label if ending.failure_label is None else ending.failure_label,
        error_code=event.error_code if ending.error_code is None else ending.error_code,
        response_text=event.response_text if ending.response_text is None else storable(ending.response_text),
        evidence=event.evidence if ending.evidence is None else copied(ending.evidence),
        checkpoint=event.checkpoint if ending.checkpoint is None else copied(ending.checkpoint),
        wall_ms=event.wall_ms + ending.wall_ms,
        retry_at=ending.retry_at,
    )


def _freed(head: Head, lease: Lease, status: EventStatus) -> Head:
    """Free the agent, if this lease holds it, and count the streak: a cancelled run says nothing of it."""
    if head.live_lease_id != lease.id:
        return head
    streak = head.streak if lease.shadow else streak_after(head.streak, status)
    return replace(head, live_lease_id=None, streak=streak)


def streak_after(streak: int, status: EventStatus) -> int:
    """Count the runs that were processed in a row.

    >>> [streak_after(4, s) for s in (EventStatus.PROCESSED, EventStatus.AGENT_ERROR, EventStatus.RECEIVED)]
    [5, 0, 4]
    """
    if status is EventStatus.PROCESSED:
        return streak + 1
    return 0 if status in _FAILURES else streak


def _is_unheard(proposal: Proposal) -> bool:
    return proposal.status is ProposalStatus.REJECTED and proposal.heard_at is None


def _next_at(rows: EndRows, event: Event, continuation: Event | None) -> int | None:
    """When the oldest of the agent's waiting events was received; a continuation comes behind all others.

    None also while this one waits for its time, as those behind it do.
    """
    if event.retry_at is not None:
        return None
    behind = continuation if rows.next is None else rows.next
    waiting = [] if behind is None else [behind.created_at]
    if event.status is EventStatus.RECEIVED:
        waiting.append(event.created_at)
    return min(waiting, default=None)
