"""The runners that wait, in the order in which they came."""

from collections.abc import Iterator
from uuid import UUID

from sexton_storage.records import ReadyAgent

from sexton_actors.dispatcher.messages import Offer
from sexton_actors.queue.messages import Grant


class OpenOffer:
    """One waiting runner: what it asked for, what it got so far, and what is under way for it."""

    __slots__ = ("grants", "id", "offer", "over", "pending")

    def __init__(self, offer_id: int, offer: Offer) -> None:
        self.id = offer_id
        self.offer = offer
        self.grants: list[Grant] = []
        self.pending = 0
        self.over = False

    def __repr__(self) -> str:
        return f"<OpenOffer {self.id}: {len(self.grants)}+{self.pending}/{self.offer.max_leases}>"

    def room(self) -> int:
        """Leases it could still take."""
        return self.offer.max_leases - len(self.grants) - self.pending

    def admits(self, agent: ReadyAgent) -> bool:
        """Whether this runner may run that agent."""
        allowed = not self.offer.unsandboxed or agent.allows_unsandboxed
        return allowed and self.offer.labels.issuperset(agent.required_tags)


class OfferBook:
    """Open offers by number, oldest first."""

    def __init__(self) -> None:
        self._open: dict[int, OpenOffer] = {}
        self._next = 0

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[OpenOffer]:
        return iter(tuple(self._open.values()))

    def add(self, offer: Offer) -> OpenOffer:
        """Note an offer under the next number."""
        self._next += 1
        entry = self._open[self._next] = OpenOffer(self._next, offer)
        return entry

    def get(self, offer_id: int) -> OpenOffer | None:
        """None once it is answered."""
        return self._open.get(offer_id)

    def remove(self, offer_id: int) -> None:
        """Forget an answered offer."""
        self._open.pop(offer_id, None)

    def of_runner(self, runner_id: UUID) -> list[OpenOffer]:
        """All of one runner."""
        return [entry for entry in self._open.values() if entry.offer.runner_id == runner_id]

    def for_agent(self, agent: ReadyAgent) -> OpenOffer | None:
        """Who should get this agent: its last runner if that waits, else who has waited longest."""
        first: OpenOffer | None = None
        for entry in self._open.values():
            # One with a claim under way is answered in a moment: the others first.
            if entry.pending or entry.over or not entry.admits(agent):
                continue
            if entry.offer.runner_id == agent.last_runner_id:
                return entry
            first = first or entry
        return first
