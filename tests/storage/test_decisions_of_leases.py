"""Claims, renewals and their bills: what is decided, to the last field, and what is refused."""

from typing import Any
from uuid import UUID

import pytest
from msgspec.structs import replace

from sexton_storage.decisions import charge, claim, fence
from sexton_storage.decisions.claim import ClaimRows
from sexton_storage.decisions.renew import RenewRows, renew
from sexton_storage.decisions.rows import DaySpend, Decided, EventRow, Head, Spent
from sexton_storage.records.charges import Charge
from sexton_storage.records.events import Asked, Event, EventStatus
from sexton_storage.records.leases import Lease, LeaseStatus, ModelShare, Rates
from sexton_storage.records.metering import MeteringPeriod, Slice
from sexton_storage.records.runners import AdminState, Runner
from sexton_storage.records.tenants import PlanTier, Tenant
from sexton_storage.records.zombies import Zombie, ZombieStatus
from sexton_storage.refusals import FENCED, STALE, Lost
from sexton_storage.streams import leased_frame
from sexton_storage.writes import Claimed, ClaimEvent, Exhausted, NothingToClaim, Renewed, RenewLease

TENANT_ID, PLACE, AGENT, EVENT, LEASE, RUNNER, CONFIG, OTHER = (UUID(int=n) for n in range(1, 9))
DAY_MS = 86_400_000
NOW = 20_000 * DAY_MS + 5
SHARES = (ModelShare("openai", "gpt"),)
TENANT = Tenant(TENANT_ID, "t", PlanTier.FREE, 1_000, None, 1, 1)
ZOMBIE = Zombie(
    *(AGENT, PLACE, TENANT_ID, "x", ZombieStatus.ACTIVE, 7, CONFIG, 3, {}, (), b"", {}),
    created_at=1,
    updated_at=1,
)
RECEIVED = Event(
    *(EVENT, AGENT, PLACE, TENANT_ID, "system", "push", EventStatus.RECEIVED, "{}", NOW - 50, NOW - 50)
)
HELD = Lease(
    id=LEASE,
    event_id=EVENT,
    zombie_id=AGENT,
    workspace_id=PLACE,
    tenant_id=TENANT_ID,
    runner_id=RUNNER,
    fencing_token=5,
    attempt=2,
    status=LeaseStatus.ACTIVE,
    version=4,
    granted_at=NOW - 40,
    expires_at=NOW + 1,
    ceiling_at=NOW + 900,
    metered_at=NOW - 10,
    rates=Rates(9),
)
WRITE = ClaimEvent(
    *(AGENT, LEASE, RUNNER, NOW, 30, 900, Rates(9), 100, 200),
    config_version_id=CONFIG,
    model="gpt",
    own_key=True,
    shares=SHARES,
    agent_version=7,
    ran_version=3,
)
TAKER = Runner(RUNNER, "h", "none", (), 2, b"", AdminState.ACTIVE, 1, 1)
ROWS = ClaimRows(
    agent=ZOMBIE,
    head=Head(AGENT, fence=4, frame_seq=8, streak=2),
    freed_at=None,
    tenant=TENANT,
    paused=False,
    runner=TAKER,
    runner_holds=1,
    next=EventRow(RECEIVED, lease_count=1),
    more=True,
    spent=Spent(99, 199),
    endowed=False,
)


def test_a_lease_is_born_with_all_that_its_run_is_to_have() -> None:
    event = replace(
        RECEIVED, status=EventStatus.RUNNING, attempts=1, first_leased_at=NOW, ran_version=3, updated_at=NOW
    )
    lease = replace(
        HELD,
        version=1,
        granted_at=NOW,
        expires_at=NOW + 30,
        metered_at=NOW,
        budget_daily_nanos=100,
        budget_monthly_nanos=200,
        config_version_id=CONFIG,
        model="gpt",
        own_key=True,
        shares=SHARES,
    )
    head = Head(AGENT, 5, LEASE, RUNNER, 8, 2)

    assert claim.claim(ROWS, WRITE) == Decided(
        Claimed(event, lease, more=True, endowed=False),
        (EventRow(event, None, 2), lease, head),
        (leased_frame(lease),),
    )


@pytest.mark.parametrize(("freed_at", "began"), [(None, NOW), (NOW - 1, NOW), (NOW + 1, NOW + 1)])
def test_a_lease_begins_no_earlier_than_the_last_one_ended(freed_at: int | None, began: int) -> None:
    found = claim.claim(replace(ROWS, freed_at=freed_at), WRITE).answer

    assert isinstance(found, Claimed)
    assert (found.lease.granted_at, found.lease.metered_at, found.event.updated_at) == (began, began, began)
    assert found.lease.expires_at == began + 30


