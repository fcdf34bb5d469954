"""Brings ready agents and waiting runners together, and sees to it that every offer is answered once."""

from typing import Protocol
from uuid import UUID

from sexton_actors.dispatcher.index import ReadyIndex
from sexton_actors.dispatcher.offers import OfferBook, OpenOffer
from sexton_actors.protocol.dispatcher import ClaimSettled, Offer
from sexton_actors.protocol.queue import Grant
from sexton_actors.protocol.runner import Leases
from sexton_actors.refusal import Refusal
from sexton_storage.records.events import ReadyAgent
from sexton_storage.refusals import NOT_FOR_RUNNER
from sexton_storage.writes import NothingToClaim

READY_MAX = 250_000
"""Agents that the index holds; those beyond it are found in the database when there is room again."""
OFFERS_MAX = 32_000
"""Open offers on one node; each may have two timers, of which an actor may have 65,536."""
OFFERS_PER_RUNNER = 256
"""As many as a runner may have slots."""
CROWDED_RETRY_MS = 1_000
FULL_RETRY_MS = 1_000
"""When a runner may ask again that asked for more than it has slots."""
CLAIM_PATIENCE_S = 3.0
"""How long an offer waits for a queue to claim: one that crashes and crashes must not hold up the runners."""
REST_S = 30.0
"""How long, at most, an agent whose queue did not answer is left alone, unless the queue itself speaks."""
CLAIM_GRACE_S = 2.0
"""How long an offer whose time is over waits for a claim that is being committed for it."""


class Desk(Protocol):
    """Does what the matching decides."""

    def claim(self, zombie_id: UUID, runner_id: UUID, offer_id: int) -> None:
        """Ask the agent's queue to claim for this offer."""

    def prepare(self, zombie_id: UUID) -> None:
        """Have the agent's queue read its record: the agent is likely to be claimed next."""

    def give_back(self, grant: Grant) -> None:
        """Return a lease that reached nobody."""

    def remind(self, offer_id: int, after_s: float) -> None:
        """Call ``over`` then, in place of what was asked before."""

    def forget(self, offer_id: int) -> None:
        """Call neither ``over`` nor ``overdue`` any more."""

    def expect(self, offer_id: int, within_s: float) -> None:
        """Call ``overdue`` then, in place of what was asked before."""

    def rest(self, for_s: float) -> None:
        """Call ``rested`` then."""


