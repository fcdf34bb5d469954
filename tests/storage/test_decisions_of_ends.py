"""Ends of leases, answers at gates, cancellations and kills: what is decided, to the last field."""

from typing import Any
from uuid import UUID

import pytest
from msgspec.structs import replace

from sexton_storage.decisions import end as ends, gates
from sexton_storage.decisions.cancel import CancelRows, cancel
from sexton_storage.decisions.end import EndRows
from sexton_storage.decisions.gates import ResolveRows
from sexton_storage.decisions.kill import KillRows, kill
from sexton_storage.decisions.rows import DaySpend, Decided, EventRow, Head, Spent
from sexton_storage.records.events import Event, EventStatus
from sexton_storage.records.follow_ups import FollowUp, FollowUpStatus
from sexton_storage.records.frames import NewFrame
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.records.improvement import Proposal, ProposalStatus, Score
from sexton_storage.records.leases import LeaseStatus, ModelShare
from sexton_storage.records.metering import MeteringPeriod, Slice
from sexton_storage.refusals import FENCED, GONE, STALE, Lost
from sexton_storage.scoring import score_of
from sexton_storage.streams import cancelled_frame, closed_frame
from sexton_storage.terms import KILL_FRAMES_MAX
from sexton_storage.writes import (
    CancelEvent,
    Cancelled,
    CancelOutcome,
    Ended,
    EndLease,
    EventEnd,
    GateOpened,
    GateResolved,
    OpenGate,
    ResolveGate,
)
from tests.storage.test_decisions_of_leases import (
    AGENT,
    CONFIG,
    EVENT,
    HELD,
    LEASE,
    NOW,
    OTHER,
    PLACE,
    RECEIVED,
    TENANT,
    TENANT_ID,
)

SHARES = (ModelShare("openai", "gpt"),)
FRAME = NewFrame(AGENT, EVENT, "event_complete", NOW, {})
RUNNING = replace(
    RECEIVED,
    status=EventStatus.RUNNING,
    attempts=2,
    input_tokens=1,
    cached_input_tokens=2,
    output_tokens=3,
    wall_ms=4,
    cache_write_tokens=5,
)
GATE = Gate(
    *(OTHER, AGENT, PLACE, TENANT_ID, EVENT, LEASE, "deploy", GateStatus.PENDING),
    requested_at=1,
    timeout_at=2,
)
EARLIER = MeteringPeriod(EVENT, 1, 1, 1, 2, 3, 0, 0, 0, 1_000, 1, 4)
REJECTED = Proposal(
    *(OTHER, AGENT, PLACE, TENANT_ID, ProposalStatus.REJECTED, "t", "r", "d", CONFIG, "run", 1)
)
ROWS = EndRows(
    lease=replace(HELD, input_tokens=1, cached_input_tokens=2, output_tokens=3, cache_write_tokens=4),
    event=EventRow(RUNNING, lease_count=2),
    head=Head(AGENT, 5, LEASE, OTHER, 8, 2),
    tenant=TENANT,
    gates=[replace(GATE, status=status) for status in GateStatus],
    parked_gate=None,
    periods=[EARLIER],
    spent=Spent(7, 9),
    next=None,
    handed=[REJECTED],
    scored=False,
    agent_version=7,
)
PART = Slice(6, 10, 20, 30, 40, 50, 60, 70)
PERIOD = MeteringPeriod(EVENT, 2, 6, 10, 20, 30, 40, 50, 60, 110, NOW, 70)
TOLD = EventEnd(
    status=EventStatus.PROCESSED,
    response_text="done",
    evidence={"a": 1},
    checkpoint={"b": 2},
    wall_ms=40,
    failed_checks=1,
)
REPORT = EndLease(LEASE, 4, LeaseStatus.REPORTED, NOW, PART, TOLD, (FRAME,), report_digest=b"digest")


