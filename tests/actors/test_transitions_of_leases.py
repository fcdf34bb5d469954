"""Leases: what renewals, reports, releases, parks and reclaims write, to the last field."""

from typing import Any
from uuid import UUID

import pytest
from msgspec.structs import replace

from sexton_actors.lease.transitions import end, shadows
from sexton_actors.lease.transitions.reclaim import abort, reclaim
from sexton_actors.lease.transitions.releases import park, release, undelivered
from sexton_actors.lease.transitions.renewals import answer, over_budget, renew
from sexton_actors.lease.transitions.reports import continuation_of, report
from sexton_actors.lease.transitions.state import LeaseState, fenced, is_live
from sexton_actors.protocol import lease as m
from sexton_actors.refusal import Refusal
from sexton_actors.terms import MAX_ATTEMPTS
from sexton_actors.token_counts import Tokens, Usage
from sexton_storage.records.events import Event, EventStatus
from sexton_storage.records.frames import NewFrame
from sexton_storage.records.leases import Lease, LeaseStatus, ModelShare
from sexton_storage.records.metering import Slice
from sexton_storage.writes import EndLease, EventEnd, Renewed, RenewLease
from tests.worlds.lease_samples import (
    AGENT,
    CANCELLING,
    EVENT,
    GATE,
    GATE_ID,
    IT,
    LEASE,
    NOW,
    OTHER,
    OVER,
    RUNNER,
    STATE,
)

PART = Slice(4, 0, 0, 0, 10, 10, 0, 0)
"""Ten milliseconds, and no token more."""
MORE = Slice(4, 1, 2, 3, 10, 10, 0, 4)


def complete(status: str, **more: Any) -> NewFrame:
    return NewFrame(AGENT, EVENT, "event_complete", NOW, {"status": status, **more})


def taken_back(cause: str, **more: Any) -> NewFrame:
    data = {"lease_id": str(IT), "runner_id": str(RUNNER), "fencing_token": 5, "attempt": 2, "cause": cause}
    return NewFrame(AGENT, EVENT, "lease_reclaimed", NOW, data | more)


CANCELLED = EventEnd(EventStatus.CANCELLED, failure_label="cancelled")
CANCELLED_FRAME = complete("cancelled", failure_label="cancelled")


# --- who may act --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lease", "runner", "token", "told"),
    [
        (LEASE, RUNNER, 5, None),
        (LEASE, RUNNER, None, None),
        (CANCELLING.lease, RUNNER, 5, None),
        (LEASE, OTHER, 5, ("UZ-RUN-006", {})),
        (LEASE, RUNNER, 4, ("UZ-RUN-005", {})),
        (replace(LEASE, expires_at=NOW), RUNNER, 5, ("UZ-RUN-005", {"current_state": "expired", "now": NOW})),
        (OVER.lease, RUNNER, 5, ("UZ-RUN-005", {"current_state": "reported", "now": NOW})),
    ],
)
def test_only_the_runner_that_holds_a_lease_acts_on_it(
    lease: Lease, runner: UUID, token: int | None, told: tuple[str, dict[str, Any]] | None
) -> None:
    found = fenced(lease, runner, token, NOW, "UZ-RUN-005")

    assert (found and (found.code, found.facts)) == told
    assert is_live(lease, NOW) is (told is None or told[1] == {})


# --- renewals -----------------------------------------------------------------------------------------------

ASKED = m.Renew(RUNNER, 11, 22, 33, fencing_token=5, cache_write_tokens=44)


def test_a_renewal_bills_what_is_new_and_extends_to_the_ceiling() -> None:
    renewed = replace(
        LEASE,
        version=5,
        expires_at=NOW + 20_000,
        metered_at=NOW,
        slice_seq=4,
        input_tokens=11,
        cached_input_tokens=22,
        output_tokens=33,
        run_ms=10,
        cache_write_tokens=44,
    )
    far = LeaseState(replace(LEASE, ceiling_at=NOW + 10**6))
    ahead = LeaseState(replace(LEASE, expires_at=NOW + 99_000))
    extended = renew(far, ASKED, NOW)
    kept = renew(ahead, ASKED, NOW)

    assert renew(STATE, ASKED, NOW) == RenewLease(renewed, MORE, NOW)
    assert isinstance(extended, RenewLease)
    assert extended.lease.expires_at == NOW + 30_000
    assert isinstance(kept, RenewLease)
    assert kept.lease.expires_at == NOW + 99_000


