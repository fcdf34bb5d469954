"""What a tenant's plan is, and what its runs have cost."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, Protocol
from uuid import UUID

import msgspec

from sexton_storage.paging import Page
from sexton_storage.records import PlanTier, Tenant


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
    """What was lost for want of payment, and comes back with it."""
    reason: str
    """Of the newest change."""
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


class Charge(msgspec.Struct, frozen=True, gc=False):
    """What one lease of an event was billed, once it has ended."""

    id: UUID
    """The lease's."""
    event_id: UUID
    zombie_id: UUID
    workspace_id: UUID
    tenant_id: UUID
    charge_type: str
    posture: str
    """``platform`` or ``self_managed``: whose model key was used."""
    model: str | None
    credit_deducted_nanos: int
    token_count_input: int
    """Those read from a cache included."""
    token_count_output: int
    wall_ms: int
    """Time that was billed."""
    recorded_at: int


STAGE_CHARGE: Final = "stage"
"""What work on an event costs. An event costs nothing by coming (``event_nanos`` is 0), so nothing is of the
kind ``receive``."""
COUNT_KEEP_DAYS: Final = 7
"""Only today's count is asked for."""


class ChargeStore(Protocol):
    async def list(self, tenant_id: UUID, *, limit: int, before: Page | None = None) -> Sequence[Charge]:
        """Newest first. They stay when their agent is purged."""
        ...

    async def events_of_day(self, tenant_id: UUID, day: int) -> int:
        """Events that were kept and counted in that UTC day (days since 1970)."""
        ...
