"""What a plan becomes by a subscription, by payments that fail or come late, and when its grace is over."""

import re
from enum import StrEnum
from typing import Final, assert_never

from msgspec.structs import replace

from sexton_actors.refusal import Refusal
from sexton_storage.records.plans import Plan, PlanStatus, sku_of
from sexton_storage.records.tenants import PlanTier

GRACE_MS: Final = 7 * 24 * 3600 * 1000
_SUBSCRIPTION: Final = re.compile("sub_[A-Za-z0-9_]{3,255}")


class BillingEvent(StrEnum):
    PAYMENT_FAILED = "PAYMENT_FAILED"
    PAYMENT_RECOVERED = "PAYMENT_RECOVERED"
    DOWNGRADE_TO_FREE = "DOWNGRADE_TO_FREE"


def fault_of(plan: Plan, tier: PlanTier) -> str | None:
    """What contradicts itself in a plan and the tenant's own ``tier``; None when nothing does."""
    status = plan.status
    if plan.tier is not tier:
        return f"the plan says {plan.tier} and the tenant {tier}"
    if plan.sku != sku_of(plan.tier):
        return f"{plan.sku} is not the plan {plan.tier}"
    if (plan.grace_expires_at is not None) != (status is PlanStatus.GRACE):
        return f"it is {status}, and its grace ends at {plan.grace_expires_at}"
    if status is not PlanStatus.ACTIVE and (plan.tier is PlanTier.FREE) != (status is PlanStatus.DOWNGRADED):
        return f"it is {status} and {plan.tier}"
    if plan.lapsed_tier is not None and status is not PlanStatus.DOWNGRADED:
        return f"it is {status} and has lapsed from {plan.lapsed_tier}"
    return None


def subscribe(plan: Plan, subscription_id: str, by: str, now: int) -> Plan | Refusal:
    """The plan ``pro``, whatever it was; the same subscription again changes nothing."""
    if not _SUBSCRIPTION.fullmatch(subscription_id):
        detail = "/subscription_id: sub_ and 3 to 255 letters, digits or underscores."
        return Refusal("UZ-BILLING-001", detail, {"pointer": "/subscription_id"})
    same = (plan.tier, plan.subscription_id) == (PlanTier.PRO, subscription_id)
    if same and plan.status is PlanStatus.ACTIVE:
        return plan
    bought = replace(plan, subscription_id=subscription_id)
    return _active(bought, PlanTier.PRO, "subscribed", by, now)


def occur(plan: Plan, event: BillingEvent, reason: str, by: str, now: int) -> Plan:
    """What the payment provider's word makes of the plan; one that comes late or twice changes nothing."""
    match event:
        case BillingEvent.PAYMENT_FAILED:
            return _failed(plan, reason, by, now)
        case BillingEvent.PAYMENT_RECOVERED:
            return _recovered(plan, reason, by, now)
        case BillingEvent.DOWNGRADE_TO_FREE:
            return _given_up(plan, reason, by, now)
        case _:
            assert_never(event)


def end_grace(plan: Plan, now: int) -> Plan | None:
    """To the free plan, once a week has passed without payment; None while it has not."""
    if plan.status is not PlanStatus.GRACE or plan.grace_expires_at is None or now < plan.grace_expires_at:
        return None
    return _free(plan, plan.tier, "the grace is over", "system:grace", now)


def _failed(plan: Plan, reason: str, by: str, now: int) -> Plan:
    # The first failure counts: a provider that tries each day again does not prolong the grace.
    if plan.status is not PlanStatus.ACTIVE or plan.tier is PlanTier.FREE:
        return plan
    held = replace(plan, status=PlanStatus.GRACE, grace_expires_at=now + GRACE_MS)
    return _changed(held, reason, by, now)


def _recovered(plan: Plan, reason: str, by: str, now: int) -> Plan:
    match plan.status:
        case PlanStatus.ACTIVE:
            return plan
        case PlanStatus.GRACE:
            return _active(plan, plan.tier, reason, by, now)
        case PlanStatus.DOWNGRADED:
            # One that was given up, and not lost because it was not paid, comes back by a subscription only.
            return plan if plan.lapsed_tier is None else _active(plan, plan.lapsed_tier, reason, by, now)
        case _:
            assert_never(plan.status)


def _given_up(plan: Plan, reason: str, by: str, now: int) -> Plan:
    if plan.tier is PlanTier.FREE and plan.lapsed_tier is None:
        return plan
    return _free(replace(plan, subscription_id=""), None, reason, by, now)


def _active(plan: Plan, tier: PlanTier, reason: str, by: str, now: int) -> Plan:
    active = replace(
        plan, status=PlanStatus.ACTIVE, tier=tier, sku=sku_of(tier), grace_expires_at=None, lapsed_tier=None
    )
    return _changed(active, reason, by, now)


def _free(plan: Plan, lapsed: PlanTier | None, reason: str, by: str, now: int) -> Plan:
    free = replace(
        plan,
        status=PlanStatus.DOWNGRADED,
        tier=PlanTier.FREE,
        sku=sku_of(PlanTier.FREE),
        grace_expires_at=None,
        lapsed_tier=lapsed,
    )
    return _changed(free, reason, by, now)


def _changed(plan: Plan, reason: str, by: str, now: int) -> Plan:
    return replace(plan, version=plan.version + 1, reason=reason, changed_by=by, updated_at=now)
