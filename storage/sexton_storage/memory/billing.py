"""Plans and charges in memory."""

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.errors import Conflict
from sexton_storage.memory.base import MemoryStore
from sexton_storage.paging import Page
from sexton_storage.records.charges import Charge, ChargeTotal, TotalsBy
from sexton_storage.records.plans import Plan, PlanStatus
from sexton_storage.records.tenants import Tenant


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

    async def totals(
        self, tenant_id: UUID, by: TotalsBy, *, since: int, until: int, limit: int
    ) -> Sequence[ChargeTotal]:
        await self._round_trip()
        sums: dict[str, list[int]] = {}
        for charge in self._tables.charges.values():
            if charge.tenant_id == tenant_id and since <= charge.recorded_at < until:
                figures = (
                    *(1, charge.credit_deducted_nanos, charge.token_count_input),
                    *(charge.token_count_output, charge.wall_ms),
                )
                summed = sums.setdefault(_key(charge, by), [0] * len(figures))
                summed[:] = [old + new for old, new in zip(summed, figures, strict=True)]
        totals = [ChargeTotal(key, self._name(key, by), *summed) for key, summed in sums.items()]
        if by is TotalsBy.DAY:
            return sorted(totals, key=lambda one: one.key, reverse=True)[:limit]
        return sorted(totals, key=lambda one: (-one.charged_nanos, one.key))[:limit]

    def _name(self, key: str, by: TotalsBy) -> str | None:
        zombie = self._tables.zombies.get(UUID(key)) if by is TotalsBy.AGENT else None
        return None if zombie is None else zombie.name

    async def events_of_day(self, tenant_id: UUID, day: int) -> int:
        await self._round_trip()
        return self._tables.event_counts.get((tenant_id, day), 0)


def _key(charge: Charge, by: TotalsBy) -> str:
    match by:
        case TotalsBy.AGENT:
            return str(charge.zombie_id)
        case TotalsBy.MODEL:
            return charge.model or ""
        case TotalsBy.DAY:
            return f"{datetime.fromtimestamp(charge.recorded_at / 1000, UTC):%Y-%m-%d}"
