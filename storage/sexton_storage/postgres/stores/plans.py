"""Plans in PostgreSQL."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from sexton_storage.errors import Conflict
from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.sql.rows import Rows
from sexton_storage.postgres.sql.schema import TENANTS
from sexton_storage.postgres.stores.base import PostgresStore
from sexton_storage.records.plans import Plan
from sexton_storage.records.tenants import Tenant

PLANS: Final = Rows(Plan)
_PLAN_AT = len(TENANTS.names)
_LOAD = f"""
SELECT {TENANTS.columns("t")}, {PLANS.columns("p")}
  FROM tenants t LEFT JOIN billing_plans p ON p.tenant_id = t.id WHERE t.id = $1
"""
_UPDATED = tuple(name for name in PLANS.names if name not in {"tenant_id", "version"})
_SAVE = f"""
UPDATE billing_plans SET version = $2, {", ".join(f"{n} = ${i}" for i, n in enumerate(_UPDATED, 3))}
 WHERE tenant_id = $1 AND version = $2 - 1 RETURNING true
"""
_TIER = "UPDATE tenants SET plan_tier = $2, updated_at = $3 WHERE id = $1"
_OVERDUE = """
SELECT tenant_id FROM billing_plans
 WHERE status = 'GRACE' AND grace_expires_at <= sexton_now_ms() ORDER BY grace_expires_at, tenant_id LIMIT $1
"""


async def insert_plan(connection: Connection, plan: Plan) -> None:
    """Add the plan that comes with a new tenant."""
    await connection.execute(PLANS.insert("billing_plans"), *PLANS.values(plan))


class PostgresPlans(PostgresStore):
    async def load(self, tenant_id: UUID) -> tuple[Tenant, Plan | None] | None:
        row = await self._row(_LOAD, tenant_id)
        if row is None:
            return None
        return TENANTS.record(row), None if row[_PLAN_AT] is None else PLANS.record(row, _PLAN_AT)

    async def save(self, plan: Plan) -> None:
        values = dict(zip(PLANS.names, PLANS.values(plan), strict=True))

        async def work(connection: Connection) -> None:
            args = (plan.tenant_id, plan.version, *(values[name] for name in _UPDATED))
            if await connection.fetchval(_SAVE, *args) is None:
                raise Conflict(f"the plan of tenant {plan.tenant_id} is not at version {plan.version - 1}")
            await connection.execute(_TIER, plan.tenant_id, plan.tier, plan.updated_at)

        await self._database.change(work)

    async def overdue(self, *, limit: int) -> Sequence[UUID]:
        return [row[0] for row in await self._rows(_OVERDUE, limit)]
