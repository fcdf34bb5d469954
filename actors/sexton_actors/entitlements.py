"""Tells what a tenant's plan and balance allow it now."""

from typing import Final
from uuid import UUID

import msgspec

from sexton_actors.manifest.model import Manifest
from sexton_actors.plans import BillingTerms, PlanLimits, full, not_allowed
from sexton_actors.refusal import Refusal
from sexton_storage.errors import StorageUnavailable
from sexton_storage.records.holdings import Holding, HoldingStore
from sexton_storage.records.tenants import PlanTier, Tenant, TenantStore
from sexton_storage.stores import DatabaseClock

FRESH_MS: Final = 1000
"""How long another node may go on with a plan or a balance that was changed on this one."""
KEEP_COUNT: Final = 4096
AWAY_RETRY_S: Final = 2
COUNT_FRESH_MS: Final = 10_000
"""How long the length of the queue is not counted again while it is far from its limit."""
NEAR: Final = 0.9
"""From this part of the limit on it is counted each ``FRESH_MS``."""


class Entitled(msgspec.Struct, frozen=True):
    """What holds for one tenant; at most ``FRESH_MS`` old."""

    tier: PlanTier
    limits: PlanLimits
    has_credit: bool


class _Known(msgspec.Struct, frozen=True):
    entitled: Entitled
    at: int


class _Counted(msgspec.Struct, frozen=True):
    count: int
    at: int


class Entitlements:
    """Looked up once a second for each tenant that works, however many agents it has."""

    def __init__(
        self, tenants: TenantStore, holdings: HoldingStore, terms: BillingTerms, clock: DatabaseClock
    ) -> None:
        self._tenants = tenants
        self._holdings = holdings
        self._terms = terms
        self._clock = clock
        self._known: dict[UUID, _Known] = {}
        self._queued: dict[UUID, _Counted] = {}

    def __repr__(self) -> str:
        return f"<Entitlements of {len(self._known)} tenants>"

    def forget(self, tenant_id: UUID) -> None:
        """Note that the tenant's plan or balance was changed on this node."""
        self._known.pop(tenant_id, None)
        self._queued.pop(tenant_id, None)

    async def of(self, tenant_id: UUID) -> Entitled | Refusal:
        """What the tenant may; UZ-ENTL-001 when that cannot be read now, since nothing is allowed unread."""
        now = self._clock.now_ms()
        known = self._known.get(tenant_id)
        if known is not None and 0 <= now - known.at < FRESH_MS:
            return known.entitled
        try:
            tenant = await self._tenants.load(tenant_id)
        except StorageUnavailable:
            return _unread()
        if tenant is None:
            raise LookupError(f"there is no tenant {tenant_id}")
        return self._keep(tenant, now)

    async def may_ask_for_work(self, tenant_id: UUID) -> Refusal | None:
        """None when the tenant can pay for a run that somebody asks for, a message or a replay.

        What comes by itself (webhooks, schedules) is not refused: it is kept, and waits for credit.
        """
        entitled = await self.of(tenant_id)
        if isinstance(entitled, Refusal) or entitled.has_credit:
            return entitled if isinstance(entitled, Refusal) else None
        return Refusal("UZ-BILLING-005", "The tenant's balance is used up; work goes on when it has credit.")

    async def may_hold(
        self, tenant_id: UUID, manifest: Manifest, before: Manifest | None = None
    ) -> Refusal | None:
        """None when the plan includes what an agent is made of; asked before that becomes active.

        ``before``: what it is made of until then.
        """
        entitled = await self.of(tenant_id)
        if isinstance(entitled, Refusal):
            return entitled
        if refusal := not_allowed(entitled.limits, manifest.runtime, manifest.tools):
            return refusal
        more = len(manifest.cron_triggers) - (0 if before is None else len(before.cron_triggers))
        return await self.may_add(tenant_id, Holding.CRONS, more) if more > 0 else None

    async def may_add(self, tenant_id: UUID, holding: Holding, more: int = 1) -> Refusal | None:
        """None when the tenant may have ``more`` of these. Two at one moment may each be the last."""
        entitled = await self.of(tenant_id)
        if isinstance(entitled, Refusal):
            return entitled
        limit = entitled.limits.of(holding)
        if limit is None:
            return None
        try:
            count = await self._count(tenant_id, holding, limit)
        except StorageUnavailable:
            return _unread()
        return full(limit, holding, count + more - 1)

    async def _count(self, tenant_id: UUID, holding: Holding, limit: int) -> int:
        if holding is not Holding.QUEUED_MESSAGES:
            return await self._holdings.count(tenant_id, holding, at_most=limit)
        # Asked for each message, and the only count that grows with the load.
        now, known = self._clock.now_ms(), self._queued.get(tenant_id)
        if known is not None:
            fresh_ms = COUNT_FRESH_MS if known.count < NEAR * limit - 1 else FRESH_MS
            if 0 <= now - known.at < fresh_ms:
                return known.count
        count = await self._holdings.count(tenant_id, holding, at_most=limit)
        if len(self._queued) >= KEEP_COUNT:
            self._queued.clear()
        self._queued[tenant_id] = _Counted(count, now)
        return count

    def _keep(self, tenant: Tenant, now: int) -> Entitled:
        entitled = Entitled(
            tenant.plan_tier, self._terms.plans[tenant.plan_tier], has_credit=tenant.has_credit
        )
        if len(self._known) >= KEEP_COUNT:
            self._known.clear()
        self._known[tenant.id] = _Known(entitled, now)
        return entitled


def _unread() -> Refusal:
    return Refusal("UZ-ENTL-001", "What the plan allows cannot be read now.", retry_after_s=AWAY_RETRY_S)