@pytest.mark.parametrize(
    ("changes", "asks", "code"),
    [
        ({"ceiling_at": NOW}, {}, "UZ-RUN-010"),
        ({"ceiling_at": NOW}, {"runner_id": OTHER}, "UZ-RUN-006"),
        ({"ceiling_at": NOW, "status": LeaseStatus.REPORTED}, {}, "UZ-RUN-011"),
        ({}, {"fencing_token": 4}, "UZ-RUN-011"),
        ({}, {"input_tokens": -1}, "UZ-REQ-001"),
    ],
)
def test_a_renewal_is_refused(changes: dict[str, Any], asks: dict[str, Any], code: str) -> None:
    found = renew(LeaseState(replace(LEASE, **changes)), replace(ASKED, **asks), NOW)

    assert isinstance(found, Refusal)
    assert found.code == code


@pytest.mark.parametrize(
    ("saved", "code"),
    [
        (Renewed(0, 0, 0, 0), "UZ-RUN-012"),
        (Renewed(0, -1, 0, 0), "UZ-RUN-012"),
        (Renewed(1, 0, 0, 0), None),
        (Renewed(0, 1, 0, 0), None),
        (Renewed(0, 0, 0, 0, unlimited=True), None),
        (Renewed(1, 9, 100, 0), "UZ-ZMB-001"),
        (Renewed(1, 9, 0, 200), "UZ-ZMB-001"),
        (Renewed(1, 9, 99, 199), None),
    ],
)
def test_a_runner_is_told_when_money_or_budget_is_spent(saved: Renewed, code: str | None) -> None:
    lease = replace(LEASE, budget_daily_nanos=100, budget_monthly_nanos=200)
    found = answer(lease, saved)
    unbounded = answer(LEASE, replace(saved, spent_day_nanos=10**9, spent_month_nanos=10**9, unlimited=True))

    assert (found.code if isinstance(found, Refusal) else None) == code
    assert isinstance(unbounded, m.Renewal)


def test_a_renewal_is_told_in_full() -> None:
    saved = Renewed(1, 9, 100, 0)
    daily = answer(replace(LEASE, budget_daily_nanos=100), saved)
    empty = answer(LEASE, Renewed(0, 0, 0, 0))

    assert answer(LEASE, saved) == m.Renewal(NOW + 1, 3, 1, 9, NOW + 20_000, "active")
    assert answer(CANCELLING.lease, saved) == m.Renewal(NOW + 1, 3, 1, 9, NOW + 20_000, "cancelling")
    assert isinstance(daily, Refusal)
    assert daily.facts == {"spent_today_nanos": 100, "balance_nanos": 9}
    assert isinstance(empty, Refusal)
    assert empty.facts == {"balance_nanos": 0}

    monthly = answer(replace(LEASE, budget_monthly_nanos=5), Renewed(1, 9, 0, 5))
    assert isinstance(monthly, Refusal)
    assert monthly.code == "UZ-ZMB-001"
    assert not over_budget(replace(LEASE, budget_daily_nanos=5), 4, 99)
    assert over_budget(replace(LEASE, budget_monthly_nanos=5), 99, 5)
    assert not over_budget(replace(LEASE, budget_monthly_nanos=5), 99, 4)


# --- reports ------------------------------------------------------------------------------------------------

SAID = m.Report(
    RUNNER,
    EVENT,
    5,
    "processed",
    None,
    "done",
    {"a": 1},
    11,
    22,
    33,
    None,
    77,
    {"b": 2},
    b"digest",
    cache_write_tokens=44,
)
TOLD = EventEnd(
    EventStatus.PROCESSED,
    response_text="done",
    evidence={"a": 1},
    checkpoint={"b": 2},
    wall_ms=77,
)
ENDED = EndLease(
    IT,
    4,
    LeaseStatus.REPORTED,
    NOW,
    MORE,
    TOLD,
    (complete("processed"),),
    require_unexpired=True,
    report_digest=b"digest",
)


