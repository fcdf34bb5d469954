"""What a tenant's plan is."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol
from uuid import UUID

import msgspec

from sexton_storage.records.tenants import PlanTier, Tenant


class PlanStatus(StrEnum):
    ACTIVE = "ACTIVE"
    GRACE = "GRACE"
    """A payment failed: all goes on until ``grace_expires_at``."""
    DOWNGRADED = "DOWNGRADED"


class Plan(msgspec.Struct, frozen=True, gc=False):
    """One for each tenant, made with it. ``tier`` is the tenant's, saved in the same commit."""

    tenant_id: UUID
    version: int
    """Grows by one with every save; a save names the version it saw."""
    status: PlanStatus
    tier: PlanTier
    sku: str
    subscription_id: str
    """The payment provider's; empty without one."""
    grace_expires_at: int | None
    lapsed_tier: PlanTier | None
    """A plan that was lost because it was not paid; payment brings it back."""
    reason: str
    """The reason for the newest change."""
    changed_by: str
    updated_at: int


def sku_of(tier: PlanTier) -> str:
    """Name what is sold.

    >>> sku_of(PlanTier.PRO)
    'pro_v1'
    """
    return f"{tier}_v1"


def first_plan(tenant: Tenant) -> Plan:
    """Give the plan that a tenant is made with."""
    return Plan(
        tenant_id=tenant.id,
        version=1,
        status=PlanStatus.ACTIVE,
        tier=tenant.plan_tier,
        sku=sku_of(tenant.plan_tier),
        subscription_id="",
        grace_expires_at=None,
        lapsed_tier=None,
        reason="",
        changed_by="system:start",
        updated_at=tenant.created_at,
    )


class PlanStore(Protocol):
    async def load(self, tenant_id: UUID) -> tuple[Tenant, Plan | None] | None:
        """A tenant with its plan, as they stood at one moment; None when there is no such tenant."""
        ...

    async def save(self, plan: Plan) -> None:
        """Save with the tenant's tier where ``version`` is one below ``plan.version``, else Conflict."""
        ...

    async def overdue(self, *, limit: int) -> Sequence[UUID]:
        """Tenants whose grace is over by the database's clock, longest first."""
        ...