class Matching:
    """The state behind the dispatcher; waits for nothing."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.ready = ReadyIndex()
        self.offers = OfferBook()
        self._claiming: set[UUID] = set()
        self._resting: set[UUID] = set()
        self._prepared: UUID | None = None

    def __repr__(self) -> str:
        return f"<Matching {self.ready!r}, {self.offers!r}>"

    # --- agents ---------------------------------------------------------------------------------------------

    def add(self, agent: ReadyAgent) -> None:
        """An agent is ready, by its queue's word."""
        self._resting.discard(agent.zombie_id)
        self._add(agent)

    def _add(self, agent: ReadyAgent) -> None:
        if len(self.ready) >= READY_MAX and self.offers.for_agent(agent) is None:
            return
        self.ready.add(agent)
        # One that is taken at once leaves the index; an offer whose runner has gone is passed over.
        while agent.zombie_id in self.ready and (entry := self.offers.for_agent(agent)) is not None:
            self._fill(entry)

    def knows(self, zombie_id: UUID) -> bool:
        """Whether it is ready here, or being claimed, or left alone for a while."""
        return any(zombie_id in those for those in (self.ready, self._claiming, self._resting))

    def found(self, agent: ReadyAgent) -> bool:
        """An agent is ready, by the database, which does not see what is being claimed at this moment.

        Answers whether that is news.
        """
        if self.knows(agent.zombie_id):
            return False
        self._add(agent)
        return True

    def remove(self, zombie_id: UUID) -> None:
        """An agent is not ready any more."""
        self.ready.remove(zombie_id)

    # --- offers ---------------------------------------------------------------------------------------------

    def open(self, offer: Offer) -> None:
        """Give what there is at once, else let it wait."""
        if offer.reply.is_expired:
            return
        if len(self.offers) >= OFFERS_MAX:
            offer.reply.set(Leases((), CROWDED_RETRY_MS))
            return
        mine = self.offers.of_runner(offer.runner_id)
        if len(mine) >= OFFERS_PER_RUNNER:
            self._end(mine[0])
        entry = self.offers.add(offer)
        self._fill(entry)
        if self.offers.get(entry.id) is None:
            return
        if offer.wait_s <= 0 and not entry.claiming:
            self._end(entry)
        else:
            self._desk.remind(entry.id, max(offer.wait_s, 0))

    def _fill(self, entry: OpenOffer) -> None:
        offer = entry.offer
        if offer.reply.is_expired:
            self._end(entry)
            return
        while entry.room() > 0:
            agent = self.ready.take(
                offer.runner_id, offer.labels, unsandboxed=offer.unsandboxed, scope=offer.scope
            )
            if agent is None:
                break
            entry.claiming.add(agent.zombie_id)
            self._claiming.add(agent.zombie_id)
            self._desk.claim(agent.zombie_id, offer.runner_id, entry.id)
        if entry.claiming:
            self.offers.leave_line(entry)
            self._desk.expect(entry.id, CLAIM_PATIENCE_S)
            self._prepare_next(offer)

    def _prepare_next(self, offer: Offer) -> None:
        # Among many agents each claim is another one's, whose queue sleeps and would have to read its record
        # first, while a runner waits.
        coming = self.ready.next(
            offer.runner_id, offer.labels, unsandboxed=offer.unsandboxed, scope=offer.scope
        )
        if coming is not None and coming.zombie_id != self._prepared:
            self._prepared = coming.zombie_id
            self._desk.prepare(coming.zombie_id)

    def settled(self, message: ClaimSettled) -> None:
        """A queue has answered. An answer that no offer waits for is one too late, or one too many."""
        entry = self.offers.get(message.offer_id)
        outcome = message.outcome
        awaited = entry is not None and message.zombie_id in entry.claiming
        if entry is None or not (awaited or (isinstance(outcome, Grant) and entry.room() > 0)):
            if isinstance(outcome, Grant):
                self._desk.give_back(outcome)
            return
        entry.claiming.discard(message.zombie_id)
        self._claiming.discard(message.zombie_id)
        if isinstance(outcome, Grant):
            entry.grants.append(outcome)
        elif isinstance(outcome, NothingToClaim) and outcome.reason in NOT_FOR_RUNNER:
            # It would be tried with one agent after another, in vain.
            entry.full = entry.over = True
        if entry.claiming:
            return
        if entry.grants or entry.over:
            self._end(entry)
        else:
            self._wait_on(entry)

    def overdue(self, offer_id: int) -> None:
        """Queues have not answered in time: go on without them, and leave them alone for a while."""
        entry = self.offers.get(offer_id)
        if entry is None or not entry.claiming:
            return
        if not self._resting:
            self._desk.rest(REST_S)
        self._resting |= entry.claiming
        self._claiming -= entry.claiming
        entry.claiming.clear()
        if entry.grants or entry.over:
            self._end(entry)
        else:
            self._wait_on(entry)

    def rested(self) -> None:
        """They may be tried again when they are found."""
        self._resting.clear()

    def _wait_on(self, entry: OpenOffer) -> None:
        self.offers.rejoin_line(entry)
        self._fill(entry)
        if not entry.claiming and entry.offer.wait_s <= 0:
            self._end(entry)

    def over(self, offer_id: int) -> None:
        """End a poll whose time is over: now, or with its claims, but no later than after a grace."""
        entry = self.offers.get(offer_id)
        if entry is not None:
            self._close(entry)

    def withdraw(self, runner_id: UUID, refusal: Refusal | None) -> None:
        """Nothing more for this runner: what is being claimed for it goes back."""
        for entry in self.offers.of_runner(runner_id):
            self._end(entry, refusal)

    def tell_cancelled(self, runner_id: UUID, lease_ids: tuple[UUID, ...]) -> None:
        """Let the runner know at once what to stop; what is being claimed for it is still for it."""
        for entry in self.offers.of_runner(runner_id):
            entry.cancelled.extend(lease_ids)
            if not entry.over:
                self._close(entry)

    def _close(self, entry: OpenOffer) -> None:
        if entry.claiming and not entry.over:
            entry.over = True
            self._desk.remind(entry.id, CLAIM_GRACE_S)
        else:
            self._end(entry)

    def _end(self, entry: OpenOffer, refusal: Refusal | None = None) -> None:
        self.offers.remove(entry)
        self._claiming -= entry.claiming
        self._desk.forget(entry.id)
        reply = entry.offer.reply
        if refusal is None and not reply.is_expired:
            wait_ms = FULL_RETRY_MS if entry.full and not entry.grants else 0
            reply.set(Leases(tuple(entry.grants), wait_ms, tuple(entry.cancelled)))
            return
        for grant in entry.grants:
            self._desk.give_back(grant)
        if refusal is not None:
            reply.set(refusal)