def test_a_report_settles_and_finishes() -> None:
    less = report(
        STATE,
        replace(
            SAID, input_tokens=1, cached_input_tokens=1, output_tokens=1, cache_write_tokens=1, wall_ms=0
        ),
        NOW,
    )

    assert report(STATE, SAID, NOW) == ENDED
    assert less == replace(
        ENDED,
        slice=PART,
        event=replace(TOLD, wall_ms=0),
    )


@pytest.mark.parametrize(
    ("state", "says", "status", "label", "code", "checks"),
    [
        (STATE, {"outcome": "cancelled"}, "cancelled", "cancelled", None, 0),
        (CANCELLING, {}, "cancelled", "cancelled", None, 0),
        (STATE, {"outcome": "agent_error"}, "agent_error", "agent_run", "UZ-EXEC-013", 0),
        (
            STATE,
            {"outcome": "agent_error", "failure_reason": "gate_command_failed"},
            "agent_error",
            "gate_command_failed",
            "UZ-GATE-001",
            1,
        ),
    ],
)
def test_a_run_that_was_stopped_or_failed_ends_so(
    state: LeaseState, says: dict[str, Any], status: str, *, label: str, code: str | None, checks: int
) -> None:
    found = report(state, replace(SAID, **says), NOW)
    told = replace(
        TOLD, status=EventStatus(status), failure_label=label, error_code=code, failed_checks=checks
    )

    assert found == replace(ENDED, event=told, frames=(complete(status, failure_label=label),))


EVENT_ROW = Event(
    *(EVENT, AGENT, IT, OTHER, "webhook:github", "push", EventStatus.RUNNING, '{"x": 1}', 1, 1),
    source_event_id="s",
    traceparent="t",
    asked_version=3,
    trial_id=GATE_ID,
)


def test_what_is_left_to_do_goes_on_as_another_event() -> None:
    next_one = continuation_of(EVENT_ROW, SAID, OTHER, NOW)
    data = {
        "actor": "webhook:github",
        "event_type": "push",
        "source_event_id": "s",
        "resumes_event_id": str(EVENT),
    }
    frame = NewFrame(AGENT, OTHER, "event_received", NOW, data)

    assert next_one == Event(
        *(OTHER, AGENT, IT, OTHER, "webhook:github", "push", EventStatus.RECEIVED, '{"x": 1}', NOW, NOW),
        source_event_id="s",
        resumes_event_id=EVENT,
        traceparent="t",
        checkpoint={"b": 2},
        asked_version=3,
        trial_id=GATE_ID,
    )
    assert continuation_of(EVENT_ROW, replace(SAID, checkpoint=None), OTHER, NOW) is None
    assert continuation_of(EVENT_ROW, replace(SAID, outcome="agent_error"), OTHER, NOW) is None
    assert report(STATE, SAID, NOW, (), next_one) == replace(
        ENDED,
        event=replace(TOLD, checkpoint=None),
        continuation=next_one,
        frames=(complete("processed"), frame),
    )

    failed = report(STATE, replace(SAID, outcome="agent_error"), NOW, (), next_one)
    assert isinstance(failed, EndLease)
    assert failed.continuation is None


def test_proposals_and_memories_are_kept_unless_the_run_was_stopped_or_a_shadow() -> None:
    made: Any = ("proposal",)
    memory: Any = ("memory",)
    says = replace(SAID, memory=memory)
    shadow = LeaseState(replace(LEASE, shadow=True))
    next_one = continuation_of(EVENT_ROW, SAID, OTHER, NOW)
    found = [report(state, says, NOW, made, next_one) for state in (STATE, CANCELLING, shadow)]

    assert [isinstance(one, EndLease) and (one.proposals, one.memory) for one in found] == [
        (made, memory),
        ((), memory),
        ((), ()),
    ]
    assert isinstance(found[2], EndLease)
    assert (found[2].continuation, found[2].event.checkpoint) == (None, None)
    assert shadows.without_changes(replace(says, proposals=made)) == replace(SAID, checkpoint=None)


