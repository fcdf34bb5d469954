"""What becomes of a plan: every state under every word of the payment provider."""

from itertools import product
from uuid import UUID

import pytest
from hypothesis import given, strategies as st
from msgspec.structs import replace

from sexton_actors.ledger.transitions import (
    GRACE_MS,
    BillingEvent,
    end_grace,
    fault_of,
    occur,
    subscribe,
)
from sexton_actors.refusal import Refusal
from sexton_storage.records.plans import Plan, PlanStatus, first_plan, sku_of
from sexton_storage.records.tenants import PlanTier, Tenant

NOW = 1_000_000
LATER = NOW + GRACE_MS


def plan_of(tier: PlanTier, status: PlanStatus = PlanStatus.ACTIVE, lapsed: PlanTier | None = None) -> Plan:
    first = first_plan(Tenant(UUID(int=1), "t", tier, 0, None, 0, 0))
    grace = LATER if status is PlanStatus.GRACE else None
    return replace(
        first, status=status, grace_expires_at=grace, lapsed_tier=lapsed, subscription_id="sub_abc"
    )


STATES = {
    "free": plan_of(PlanTier.FREE),
    "pro": plan_of(PlanTier.PRO),
    "enterprise": plan_of(PlanTier.ENTERPRISE),
    "pro in grace": plan_of(PlanTier.PRO, PlanStatus.GRACE),
    "lapsed from pro": plan_of(PlanTier.FREE, PlanStatus.DOWNGRADED, PlanTier.PRO),
    "given up": replace(plan_of(PlanTier.FREE, PlanStatus.DOWNGRADED), subscription_id=""),
}
SAME = "as it was"
TABLE = {
    ("free", BillingEvent.PAYMENT_FAILED): SAME,
    ("free", BillingEvent.PAYMENT_RECOVERED): SAME,
    ("free", BillingEvent.DOWNGRADE_TO_FREE): SAME,
    ("pro", BillingEvent.PAYMENT_FAILED): "pro in grace",
    ("pro", BillingEvent.PAYMENT_RECOVERED): SAME,
    ("pro", BillingEvent.DOWNGRADE_TO_FREE): "given up",
    ("enterprise", BillingEvent.PAYMENT_FAILED): "enterprise in grace",
    ("enterprise", BillingEvent.PAYMENT_RECOVERED): SAME,
    ("enterprise", BillingEvent.DOWNGRADE_TO_FREE): "given up",
    ("pro in grace", BillingEvent.PAYMENT_FAILED): SAME,
    ("pro in grace", BillingEvent.PAYMENT_RECOVERED): "pro",
    ("pro in grace", BillingEvent.DOWNGRADE_TO_FREE): "given up",
    ("lapsed from pro", BillingEvent.PAYMENT_FAILED): SAME,
    ("lapsed from pro", BillingEvent.PAYMENT_RECOVERED): "pro",
    ("lapsed from pro", BillingEvent.DOWNGRADE_TO_FREE): "given up",
    ("given up", BillingEvent.PAYMENT_FAILED): SAME,
    ("given up", BillingEvent.PAYMENT_RECOVERED): SAME,
    ("given up", BillingEvent.DOWNGRADE_TO_FREE): SAME,
}
REACHED = STATES | {"enterprise in grace": plan_of(PlanTier.ENTERPRISE, PlanStatus.GRACE)}


def test_the_table_has_every_state_under_every_word() -> None:
    assert set(TABLE) == set(product(STATES, BillingEvent))


@pytest.mark.parametrize(("state", "event"), TABLE, ids=str)
def test_a_word_of_the_payment_provider_makes_of_a_plan_what_the_table_says(
    state: str, event: BillingEvent
) -> None:
    plan, expected = STATES[state], TABLE[state, event]
    found = occur(plan, event, "why", "user:1", NOW)
    if expected == SAME:
        assert found == plan
        return
    stamp = {"version": plan.version + 1, "reason": "why", "changed_by": "user:1", "updated_at": NOW}

    assert found == replace(REACHED[expected], **stamp)
    assert fault_of(found, found.tier) is None


@pytest.mark.parametrize("state", STATES)
def test_a_subscription_makes_any_plan_pro(state: str) -> None:
    bought = subscribe(STATES[state], "sub_new_1", "user:1", NOW)

    assert isinstance(bought, Plan)
    assert (bought.tier, bought.sku, bought.status) == (PlanTier.PRO, "pro_v1", PlanStatus.ACTIVE)
    assert (bought.subscription_id, bought.lapsed_tier, bought.grace_expires_at) == ("sub_new_1", None, None)
    assert subscribe(bought, "sub_new_1", "user:2", LATER) == bought


@pytest.mark.parametrize(
    "wrong", ["", "sub_", "sub_ab", "pub_abc", "sub_abc-", "sub_" + "a" * 256, "sub_abc\n", "sub_äbc"]
)
def test_only_what_the_payment_provider_gives_is_a_subscription(wrong: str) -> None:
    refused = subscribe(STATES["free"], wrong, "user:1", NOW)

    assert isinstance(refused, Refusal)
    assert refused.code == "UZ-BILLING-001"


def test_grace_ends_when_its_week_is_over_and_not_a_moment_before() -> None:
    held = STATES["pro in grace"]
    assert end_grace(held, LATER - 1) is None

    ended = end_grace(held, LATER)
    assert ended is not None
    assert (ended.status, ended.tier, ended.lapsed_tier) == (
        PlanStatus.DOWNGRADED,
        PlanTier.FREE,
        PlanTier.PRO,
    )
    assert ended.subscription_id == held.subscription_id
    assert end_grace(ended, LATER) is None


WORDS = st.one_of(
    st.sampled_from(BillingEvent),
    st.just("subscribe"),
    st.integers(1, GRACE_MS + 1),
)


@given(st.sampled_from(sorted(STATES)), st.lists(WORDS, max_size=20))
def test_no_order_of_words_makes_a_plan_that_contradicts_itself(state: str, words: list[object]) -> None:
    plan, now = STATES[state], NOW
    for word in words:
        match word:
            case BillingEvent():
                found = occur(plan, word, "", "", now)
            case int():
                now += word
                found = end_grace(plan, now) or plan
            case _:
                bought = subscribe(plan, "sub_abc", "", now)
                assert isinstance(bought, Plan)
                found = bought
        assert found == plan or found.version == plan.version + 1
        plan = found
        assert fault_of(plan, plan.tier) is None
        assert plan.sku == sku_of(plan.tier)
    if plan.status is PlanStatus.GRACE:
        assert plan.tier is not PlanTier.FREE