def test_a_report_settles_its_lease_its_event_and_its_agent() -> None:
    lease = replace(
        ROWS.lease,
        status=LeaseStatus.REPORTED,
        version=5,
        ended_at=NOW,
        report_digest=b"digest",
        metered_at=NOW,
        slice_seq=6,
        input_tokens=11,
        cached_input_tokens=22,
        output_tokens=33,
        cache_write_tokens=74,
    )
    event = replace(
        RUNNING,
        status=EventStatus.PROCESSED,
        response_text="done",
        evidence={"a": 1},
        checkpoint={"b": 2},
        input_tokens=11,
        cached_input_tokens=22,
        output_tokens=33,
        wall_ms=44,
        cache_write_tokens=74,
        charged_nanos=1_110,
        updated_at=NOW,
        completed_at=NOW,
    )
    decided = ends.end(ROWS, REPORT)
    charge = next(row for row in decided.rows if type(row).__name__ == "Charge")

    assert decided.answer == Ended(110, 890, event, None, 7)
    assert decided.frames == (FRAME,)
    assert decided.rows == (
        lease,
        EventRow(event, None, 2),
        replace(ROWS.head, live_lease_id=None, streak=3),
        PERIOD,
        replace(TENANT, balance_nanos=890, updated_at=NOW),
        DaySpend(AGENT, 20_000, 117),
        charge,
        score_of(event, 3, 1, None),
        replace(REJECTED, heard_at=NOW),
    )


def test_what_costs_nothing_and_goes_back_changes_little() -> None:
    write = replace(
        REPORT,
        slice=None,
        status=LeaseStatus.RELEASED,
        event=EventEnd(EventStatus.RECEIVED, give_attempt_back=True, retry_at=NOW + 9),
    )
    decided = ends.end(replace(ROWS, periods=[]), write)
    event = replace(
        RUNNING,
        status=EventStatus.RECEIVED,
        attempts=1,
        retry_at=NOW + 9,
        updated_at=NOW,
        input_tokens=0,
        cached_input_tokens=0,
        output_tokens=0,
        cache_write_tokens=0,
    )

    assert decided.answer == Ended(0, 1_000, event, None, 7)
    assert decided.rows == (
        replace(ROWS.lease, status=LeaseStatus.RELEASED, version=5, ended_at=NOW, report_digest=b"digest"),
        EventRow(event, None, 2),
        replace(ROWS.head, live_lease_id=None),
    )


@pytest.mark.parametrize(
    ("rows", "lease", "scores"),
    [({}, {}, True), ({"scored": True}, {}, False), ({}, {"shadow": True}, False)],
)
def test_a_run_is_scored_once_and_a_shadow_run_never(
    rows: dict[str, Any], lease: dict[str, Any], scores: bool
) -> None:
    asked = replace(ROWS, **rows, lease=replace(ROWS.lease, budget_daily_nanos=500, **lease))
    decided = ends.end(asked, REPORT)
    found = [row for row in decided.rows if isinstance(row, Score)]
    head = next(row for row in decided.rows if isinstance(row, Head))

    assert len(found) == scores
    assert all((one.denied_gates, one.failed_checks, one.budget_nanos) == (3, 1, 500) for one in found)
    assert head.streak == (2 if lease else 3)


@pytest.mark.parametrize("status", list(GateStatus))
def test_a_gate_that_was_not_approved_counts_in_the_score(status: GateStatus) -> None:
    decided = ends.end(replace(ROWS, gates=[replace(GATE, status=status)]), REPORT)
    [score] = [row for row in decided.rows if isinstance(row, Score)]

    assert score.denied_gates == (status not in {GateStatus.PENDING, GateStatus.APPROVED})


@pytest.mark.parametrize("status", list(EventStatus))
def test_a_failure_ends_a_streak(status: EventStatus) -> None:
    failed = status in {EventStatus.AGENT_ERROR, EventStatus.DEAD_LETTERED}

    assert ends.streak_after(4, status) == (5 if status is EventStatus.PROCESSED else 0 if failed else 4)


