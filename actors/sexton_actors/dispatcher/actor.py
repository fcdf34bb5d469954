"""The dispatcher: one for a node, it matches ready agents to waiting runners and asks the queues to claim."""

from collections.abc import Sequence
from typing import Any, assert_never
from uuid import UUID

from sexton_actors.claim_groups import ClaimGroup, ClaimPart
from sexton_actors.dispatcher.matching import READY_MAX, Matching
from sexton_actors.dispatcher.other_nodes import OtherNodes
from sexton_actors.protocol import dispatcher as m
from sexton_actors.protocol.lease import Undelivered
from sexton_actors.protocol.queue import Claim, ComingUp, Grant
from sexton_actors.terms import MORE_INTERVAL_S
from sexton_actors.world import World
from sexton_engine import Actor, Context, MailboxSpec
from sexton_storage.errors import StorageUnavailable

SCAN_PAGE = 1000
"""Agents of one look. Between two looks of a walk the mailbox has its turn."""
KNOWN_INTERVAL_S = 0.25
"""When a walk goes on after a page without news: a long queue that is known is not read again and again."""

Message = (
    m.AgentReady
    | m.AgentNotReady
    | m.StillReady
    | m.ReadyElsewhere
    | m.LookedUp
    | m.TenantCredited
    | m.WorkspaceChanged
    | m.Offer
    | m.ClaimSettled
    | m.OfferOver
    | m.Withdraw
    | m.TellCancelled
    | m.ViewQueue
    | m.Rescan
    | m.Scanned
    | m.ClaimsOverdue
    | m.RestOver
)