def test_a_later_lease_counts_from_the_first_and_from_what_was_parked() -> None:
    came_back = replace(
        RECEIVED,
        attempts=1,
        first_leased_at=NOW - 890,
        parked_ms=3,
        parked_at=NOW - 7,
        retry_at=NOW,
        shadow_job=OTHER,
    )
    found = claim.claim(replace(ROWS, next=EventRow(came_back)), WRITE).answer
    ahead = claim.running(replace(came_back, parked_at=NOW + 9), NOW, None)

    assert isinstance(found, Claimed)
    assert (found.lease.ceiling_at, found.lease.expires_at) == (NOW + 20, NOW + 20)
    assert (found.event.attempts, found.event.parked_ms, found.event.parked_at) == (2, 10, None)
    assert (found.event.first_leased_at, found.event.retry_at) == (NOW - 890, None)
    assert found.lease.shadow
    assert ahead.parked_ms == 3
    assert claim.running(RECEIVED, NOW, None).parked_ms == 0
    assert claim.new_lease(WRITE, EventRow(RECEIVED), token=1).ceiling_at == NOW + 900


@pytest.mark.parametrize(
    ("changes", "asks", "reason"),
    [
        ({"agent": None}, {}, "gone"),
        ({"head": None}, {}, "gone"),
        ({"tenant": None}, {}, "gone"),
        ({}, {"agent_version": 6}, "changed"),
        ({"runner": replace(TAKER, tenant_id=OTHER)}, {}, "out_of_scope"),
        ({"agent": replace(ZOMBIE, status=ZombieStatus.PAUSED)}, {}, "not_active"),
        ({"head": Head(AGENT, live_lease_id=OTHER)}, {}, "leased"),
        ({"paused": True}, {}, "workspace_paused"),
        ({"next": None}, {}, "empty"),
        ({"next": EventRow(replace(RECEIVED, retry_at=NOW + 1))}, {}, "not_yet"),
        ({}, {"asked": Asked(9, None)}, "other_version"),
        ({"spent": Spent(100, 0)}, {}, "over_budget"),
        ({"spent": Spent(0, 200)}, {}, "over_budget"),
        ({"runner_holds": 2}, {}, "runner_full"),
    ],
)
def test_nothing_is_claimed_and_nothing_changes(
    changes: dict[str, Any], asks: dict[str, Any], reason: str
) -> None:
    decided = claim.claim(replace(ROWS, **changes), replace(WRITE, **asks))

    assert isinstance(decided.answer, NothingToClaim)
    assert (decided.answer.reason, decided.rows, decided.frames) == (reason, (), ())


def test_who_asks_without_conditions_is_given_the_event() -> None:
    free = replace(ROWS, runner=None, runner_holds=99, spent=Spent(9_999, 9_999))
    unbounded = replace(WRITE, budget_daily_nanos=None, budget_monthly_nanos=None, agent_version=None)
    due = replace(ROWS, next=EventRow(replace(RECEIVED, retry_at=NOW)))
    asks = replace(ROWS, next=EventRow(replace(RECEIVED, asked_version=9)))
    other = claim.claim(asks, WRITE).answer

    assert isinstance(claim.claim(free, unbounded).answer, Claimed)
    assert isinstance(claim.claim(due, WRITE).answer, Claimed)
    assert other == NothingToClaim("other_version", Asked(9, None))


def test_without_money_the_event_is_set_aside_before_slots_are_asked_for() -> None:
    poor = replace(ROWS, tenant=replace(TENANT, balance_nanos=0), runner_holds=9)
    blocked = replace(
        RECEIVED,
        status=EventStatus.GATE_BLOCKED,
        failure_label="balance_exhausted",
        error_code="UZ-BILLING-005",
        updated_at=NOW,
    )

    assert claim.claim(poor, WRITE) == Decided(Exhausted(EVENT), (EventRow(blocked, None, 1),))
    assert claim.unblocked(blocked, NOW + 1) == replace(RECEIVED, updated_at=NOW + 1)


# --- bills --------------------------------------------------------------------------------------------------

PART = Slice(6, 10, 20, 30, 40, 50, 60, 70)
PERIOD = MeteringPeriod(EVENT, 2, 6, 10, 20, 30, 40, 50, 60, 110, NOW, 70)


@pytest.mark.parametrize(
    ("balance", "unlimited", "charged", "left", "since"),
    [
        (1_000, False, 110, 890, None),
        (110, False, 110, 0, NOW),
        (111, False, 110, 1, None),
        (100, False, 100, 0, NOW),
        (-5, False, 0, -5, NOW),
        (100, True, 110, -10, None),
    ],
)
def test_a_slice_is_billed_up_to_what_is_left(
    balance: int, unlimited: bool, charged: int, left: int, since: int | None
) -> None:
    tenant = replace(TENANT, balance_nanos=balance, unlimited=unlimited)
    paid = charge.charge(HELD, PART, tenant, Spent(7, 9), NOW)

    assert paid.nanos == charged
    assert paid.period == replace(PERIOD, charged_nanos=charged)
    assert paid.tenant == replace(tenant, balance_nanos=left, exhausted_at=since, updated_at=NOW)
    assert paid.spend == DaySpend(AGENT, 20_000, 7 + charged)