def test_what_was_heard_before_or_was_not_rejected_is_not_heard_again() -> None:
    heard = replace(REJECTED, heard_at=5)
    pending = replace(REJECTED, status=ProposalStatus.PENDING)
    asked = replace(ROWS, handed=[heard, pending])
    failed = replace(REPORT, event=replace(TOLD, status=EventStatus.AGENT_ERROR))

    for rows, write in ((asked, REPORT), (ROWS, failed)):
        assert not any(isinstance(row, Proposal) for row in ends.end(rows, write).rows)


@pytest.mark.parametrize(
    ("changes", "waits"),
    [
        ({}, True),
        ({"status": GateStatus.APPROVED}, False),
        ({"event_id": OTHER}, False),
    ],
)
def test_an_event_parks_at_its_gate_while_that_is_open(changes: dict[str, Any], waits: bool) -> None:
    write = replace(REPORT, event=replace(TOLD, status=EventStatus.WAITING_APPROVAL, give_attempt_back=True))
    row = ends.after(ROWS.event, write, replace(GATE, **changes), [PERIOD, EARLIER])

    assert row.event.status is (EventStatus.WAITING_APPROVAL if waits else EventStatus.RECEIVED)
    assert row.waits_at == (OTHER if waits else None)
    assert (row.event.parked_at, row.event.attempts, row.event.charged_nanos) == (NOW, 1, 1_110)


def test_an_end_that_says_nothing_leaves_what_was_said_before() -> None:
    said = replace(
        RUNNING,
        attempts=0,
        failure_label="a",
        error_code="b",
        response_text="c",
        evidence={"d": 1},
        checkpoint={"e": 1},
        parked_at=3,
    )
    write = replace(REPORT, event=EventEnd(EventStatus.CANCELLED, give_attempt_back=True))
    row = ends.after(EventRow(said, OTHER, 2), write, None, [EARLIER])
    loud = replace(write, event=EventEnd(EventStatus.CANCELLED, failure_label="x", error_code="y"))
    other = ends.after(EventRow(said), loud, None, [])

    ended = {"status": EventStatus.CANCELLED, "updated_at": NOW, "completed_at": NOW}

    assert row == EventRow(replace(said, **ended, charged_nanos=1_000, cache_write_tokens=4), None, 2)
    assert (other.event.failure_label, other.event.error_code) == ("x", "y")


@pytest.mark.parametrize(
    ("lease", "asks", "clock", "answer"),
    [
        ({}, {}, NOW, None),
        ({}, {"require_unexpired": True}, NOW, None),
        ({}, {"require_unexpired": True}, NOW + 1, Lost(FENCED)),
        ({}, {"require_expired": True}, NOW, Lost(STALE)),
        ({}, {"require_expired": True}, NOW + 1, None),
        ({}, {}, NOW + 1, None),
        ({"version": 5}, {}, NOW, Lost(STALE)),
        ({"status": LeaseStatus.RECLAIMED}, {}, NOW, Lost(FENCED)),
        (None, {}, NOW, Lost(STALE)),
    ],
)
def test_a_lease_ends_once_and_on_the_right_side_of_its_deadline(
    lease: dict[str, Any] | None, asks: dict[str, Any], clock: int, answer: Lost | None
) -> None:
    held = None if lease is None else replace(HELD, **lease)

    assert ends.may_end(held, replace(REPORT, **asks), clock) == answer


def test_an_agent_that_another_lease_holds_is_not_freed_and_shares_stay_or_come() -> None:
    other = replace(ROWS, head=Head(AGENT, 6, OTHER), lease=replace(ROWS.lease, shares=SHARES))
    decided = ends.end(other, REPORT)
    new = ends.end(ROWS, replace(REPORT, slice=replace(PART, shares=SHARES)))

    assert Head(AGENT, 6, OTHER) in decided.rows
    assert [row.shares for found in (decided, new) for row in found.rows if hasattr(row, "shares")] == [
        SHARES,
        SHARES,
    ]


