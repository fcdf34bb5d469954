"""Tenants, which own everything else and pay for it."""

from enum import StrEnum
from typing import Protocol
from uuid import UUID

import msgspec

from sexton_storage.records.users import User
from sexton_storage.records.workspaces import Workspace


class PlanTier(StrEnum):
    FREE = "free"
    PRO = "pro"
    ENTERPRISE = "enterprise"


class Tenant(msgspec.Struct, frozen=True, gc=False):
    id: UUID
    name: str
    plan_tier: PlanTier
    balance_nanos: int
    exhausted_at: int | None
    created_at: int
    updated_at: int
    unlimited: bool = False
    """Charged as any, and never stopped: its balance may go below zero."""

    @property
    def has_credit(self) -> bool:
        return self.unlimited or self.balance_nanos > 0


class TenantStore(Protocol):
    async def create(self, tenant: Tenant, workspace: Workspace, user: User) -> None:
        """Make a tenant with its first workspace and user, in one commit.

        NameTaken when the subject has one.
        """
        ...

    async def load(self, tenant_id: UUID) -> Tenant | None: ...
    async def credit(
        self, tenant_id: UUID, amount_nanos: int, reason: str, actor: str, *, credit_id: UUID | None = None
    ) -> Tenant | None:
        """Add to the balance and free the events that waited for it.

        A ``credit_id`` that was credited before adds nothing more. Negative amounts are refused (ValueError).
        """
        ...

    async def set_unlimited(self, tenant_id: UUID, *, unlimited: bool) -> Tenant | None:
        """Say whether its balance stops it; frees the events that waited for credit when it does not."""
        ...