def test_a_lease_that_is_lost_says_why() -> None:
    expired = fenced(LEASE, RUNNER, 5, NOW + 1, "UZ-RUN-011")
    reported = fenced(OVER.lease, RUNNER, 5, NOW, "UZ-RUN-011")

    assert isinstance(expired, Refusal)
    assert expired.detail == f"Lease {IT} is not held any more: its term passed."
    assert isinstance(reported, Refusal)
    assert reported.detail == f"Lease {IT} is not held any more: it is reported."


@pytest.mark.parametrize(
    ("says", "code"),
    [
        ({"event_id": OTHER}, "UZ-REQ-001"),
        ({"event_id": OTHER, "runner_id": OTHER}, "UZ-RUN-006"),
        ({"fencing_token": 4}, "UZ-RUN-005"),
        ({"output_tokens": -1}, "UZ-REQ-001"),
        ({"fallbacks": (Tokens(99),)}, "UZ-REQ-001"),
        ({"cache_write_tokens": 10**12 + 1}, "UZ-REQ-001"),
        ({"wall_ms": -1}, "UZ-REQ-001"),
        ({"wall_ms": 10**12 + 1}, "UZ-REQ-001"),
        ({"wall_ms": 10**12}, None),
    ],
)
def test_a_report_that_cannot_be_is_refused(says: dict[str, Any], code: str | None) -> None:
    found = report(STATE, replace(SAID, **says), NOW)

    assert (found.code if isinstance(found, Refusal) else None) == code


# --- back to the queue --------------------------------------------------------------------------------------

HELD_MS = 40_000
"""How long the runner has had the lease, which counts however it gives it back."""
BACK = EndLease(
    *(IT, 4, LeaseStatus.RELEASED, NOW, PART),
    EventEnd(EventStatus.RECEIVED, give_attempt_back=True, wall_ms=HELD_MS),
    (taken_back("released", reason="why"),),
    require_unexpired=True,
)
STOPPED = replace(BACK, event=replace(CANCELLED, wall_ms=HELD_MS), frames=(CANCELLED_FRAME,))
USED = Usage(11, 22, 33, cache_write_tokens=44)


def test_an_event_is_released_at_once_or_after_a_time() -> None:
    asked = m.Release(RUNNER, "why", 5)
    later = replace(asked, retry_after_ms=9, checkpoint={"b": 2}, usage=USED)
    told = EventEnd(
        EventStatus.RECEIVED,
        give_attempt_back=True,
        retry_at=NOW + 9,
        checkpoint={"b": 2},
        wall_ms=HELD_MS,
    )
    less = release(STATE, replace(asked, usage=Usage(1, 1, 1, cache_write_tokens=1)), NOW)

    assert release(STATE, asked, NOW) == BACK
    assert release(STATE, later, NOW) == replace(
        BACK, slice=MORE, event=told, frames=(taken_back("released", reason="why", retry_at=NOW + 9),)
    )
    assert release(CANCELLING, asked, NOW) == STOPPED
    assert release(CANCELLING, later, NOW) == replace(STOPPED, slice=MORE)
    assert isinstance(less, EndLease)
    assert less.slice == PART


@pytest.mark.parametrize(
    ("asks", "code"), [({"fencing_token": 4}, "UZ-RUN-005"), ({"usage": Usage(-1, 0, 0)}, "UZ-REQ-001")]
)
def test_a_release_is_refused(asks: dict[str, Any], code: str) -> None:
    found = release(STATE, replace(m.Release(RUNNER, "", 5), **asks), NOW)

    assert isinstance(found, Refusal)
    assert found.code == code


def test_the_wall_time_of_a_run_is_never_below_nothing() -> None:
    early = LeaseState(replace(LEASE, granted_at=NOW + 9))
    released = release(early, m.Release(RUNNER, "", 5, usage=USED), NOW)
    parked = park(early, m.Park(RUNNER, GATE_ID, {}, 5), GATE, NOW)

    assert isinstance(released, EndLease)
    assert isinstance(parked, EndLease)
    assert (released.event.wall_ms, parked.event.wall_ms) == (0, 0)


def test_a_grant_that_reached_nobody_goes_back_unbilled() -> None:
    nobody_ran = replace(BACK.event, wall_ms=0)

    assert undelivered(STATE, NOW) == replace(
        BACK, slice=None, event=nobody_ran, require_unexpired=False, frames=(taken_back("undelivered"),)
    )
    assert undelivered(OVER, NOW) is None