@pytest.mark.parametrize(
    ("status", "retry_at", "behind", "more", "at"),
    [
        (EventStatus.PROCESSED, None, None, None, None),
        (EventStatus.PROCESSED, None, 70, None, 70),
        (EventStatus.PROCESSED, None, None, 90, 90),
        (EventStatus.PROCESSED, None, 70, 90, 70),
        (EventStatus.RECEIVED, None, 70, None, 60),
        (EventStatus.RECEIVED, None, 50, None, 50),
        (EventStatus.RECEIVED, None, None, None, 60),
        (EventStatus.RECEIVED, NOW, 70, None, None),
    ],
)
def test_the_next_event_is_the_oldest_that_waits(
    status: EventStatus, retry_at: int | None, behind: int | None, more: int | None, at: int | None
) -> None:
    def event(created_at: int | None) -> Event | None:
        return None if created_at is None else replace(RECEIVED, created_at=created_at)

    rows = replace(ROWS, event=EventRow(replace(RUNNING, created_at=60)), next=event(behind))
    write = replace(REPORT, event=EventEnd(status, retry_at=retry_at), continuation=event(more))

    assert ends.end(rows, write).answer.next_event_at == at


# --- gates --------------------------------------------------------------------------------------------------

OPENING = OpenGate(GATE, 5, (FRAME,))
ANSWER = ResolveGate(
    *(OTHER, GateStatus.APPROVED, NOW, "user:1", "fine", EventStatus.RECEIVED, None, (FRAME,))
)
WAITING = EventRow(replace(RUNNING, status=EventStatus.WAITING_APPROVAL), OTHER, 2)


def test_a_gate_opens_once_under_a_lease_that_holds() -> None:
    earlier, closed = replace(GATE, lease_id=PLACE), replace(GATE, lease_id=PLACE, status=GateStatus.DENIED)

    assert gates.open_gate(OPENING, None, held=False) == Decided(Lost(FENCED))
    assert gates.open_gate(OPENING, None, held=True) == Decided(
        GateOpened(GATE, existed=False), (GATE,), (FRAME,)
    )
    assert gates.open_gate(OPENING, earlier, held=True) == Decided(GateOpened(GATE, existed=True), (GATE,))

    for known in (GATE, closed):
        assert gates.open_gate(OPENING, known, held=True) == Decided(GateOpened(known, existed=True))


def test_the_first_answer_frees_the_event_that_waits_here() -> None:
    gate = replace(GATE, status=GateStatus.APPROVED, updated_at=NOW, resolved_by="user:1", detail="fine")
    freed = EventRow(replace(RUNNING, status=EventStatus.RECEIVED, updated_at=NOW), None, 2)
    elsewhere = EventRow(WAITING.event, PLACE)

    assert gates.resolve_gate(ResolveRows(GATE, WAITING), ANSWER) == Decided(
        GateResolved(gate, event_freed=True), (gate, freed), (FRAME,)
    )

    for event in (None, elsewhere, EventRow(RUNNING, OTHER)):
        assert gates.resolve_gate(ResolveRows(GATE, event), ANSWER) == Decided(
            GateResolved(gate, event_freed=False), (gate,), (FRAME,)
        )
    for known in (None, gate):
        assert gates.resolve_gate(ResolveRows(known, WAITING), ANSWER) == Decided(Lost(STALE))


def test_an_answer_may_end_the_event_with_its_label_or_leave_the_one_it_had() -> None:
    denial = replace(ANSWER, event_status=EventStatus.GATE_BLOCKED, failure_label="approval_denied")
    labelled = EventRow(replace(WAITING.event, failure_label="before"), OTHER)
    ended = gates.resolve_gate(ResolveRows(GATE, WAITING), denial)
    kept = gates.resolve_gate(ResolveRows(GATE, labelled), ANSWER).rows[1]

    assert isinstance(ended.answer, GateResolved)
    assert not ended.answer.event_freed
    assert ended.rows[1] == EventRow(
        replace(
            RUNNING,
            status=EventStatus.GATE_BLOCKED,
            failure_label="approval_denied",
            updated_at=NOW,
            completed_at=NOW,
        ),
        None,
        2,
    )
    assert isinstance(kept, EventRow)
    assert kept.event.failure_label == "before"


