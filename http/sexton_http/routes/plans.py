"""A workspace's plan: what is paid for, what it allows, and what the payment provider says."""

from typing import Annotated, Any
from uuid import UUID

import msgspec

from sexton_actors.ledger.transitions import BillingEvent
from sexton_actors.protocol.ledger import ReadPlan, Subscribe, TakeBillingEvent
from sexton_actors.refusal import Refusal
from sexton_http.bodies.shapes import Body, Shape
from sexton_http.gateway.audit_entries import ask
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import Creates, NoBody, NoQuery, operation
from sexton_http.routes.shared.plan_limits import entitled_of
from sexton_storage.periods import day_of
from sexton_storage.records.plans import Plan, PlanStatus
from sexton_storage.records.tenants import PlanTier
from sexton_storage.records.users import Role

TAG = "Billing"
SUBSCRIPTION = "^sub_[A-Za-z0-9_]{3,255}$"
"""Only described here: the ledger has a code of its own for others."""
PLAN_CODES = ("UZ-BILLING-002", "UZ-BILLING-003")


class BillingPlan(Shape):
    """The tenant's: every workspace of it shows the same."""

    workspace_id: UUID
    plan_tier: PlanTier
    billing_status: PlanStatus
    plan_sku: str
    subscription_id: str
    """Empty without one."""
    grace_expires_at: int | None


class Limits(Shape):
    """Null: without a limit, or all of them."""

    requests_per_second: int | None
    workspaces: int | None
    agents_per_workspace: int | None
    events_per_day: int | None
    tools: tuple[str, ...] | None
    runtimes: tuple[str, ...] | None
    credentials: int | None
    api_keys: int | None
    agent_keys: int | None
    proposals: int | None
    drafts: int | None
    queued_messages: int | None
    crons: int | None
    event_days: int | None
    """Days that an event is kept after it ended, with its payload, answer, transcripts and files."""
    transcript_days: int | None
    file_days: int | None
    delivery_days: int | None


class PlanRecord(BillingPlan):
    limits: Limits
    events_today: int
    """The tenant's events of the UTC day; counted only where the plan has a limit."""
    reason: str
    """The reason for the newest change."""
    updated_at: int


class NewSubscription(Body):
    subscription_id: Annotated[str, msgspec.Meta(extra_json_schema={"pattern": SUBSCRIPTION})]
    """As the payment provider names it: `sub_` and 3 to 255 letters, digits or underscores."""


class NewBillingEvent(Body):
    event_type: Annotated[
        str, msgspec.Meta(extra_json_schema={"enum": [kind.value for kind in BillingEvent]})
    ]
    """`PAYMENT_FAILED`, `PAYMENT_RECOVERED` or `DOWNGRADE_TO_FREE`."""
    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=512)]


@operation("GET", "/v1/workspaces/{workspace_id}/billing", tag=TAG, codes=(*PLAN_CODES, "UZ-ENTL-001"))
async def get_plan(call: Call[NoBody, NoQuery]) -> PlanRecord | Refusal:
    """Show the plan, what it allows, and how much of that is used today."""
    world, tenant_id = call.ctx.world, call.member.tenant_id
    plan = await call.ctx.system.ask("ledger", tenant_id, ReadPlan())
    if isinstance(plan, Refusal):
        return plan
    limits = (await entitled_of(call)).limits
    today = await world.storage.charges.events_of_day(tenant_id, day_of(world.now_ms()))
    return PlanRecord(
        **msgspec.structs.asdict(_view(call.id("workspace_id"), plan)),
        limits=Limits(**msgspec.structs.asdict(limits)),
        events_today=today,
        reason=plan.reason,
        updated_at=plan.updated_at,
    )


@operation(
    "POST",
    "/v1/workspaces/{workspace_id}/billing/scale",
    tag=TAG,
    role=Role.OPERATOR,
    creates=Creates.AGAIN,
    tenant_wide=True,
    codes=(*PLAN_CODES, "UZ-BILLING-001"),
)
async def scale_plan(call: Call[NewSubscription, NoQuery]) -> BillingPlan | Refusal:
    """Go over to the plan `pro` by a subscription; it is the tenant's, and so of all its workspaces."""
    return await _changed(call, Subscribe(call.body.subscription_id, call.member.by))


@operation(
    "POST",
    "/v1/workspaces/{workspace_id}/billing/events",
    tag=TAG,
    role=Role.ADMIN,
    creates=Creates.AGAIN,
    tenant_wide=True,
    codes=(*PLAN_CODES, "UZ-BILLING-004"),
)
async def take_billing_event(call: Call[NewBillingEvent, NoQuery]) -> BillingPlan | Refusal:
    """Pass on what the payment provider says; one that comes twice, or late, changes nothing more."""
    return await _changed(call, TakeBillingEvent(call.body.event_type, call.body.reason, call.member.by))


async def _changed(call: Call[Any, Any], message: Subscribe | TakeBillingEvent) -> BillingPlan | Refusal:
    plan = await ask(call.ctx.system, "ledger", call.member.tenant_id, message)
    if isinstance(plan, Refusal):
        return plan
    # Its rate is that of the new plan from the next request on.
    call.services.authenticator.forget_tenant(call.member.tenant_id)
    return _view(call.id("workspace_id"), plan)


def _view(workspace_id: UUID, plan: Plan) -> BillingPlan:
    return BillingPlan(
        workspace_id=workspace_id,
        plan_tier=plan.tier,
        billing_status=plan.status,
        plan_sku=plan.sku,
        subscription_id=plan.subscription_id,
        grace_expires_at=plan.grace_expires_at,
    )