def test_a_run_parks_at_a_gate_of_its_event() -> None:
    asked = m.Park(RUNNER, GATE_ID, {"b": 2}, 5)
    told = EventEnd(
        EventStatus.WAITING_APPROVAL,
        give_attempt_back=True,
        checkpoint={"b": 2},
        wall_ms=HELD_MS,
    )
    parked = EndLease(
        *(IT, 4, LeaseStatus.PARKED, NOW, PART, told, ()), require_unexpired=True, parked_gate_id=GATE_ID
    )
    refused = [park(STATE, asked, gate, NOW) for gate in (None, replace(GATE, event_id=OTHER))]
    late = park(STATE, replace(asked, fencing_token=4), GATE, NOW)

    assert park(STATE, asked, GATE, NOW) == parked
    assert park(CANCELLING, asked, GATE, NOW) == STOPPED
    assert [one.code for one in refused if isinstance(one, Refusal)] == ["UZ-APPROVAL-002"] * 2
    assert isinstance(late, Refusal)
    assert late.code == "UZ-RUN-005"


def test_the_last_slice_is_of_the_last_renewal_also_where_models_share_it() -> None:
    first = ModelShare(
        "a", "m", input_tokens=6, cached_input_tokens=20, output_tokens=30, cache_write_tokens=40
    )
    shares = (first, ModelShare("b", "n", input_tokens=4))
    shared = LeaseState(replace(LEASE, shares=shares))

    assert end.slice_to(shared, NOW).shares == shares
    assert end.slice_to(STATE, NOW) == PART


# --- taken back ---------------------------------------------------------------------------------------------


def test_a_run_that_must_not_start_ends_unbilled() -> None:
    asked = m.Abort("ceiling", "too late")
    told = EventEnd(
        EventStatus.AGENT_ERROR, failure_label="ceiling", error_code="UZ-RUN-010", response_text="too late"
    )
    ended = EndLease(
        *(IT, 4, LeaseStatus.REPORTED, NOW, None, told),
        (complete("agent_error", failure_label="ceiling"),),
    )

    assert abort(STATE, asked, NOW) == ended
    assert abort(CANCELLING, asked, NOW) == replace(ended, event=CANCELLED, frames=(CANCELLED_FRAME,))
    assert abort(OVER, asked, NOW) is None


LATE = NOW + 1
LOST = EventEnd(EventStatus.DEAD_LETTERED, failure_label="runner_lost", error_code="UZ-RUN-016")
CEILING = EventEnd(EventStatus.AGENT_ERROR, failure_label="ceiling", error_code="UZ-RUN-010")


@pytest.mark.parametrize(
    ("changes", "attempts", "told"),
    [
        ({}, MAX_ATTEMPTS - 1, EventEnd(EventStatus.RECEIVED)),
        ({}, MAX_ATTEMPTS, LOST),
        ({"ceiling_at": NOW}, MAX_ATTEMPTS, CEILING),
        ({"status": LeaseStatus.CANCELLING}, MAX_ATTEMPTS, CANCELLED),
    ],
)
@pytest.mark.parametrize("cause", ["expired", "revoked", "died"])
def test_a_lease_is_taken_back(changes: dict[str, Any], attempts: int, told: EventEnd, cause: Any) -> None:
    state = LeaseState(replace(LEASE, expires_at=NOW, **changes))
    event = replace(EVENT_ROW, attempts=attempts)
    label = {"failure_label": told.failure_label}
    ends = () if told.status is EventStatus.RECEIVED else (complete(str(told.status), **label),)

    assert reclaim(state, event, NOW, cause) == EndLease(
        *(IT, 4, LeaseStatus.RECLAIMED, NOW, None, told),
        (taken_back(cause), *ends),
        require_expired=cause == "expired",
    )


def test_a_lease_in_its_term_is_taken_back_only_from_a_runner_that_is_gone() -> None:
    assert reclaim(STATE, EVENT_ROW, NOW, "expired") is None
    assert reclaim(STATE, EVENT_ROW, NOW, "died") is not None
    assert reclaim(OVER, EVENT_ROW, LATE, "died") is None