class Dispatcher(Actor):
    """Keeps nothing that is not in the database: its index is a view, rebuilt at every start.

    Other nodes tell of agents that found no runner there. Once a second it walks through what the database
    holds ready. So whatever it was not told, and whatever a claim that failed has left behind, is found then;
    and what is not ready any more is forgotten.
    """

    kind = "dispatcher"
    mailbox = MailboxSpec(capacity=65_536)
    transparent = (StorageUnavailable,)

    def __init__(self, context: Context, world: World) -> None:
        super().__init__(context)
        self._world = world
        self._matching = Matching(self)
        self._scan_after: UUID | None = None
        self._scanning = False
        self._scans_again = False
        self._hurries = False
        self._elsewhere = OtherNodes(context, world, self._matching, self._look_now)
        self._unconfirmed: set[UUID] = set()
        self._claims: dict[tuple[UUID, int], list[UUID]] = {}
        """Agents that the message being handled has found runners for, by runner and offer."""

    def on_start(self) -> None:
        """Begin looking at once: what was ready before a restart is ready now."""
        self.context.set_timer("rescan", 0, m.Rescan())

    def on_receive(self, message: Message) -> Any:
        """Dispatch; what was to be claimed meanwhile is claimed together, poll by poll."""
        reply = self._receive(message)
        if self._claims:
            self._send_claims()
        return reply

    def _receive(self, message: Message) -> Any:
        match message:
            case m.AgentReady(agent=agent):
                self._unconfirmed.discard(agent.zombie_id)
                self._matching.add(agent)
                self._elsewhere.tell(agent.zombie_id)
            case m.AgentNotReady(zombie_id=zombie_id):
                self._matching.remove(zombie_id)
            case m.StillReady() | m.ReadyElsewhere() | m.LookedUp():
                self._elsewhere.receive(message)
            case m.Offer():
                self._matching.open(message)
                self._elsewhere.somebody_waits()
            case m.ClaimSettled():
                self._matching.settled(message)
            case m.OfferOver(offer_id=offer_id):
                self._matching.over(offer_id)
            case m.ClaimsOverdue(offer_id=offer_id):
                self._matching.overdue(offer_id)
            case m.RestOver():
                self._matching.rested()
            case m.Withdraw(runner_id=runner_id, refusal=refusal):
                self._matching.withdraw(runner_id, refusal)
            case m.TellCancelled(runner_id=runner_id, lease_ids=lease_ids):
                self._matching.tell_cancelled(runner_id, lease_ids)
            case m.TenantCredited() | m.WorkspaceChanged():
                self._look_now()
            case m.Rescan():
                self._rescan()
            case m.Scanned():
                self._scanned(message)
            case m.ViewQueue():
                return self._view()
            case _:
                assert_never(message)
        return None

    def _view(self) -> m.QueueView:
        ready = self._matching.ready
        return m.QueueView(len(ready), ready.oldest_event_at(), ready.by_tags(), len(self._matching.offers))

    # --- the database's view --------------------------------------------------------------------------------

    def _look_now(self) -> None:
        self._scan_after = None
        self._hurries = True
        if self._scanning:
            # The look that is under way may have passed what has changed.
            self._scans_again = True
        else:
            self._rescan()

    def _rescan(self) -> None:
        # Set first: an outage must not end the rounds.
        self.context.set_timer("rescan", self._world.look_every_s, m.Rescan())
        if self._scanning:
            return
        if self._scan_after is None:
            self._unconfirmed = set(self._matching.ready.keys())
            self._elsewhere.all_is_looked_at()
        # Beside the mailbox: while the database is slow, offers still end in time.
        self._scanning = True
        self.context.start_task(self._scan, self._scan_after)

    async def _scan(self, after: UUID | None) -> None:
        try:
            found = tuple(await self._world.storage.events.ready(after=after, limit=SCAN_PAGE))
        except StorageUnavailable:
            return
        finally:
            self._scanning = False
        self.context.tell("dispatcher", "", m.Scanned(found, last=len(found) < SCAN_PAGE))

    def _scanned(self, message: m.Scanned) -> None:
        news = False
        for agent in message.agents:
            self._unconfirmed.discard(agent.zombie_id)
            news |= self._matching.found(agent)
        self._scan_after = None
        if message.last:
            self._hurries = False
            for zombie_id in self._unconfirmed:
                self._matching.remove(zombie_id)
            self._unconfirmed.clear()
        elif len(self._matching.ready) < READY_MAX:
            self._scan_after = message.agents[-1].zombie_id
            pause_s = MORE_INTERVAL_S if news or self._hurries else KNOWN_INTERVAL_S
            self.context.set_timer("rescan", pause_s, m.Rescan())
        if self._scans_again:
            self._scans_again = False
            self._look_now()

    # --- what the matching has done -------------------------------------------------------------------------

    def claim(self, zombie_id: UUID, runner_id: UUID, offer_id: int) -> None:
        self._claims.setdefault((runner_id, offer_id), []).append(zombie_id)

    def _send_claims(self) -> None:
        claims, self._claims = self._claims, {}
        for (runner_id, offer_id), zombie_ids in claims.items():
            parts: Sequence[ClaimPart | None] = (None,)
            if len(zombie_ids) > 1:
                group = ClaimGroup(self._world.storage.journal, len(zombie_ids))
                parts = group.parts()
                self.context.start_task(group.keep_time)
            for zombie_id, part in zip(zombie_ids, parts, strict=True):
                self.context.tell("queue", zombie_id, Claim(runner_id, offer_id, part))

    def prepare(self, zombie_id: UUID) -> None:
        self.context.tell("queue", zombie_id, ComingUp())

    def give_back(self, grant: Grant) -> None:
        # At once, rather than after a whole term.
        self.context.tell("lease", grant.lease.id, Undelivered())

    def remind(self, offer_id: int, after_s: float) -> None:
        self.context.set_timer(offer_id, after_s, m.OfferOver(offer_id))

    def forget(self, offer_id: int) -> None:
        self.context.cancel_timer(offer_id)
        self.context.cancel_timer(("claims", offer_id))

    def expect(self, offer_id: int, within_s: float) -> None:
        self.context.set_timer(("claims", offer_id), within_s, m.ClaimsOverdue(offer_id))

    def rest(self, for_s: float) -> None:
        self.context.set_timer("rest", for_s, m.RestOver())
