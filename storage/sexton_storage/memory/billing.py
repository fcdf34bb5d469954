"""Plans and charges in memory."""

from collections.abc import Sequence
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.billing import RUN_CHARGE, Charge, Plan, PlanStatus
from sexton_storage.memory.base import MemoryStore
from sexton_storage.memory.tables import Tables
from sexton_storage.paging import Page
from sexton_storage.records import Lease, Tenant
from sexton_storage.stores import Conflict


class MemoryPlans(MemoryStore):
    async def load(self, tenant_id: UUID) -> tuple[Tenant, Plan | None] | None:
        await self._round_trip()
        tenant = self._tables.tenants.get(tenant_id)
        return None if tenant is None else (tenant, self._tables.plans.get(tenant_id))

    async def save(self, plan: Plan) -> None:
        await self._round_trip()
        self._faults.may_conflict()
        old = self._tables.plans.get(plan.tenant_id)
        if old is None or old.version != plan.version - 1:
            raise Conflict(f"the plan of tenant {plan.tenant_id} is not at version {plan.version - 1}")
        tenant = self._tables.tenants[plan.tenant_id]
        self._tables.plans[plan.tenant_id] = plan
        self._tables.tenants[tenant.id] = replace(tenant, plan_tier=plan.tier, updated_at=plan.updated_at)

    async def overdue(self, *, limit: int) -> Sequence[UUID]:
        await self._round_trip()
        now = self._tables.now()
        late = [
            (plan.grace_expires_at, plan.tenant_id)
            for plan in self._tables.plans.values()
            if plan.status is PlanStatus.GRACE and (plan.grace_expires_at or 0) <= now
        ]
        return [tenant_id for _, tenant_id in sorted(late)[:limit]]


class MemoryCharges(MemoryStore):
    async def list(self, tenant_id: UUID, *, limit: int, before: Page | None = None) -> Sequence[Charge]:
        await self._round_trip()
        found = [
            charge
            for charge in self._tables.charges.values()
            if charge.tenant_id == tenant_id
            and (before is None or (charge.recorded_at, charge.id) < (before.created_at, before.id))
        ]
        return sorted(found, key=lambda c: (c.recorded_at, c.id), reverse=True)[:limit]

    async def events_of_day(self, tenant_id: UUID, day: int) -> int:
        await self._round_trip()
        return self._tables.event_counts.get((tenant_id, day), 0)


def record_charge(tables: Tables, lease: Lease, now: int) -> None:
    """Keep what a lease that ended was billed; one that never was leaves none."""
    rows = [
        row
        for (attempt, _), row in tables.metering.get(lease.event_id, {}).items()
        if attempt == lease.attempt
    ]
    if rows:
        tables.charges[lease.id] = Charge(
            id=lease.id,
            event_id=lease.event_id,
            zombie_id=lease.zombie_id,
            workspace_id=lease.workspace_id,
            tenant_id=lease.tenant_id,
            charge_type=RUN_CHARGE,
            posture="self_managed" if lease.own_key else "platform",
            model=lease.model,
            credit_deducted_nanos=sum(row.charged_nanos for row in rows),
            token_count_input=sum(row.d_input_tokens + row.d_cached_tokens for row in rows),
            token_count_output=sum(row.d_output_tokens for row in rows),
            wall_ms=sum(row.run_ms for row in rows),
            recorded_at=now,
        )
