"""The dispatcher: one for a node, it matches ready agents to waiting runners and asks the queues to claim."""

from typing import Any, assert_never
from uuid import UUID

from sexton_engine import Actor, Context, MailboxSpec
from sexton_storage.stores import StorageUnavailable
from sexton_storage.writes import Exhausted

from sexton_actors.dispatcher import messages as m
from sexton_actors.dispatcher.index import ReadyIndex
from sexton_actors.dispatcher.offers import OfferBook, OpenOffer
from sexton_actors.lease.messages import Release
from sexton_actors.queue.messages import Claim, EventQueued, Grant
from sexton_actors.runner.messages import Leases
from sexton_actors.terms import RESCAN_INTERVAL_S
from sexton_actors.world import World

SCAN_PAGE = 1000
CLAIM_GRACE_S = 2.0
"""How long an offer whose time is over waits for a claim that is being committed for it."""

Message = (
    m.AgentReady
    | m.AgentNotReady
    | m.TenantExhausted
    | m.TenantCredited
    | m.Offer
    | m.ClaimSettled
    | m.OfferOver
    | m.Withdraw
    | m.ViewQueue
    | m.Rescan
)


class Dispatcher(Actor):
    """Keeps nothing that is not in the database: its index is a view, made anew at every start."""

    kind = "dispatcher"
    mailbox = MailboxSpec(capacity=65_536)
    transparent = (StorageUnavailable,)

    def __init__(self, context: Context, world: World) -> None:
        super().__init__(context)
        self._world = world
        self._ready = ReadyIndex()
        self._offers = OfferBook()
        self._scan_after: UUID | None = None

    async def on_start(self) -> None:
        """Begin looking at once: what was ready before a restart is ready now."""
        self.context.set_timer("rescan", 0, m.Rescan())

    async def on_receive(self, message: Message) -> Any:
        """Dispatch."""
        match message:
            case m.AgentReady(agent=agent):
                self._ready.add(agent)
                if (entry := self._offers.for_agent(agent)) is not None:
                    self._fill(entry)
            case m.AgentNotReady(zombie_id=zombie_id):
                self._ready.remove(zombie_id)
            case m.Offer():
                self._open(message)
            case m.ClaimSettled():
                self._settled(message)
            case m.OfferOver(offer_id=offer_id):
                self._over(offer_id)
            case m.Withdraw(runner_id=runner_id):
                for entry in self._offers.of_runner(runner_id):
                    self._over(entry.id)
            case m.TenantExhausted(tenant_id=tenant_id):
                self._ready.remove_tenant(tenant_id)
            case m.TenantCredited() | m.Rescan():
                await self._rescan()
            case m.ViewQueue():
                return self._view()
            case _:
                assert_never(message)
        return None

    # --- offers -------------------------------------------------------------------------------------------------

    def _open(self, offer: m.Offer) -> None:
        entry = self._offers.add(offer)
        self._fill(entry)
        if not entry.pending and offer.wait_s <= 0:
            self._answer(entry)
        else:
            self.context.set_timer(entry.id, max(offer.wait_s, 0), m.OfferOver(entry.id))

    def _fill(self, entry: OpenOffer) -> None:
        offer = entry.offer
        if offer.reply.is_expired:
            self._forget(entry)
            return
        while entry.room() > 0:
            agent = self._ready.take(offer.runner_id, offer.labels, unsandboxed=offer.unsandboxed)
            if agent is None:
                return
            entry.pending += 1
            self.context.tell("queue", agent.zombie_id, Claim(offer.runner_id, entry.id))

    def _settled(self, message: m.ClaimSettled) -> None:
        outcome = message.outcome
        if isinstance(outcome, Exhausted):
            # That event is set aside; the agent may have more, to be set aside in their turn or freed by a credit.
            self.context.tell("queue", message.zombie_id, EventQueued())
        entry = self._offers.get(message.offer_id)
        if entry is None:
            if isinstance(outcome, Grant):
                self._give_back(outcome)
            return
        entry.pending -= 1
        if isinstance(outcome, Grant):
            entry.grants.append(outcome)
        if entry.pending:
            return
        if entry.grants or entry.over:
            self._answer(entry)
        else:
            self._fill(entry)
            if not entry.pending and entry.offer.wait_s <= 0:
                self._answer(entry)

    def _over(self, offer_id: int) -> None:
        entry = self._offers.get(offer_id)
        if entry is None:
            return
        if entry.pending and not entry.over:
            entry.over = True
            self.context.set_timer(entry.id, CLAIM_GRACE_S, m.OfferOver(entry.id))
        else:
            self._answer(entry)

    def _answer(self, entry: OpenOffer) -> None:
        self._forget(entry)
        grants = tuple(entry.grants)
        if entry.offer.reply.is_expired:
            for grant in grants:
                self._give_back(grant)
        else:
            entry.offer.reply.set(Leases(grants, 0))

    def _forget(self, entry: OpenOffer) -> None:
        self._offers.remove(entry.id)
        self.context.cancel_timer(entry.id)

    def _give_back(self, grant: Grant) -> None:
        # Nobody is there to run it: back at once, rather than after a whole term.
        self.context.tell("lease", grant.lease.id, Release(grant.lease.runner_id, "poll_gone"))

    # --- the database's view ------------------------------------------------------------------------------------

    async def _rescan(self) -> None:
        self.context.set_timer("rescan", RESCAN_INTERVAL_S, m.Rescan())
        found = await self._world.storage.events.ready(after=self._scan_after, limit=SCAN_PAGE)
        self._scan_after = found[-1].zombie_id if len(found) == SCAN_PAGE else None
        for agent in found:
            if agent.zombie_id not in self._ready:
                self._ready.add(agent)
                if (entry := self._offers.for_agent(agent)) is not None:
                    self._fill(entry)
        if self._scan_after is not None:
            self.context.set_timer("rescan", 0, m.Rescan())

    def _view(self) -> m.QueueView:
        return m.QueueView(len(self._ready), self._ready.oldest_event_at(), self._ready.by_tags(), len(self._offers))

