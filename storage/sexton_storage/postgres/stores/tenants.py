"""Tenants in PostgreSQL."""

from uuid import UUID

from sexton_storage.errors import NameTaken
from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.sql.schema import TENANTS, USERS, WORKSPACES
from sexton_storage.postgres.stores.base import PostgresStore
from sexton_storage.postgres.stores.plans import insert_plan
from sexton_storage.records.plans import first_plan
from sexton_storage.records.tenants import Tenant
from sexton_storage.records.users import User
from sexton_storage.records.workspaces import Workspace
from sexton_storage.rules import BALANCE_EXHAUSTED

SUBJECTS = {"users_subject_key": NameTaken}
_CREDIT = f"""
UPDATE tenants
   SET balance_nanos = balance_nanos + $2, updated_at = sexton_now_ms(),
       exhausted_at = CASE WHEN balance_nanos + $2 > 0 THEN NULL ELSE exhausted_at END
 WHERE id = $1
RETURNING {TENANTS.columns()}
"""
_SET_UNLIMITED = f"""
UPDATE tenants
   SET unlimited = $2, updated_at = sexton_now_ms(),
       exhausted_at = CASE WHEN $2 OR balance_nanos > 0 THEN NULL
                           ELSE coalesce(exhausted_at, sexton_now_ms()) END
 WHERE id = $1
RETURNING {TENANTS.columns()}
"""
_LOCK = f"SELECT {TENANTS.columns()} FROM tenants WHERE id = $1 FOR NO KEY UPDATE"
_NOTE_CREDIT = """
INSERT INTO credits (tenant_id, amount_nanos, reason, actor, credit_id, created_at)
VALUES ($1, $2, $3, $4, $5, sexton_now_ms()) ON CONFLICT (credit_id) DO NOTHING RETURNING id
"""
_FREE = """
UPDATE events SET status = 'received', failure_label = NULL, error_code = NULL, updated_at = sexton_now_ms()
 WHERE tenant_id = $1 AND unusual_status = 'gate_blocked' AND failure_label = $2 AND completed_at IS NULL
"""


async def insert_tenant(connection: Connection, tenant: Tenant, workspace: Workspace, user: User) -> None:
    """Add the rows that a tenancy begins with."""
    await connection.execute(TENANTS.insert("tenants"), *TENANTS.values(tenant))
    await insert_plan(connection, first_plan(tenant))
    await connection.execute(WORKSPACES.insert("workspaces"), *WORKSPACES.values(workspace))
    await connection.execute(USERS.insert("users"), *USERS.values(user))


class PostgresTenants(PostgresStore):
    async def create(self, tenant: Tenant, workspace: Workspace, user: User) -> None:
        await self._database.change(lambda c: insert_tenant(c, tenant, workspace, user), SUBJECTS)

    async def load(self, tenant_id: UUID) -> Tenant | None:
        return TENANTS.maybe(
            await self._row(f"SELECT {TENANTS.columns()} FROM tenants WHERE id = $1", tenant_id)
        )

    async def credit(
        self, tenant_id: UUID, amount_nanos: int, reason: str, actor: str, *, credit_id: UUID | None = None
    ) -> Tenant | None:
        if amount_nanos < 0:
            raise ValueError("a credit is not negative")

        async def work(connection: Connection) -> Tenant | None:
            # The tenant's row is locked first, as a claim does that finds the balance gone: no event can be
            # blocked because this money was missing after we have looked for such events.
            tenant = TENANTS.maybe(await connection.fetchrow(_LOCK, tenant_id))
            if tenant is None:
                return None
            note = (tenant_id, amount_nanos, reason, actor, credit_id)
            if await connection.fetchval(_NOTE_CREDIT, *note) is None:
                return tenant
            tenant = TENANTS.maybe(await connection.fetchrow(_CREDIT, tenant_id, amount_nanos)) or tenant
            if tenant.has_credit:
                await connection.execute(_FREE, tenant_id, BALANCE_EXHAUSTED)
            return tenant

        return await self._database.change(work)

    async def set_unlimited(self, tenant_id: UUID, *, unlimited: bool) -> Tenant | None:
        async def work(connection: Connection) -> Tenant | None:
            tenant = TENANTS.maybe(await connection.fetchrow(_LOCK, tenant_id))
            if tenant is None or tenant.unlimited is unlimited:
                return tenant
            tenant = TENANTS.maybe(await connection.fetchrow(_SET_UNLIMITED, tenant_id, unlimited)) or tenant
            if tenant.has_credit:
                await connection.execute(_FREE, tenant_id, BALANCE_EXHAUSTED)
            return tenant

        return await self._database.change(work)