def test_the_first_time_that_nothing_was_left_is_kept() -> None:
    out = replace(TENANT, balance_nanos=0, exhausted_at=NOW - 9)

    assert charge.debited(out, 0, NOW).exhausted_at == NOW - 9


def test_a_lease_is_billed_its_own_slices_alone() -> None:
    other = replace(PERIOD, attempt=1, charged_nanos=5_000)
    second = replace(PERIOD, slice_seq=7, charged_nanos=3)
    lease = replace(HELD, model="gpt", shares=SHARES)
    found = charge.bill(lease, [PERIOD, other, second], NOW)

    assert found == Charge(
        id=LEASE,
        event_id=EVENT,
        zombie_id=AGENT,
        workspace_id=PLACE,
        tenant_id=TENANT_ID,
        charge_type="stage",
        posture="platform",
        model="gpt",
        credit_deducted_nanos=113,
        token_count_input=200,
        token_count_output=60,
        wall_ms=80,
        recorded_at=NOW,
        models=SHARES,
    )

    own = charge.bill(replace(lease, own_key=True), [PERIOD], NOW)
    assert own is not None
    assert own.posture == "self_managed"
    assert charge.bill(lease, [other], NOW) is None


# --- renewals -----------------------------------------------------------------------------------------------

ASKED = replace(
    HELD,
    version=5,
    expires_at=NOW + 31,
    metered_at=NOW,
    slice_seq=6,
    input_tokens=11,
    cached_input_tokens=21,
    output_tokens=31,
    run_ms=41,
    cache_write_tokens=71,
)
RENEWAL = RenewLease(replace(ASKED, runner_id=OTHER, fencing_token=99), PART, NOW)
STANDING = RenewRows(HELD, TENANT, Spent(7, 9), NOW)


@pytest.mark.parametrize(("told", "kept"), [(None, None), (SHARES, SHARES)])
def test_a_renewal_moves_what_is_a_renewals_and_nothing_else(told: Any, kept: Any) -> None:
    decided = renew(STANDING, replace(RENEWAL, slice=replace(PART, shares=told)))

    assert decided == Decided(
        Renewed(110, 890, 117, 119, unlimited=False),
        (
            replace(ASKED, shares=kept),
            PERIOD,
            replace(TENANT, balance_nanos=890, updated_at=NOW),
            DaySpend(AGENT, 20_000, 117),
        ),
    )


def test_the_shares_stay_where_a_slice_says_none() -> None:
    shared = replace(STANDING, lease=replace(HELD, shares=SHARES), tenant=replace(TENANT, unlimited=True))
    decided = renew(shared, RENEWAL)

    assert isinstance(decided.answer, Renewed)
    assert decided.answer.unlimited
    assert isinstance(decided.rows[0], Lease)
    assert decided.rows[0].shares == SHARES


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"lease": None}, STALE),
        ({"tenant": None}, STALE),
        ({"lease": replace(HELD, version=5)}, STALE),
        ({"lease": replace(HELD, status=LeaseStatus.REPORTED)}, FENCED),
        ({"clock": NOW + 1}, FENCED),
    ],
)
def test_a_renewal_of_what_is_not_held_changes_nothing(changes: dict[str, Any], why: str) -> None:
    assert renew(replace(STANDING, **changes), RENEWAL) == Decided(Lost(why))


HEAD = Head(AGENT, fence=5, live_lease_id=LEASE)


@pytest.mark.parametrize(
    ("head", "lease", "token", "holds"),
    [
        (HEAD, HELD, 5, True),
        (HEAD, replace(HELD, status=LeaseStatus.CANCELLING), 5, True),
        (HEAD, replace(HELD, status=LeaseStatus.REPORTED), 5, False),
        (HEAD, replace(HELD, expires_at=NOW), 5, False),
        (HEAD, HELD, 4, False),
        (HEAD, None, 5, False),
        (None, HELD, 5, False),
        (replace(HEAD, live_lease_id=OTHER), HELD, 5, False),
        (replace(HEAD, live_lease_id=None), HELD, 5, False),
    ],
)
def test_a_lease_holds_its_agent_under_its_token_and_in_its_term(
    head: Head | None, lease: Lease | None, token: int, holds: bool
) -> None:
    assert fence.holds(head, lease, LEASE, token, NOW) is holds
