"""Holds one tenant's ledger: its balance, and its plan; passes on when there is money again."""

from functools import partial
from typing import Any, assert_never
from uuid import UUID

from sexton_actors.addresses import uuid_key
from sexton_actors.ledger import transitions
from sexton_actors.ledger.plan_changes import Plans
from sexton_actors.protocol import ledger as m
from sexton_actors.protocol.dispatcher import TenantCredited
from sexton_actors.refusal import Refusal
from sexton_actors.world import World
from sexton_engine import Actor, Context, MailboxSpec
from sexton_storage.attribution import attributed
from sexton_storage.errors import RowRefused, StorageUnavailable
from sexton_storage.records.plans import Plan
from sexton_storage.signals import Signal, Topic

CREDIT_MAX_NANOS = 10**18
"""A billion dollars: above it the sum could leave the column."""

Planning = m.ReadPlan | m.Subscribe | m.TakeBillingEvent
Message = m.ReadBalance | m.Credit | Planning | m.EndGrace


def credit(message: m.Credit) -> Refusal | None:
    """None when the amount can be added.

    >>> credit(m.Credit(0, "gift", "user:1")).code
    'UZ-REQ-001'
    """
    if not 0 < message.amount_nanos <= CREDIT_MAX_NANOS:
        return Refusal("UZ-REQ-001", f"/amount_nanos: between 1 and {CREDIT_MAX_NANOS}.")
    return None


class LedgerActor(Actor):
    """One tenant's money. Debits are the journal's, summed by tenant in the commit of what they pay for.

    Nobody needs to be told that the money is gone: the claim that finds none sets its event aside.
    """

    kind = "ledger"
    mailbox = MailboxSpec(capacity=4096)
    transparent = (StorageUnavailable,)

    def __init__(self, context: Context, world: World) -> None:
        super().__init__(context)
        self._world = world
        self._plans = Plans(world)

    async def on_receive(self, message: Message) -> Any:
        """Dispatch."""
        key = uuid_key(self.context)
        match message:
            case m.ReadBalance():
                tenant = await self._world.storage.tenants.load(key)
                return tenant or Refusal("UZ-BILLING-002", f"There is no ledger for tenant {key}.")
            case m.Credit():
                with attributed(message.audit):
                    return await self._credit(key, message)
            case m.ReadPlan():
                return await self._plans.change(key, partial(_decide, message))
            case m.Subscribe() | m.TakeBillingEvent():
                with attributed(message.audit):
                    return await self._plans.change(key, partial(_decide, message))
            case m.EndGrace():
                await self._plans.change(key, lambda plan, now: transitions.end_grace(plan, now) or plan)
                return None
            case _:
                assert_never(message)

    async def _credit(self, tenant_id: UUID, message: m.Credit) -> Any:
        if refusal := credit(message):
            return refusal
        tenants = self._world.storage.tenants
        try:
            tenant = await tenants.credit(
                tenant_id, message.amount_nanos, message.reason, message.by, credit_id=message.credit_id
            )
        except RowRefused:
            return Refusal("UZ-REQ-001", "/amount_nanos: the balance would become too large.")
        if tenant is None:
            return Refusal("UZ-BILLING-002", f"There is no ledger for tenant {tenant_id}.")
        self._world.entitlements.forget(tenant_id)
        self.context.tell("dispatcher", "", TenantCredited(tenant_id))
        self._world.storage.signals.send(Signal(Topic.TENANT, tenant_id))
        return tenant


def _decide(message: Planning, plan: Plan, now: int) -> Plan | Refusal:
    match message:
        case m.ReadPlan():
            return plan
        case m.Subscribe():
            return transitions.subscribe(plan, message.subscription_id, message.by, now)
        case m.TakeBillingEvent():
            kinds = list(transitions.BillingEvent)
            if message.event_type not in kinds:
                detail = f"/event_type: one of {', '.join(kinds)}."
                return Refusal("UZ-BILLING-004", detail, {"pointer": "/event_type"})
            event = transitions.BillingEvent(message.event_type)
            return transitions.occur(plan, event, message.reason, message.by, now)
        case _:
            assert_never(message)
