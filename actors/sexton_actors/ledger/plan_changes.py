"""Changes a tenant's plan: read, decided, saved, made known."""

from collections.abc import Callable
from uuid import UUID

from sexton_actors.held.races import decide_until_kept
from sexton_actors.ledger.transitions import fault_of
from sexton_actors.refusal import Refusal
from sexton_actors.world import World
from sexton_storage.records.plans import Plan

Decide = Callable[[Plan, int], Plan | Refusal]


class Plans:
    """The only writer of plans on this node; another node's change is met by reading again."""

    def __init__(self, world: World) -> None:
        self._world = world

    def __repr__(self) -> str:
        return "<Plans>"

    async def change(self, tenant_id: UUID, decide: Decide) -> Plan | Refusal:
        """The plan as it is then; ``decide`` gives the same plan back to leave it as it is."""

        async def attempt() -> Plan | Refusal:
            plan = await self._load(tenant_id)
            if isinstance(plan, Refusal):
                return plan
            decided = decide(plan, self._world.now_ms())
            if isinstance(decided, Refusal) or decided == plan:
                return decided
            await self._world.storage.plans.save(decided)
            self._world.entitlements.forget(tenant_id)
            return decided

        return await decide_until_kept(attempt, "The plan", self._world)

    async def _load(self, tenant_id: UUID) -> Plan | Refusal:
        found = await self._world.storage.plans.load(tenant_id)
        tenant, plan = (None, None) if found is None else found
        if tenant is None or plan is None:
            return Refusal("UZ-BILLING-002", f"There is no plan on record for tenant {tenant_id}.")
        if fault := fault_of(plan, tenant.plan_tier):
            return Refusal("UZ-BILLING-003", f"The plan on record is inconsistent: {fault}.")
        return plan