# --- cancellations and kills --------------------------------------------------------------------------------

CANCEL = CancelEvent(AGENT, EVENT, NOW, (FRAME,))
ENDED = replace(
    RECEIVED, status=EventStatus.CANCELLED, failure_label="cancelled", completed_at=NOW, updated_at=NOW
)
LATE, EARLY = replace(GATE, requested_at=9), replace(GATE, id=PLACE, requested_at=3)
OVER = replace(GATE, status=GateStatus.APPROVED)
MARKED = replace(HELD, status=LeaseStatus.CANCELLING, version=5)


def test_an_event_that_waits_ends_with_its_gates_the_oldest_first() -> None:
    closed = [
        replace(gate, status=GateStatus.DENIED, updated_at=NOW, resolved_by="system:cancel")
        for gate in (EARLY, LATE)
    ]
    frames = [closed_frame(gate, GateStatus.DENIED, "system:cancel", NOW) for gate in (EARLY, LATE)]
    decided = cancel(CancelRows(EventRow(RECEIVED, OTHER, 1), [LATE, OVER, EARLY], HELD), CANCEL)

    assert decided == Decided(
        Cancelled(CancelOutcome.ENDED, None, EventStatus.CANCELLED, (PLACE, OTHER)),
        (EventRow(ENDED, None, 1), *closed),
        (*frames, FRAME),
    )


def test_a_run_is_marked_once_and_what_is_over_stays() -> None:
    row, over = EventRow(RUNNING), EventRow(replace(ENDED, status=EventStatus.PROCESSED))
    running = Cancelled(CancelOutcome.CANCELLING, LEASE, EventStatus.RUNNING)

    assert cancel(CancelRows(row, [], HELD), CANCEL) == Decided(running, (MARKED,))
    assert cancel(CancelRows(row, [], MARKED), CANCEL) == Decided(running, (MARKED,))
    assert cancel(CancelRows(row, [], None), CANCEL) == Decided(replace(running, lease_id=None))
    assert cancel(CancelRows(over, [], None), CANCEL) == Decided(
        Cancelled(CancelOutcome.CLOSED, None, EventStatus.PROCESSED)
    )
    assert cancel(CancelRows(None, [], None), CANCEL) == Decided(Lost(GONE))


def test_a_killed_agent_leaves_nothing_open() -> None:
    follow_up = FollowUp(OTHER, AGENT, EVENT, "c", "m", 5, 1)
    fired = replace(follow_up, id=PLACE, status=FollowUpStatus.FIRED)
    rows = KillRows(
        AGENT,
        [EventRow(RECEIVED), EventRow(RUNNING), EventRow(ENDED)],
        [LATE],
        [follow_up, fired],
        HELD,
    )
    gate = replace(LATE, status=GateStatus.AUTO_KILLED, updated_at=NOW, resolved_by="system:kill")

    assert kill(rows, (FRAME,), NOW) == Decided(
        (LEASE,),
        (
            gate,
            EventRow(ENDED),
            replace(follow_up, status=FollowUpStatus.DROPPED, closed_at=NOW),
            MARKED,
        ),
        (
            closed_frame(LATE, GateStatus.AUTO_KILLED, "system:kill", NOW),
            cancelled_frame(AGENT, EVENT, NOW),
            FRAME,
        ),
    )
    assert kill(replace(rows, lease=None, events=[], gates=[], follow_ups=[]), (), NOW) == Decided(())


def test_the_newest_of_many_events_are_told_of() -> None:
    ids = [UUID(int=n) for n in range(KILL_FRAMES_MAX + 2)]
    rows = KillRows(AGENT, [EventRow(replace(RECEIVED, id=one)) for one in reversed(ids)], [], [], None)
    decided = kill(rows, (), NOW)

    assert [frame.event_id for frame in decided.frames] == ids[2:]
    assert len(decided.rows) == len(ids)
