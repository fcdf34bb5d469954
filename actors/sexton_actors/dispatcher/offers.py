"""The runners that wait, in the order in which they came."""

from collections import OrderedDict
from collections.abc import Sequence
from uuid import UUID

from sexton_actors.dispatcher.index import admits, need_of
from sexton_actors.protocol.dispatcher import Offer
from sexton_actors.protocol.queue import Grant
from sexton_storage.records.events import ReadyAgent
from sexton_storage.scopes import Scope, scopes_with

Talent = tuple[frozenset[str], bool]
"""The labels a runner has, and whether it is without a sandbox."""


class OpenOffer:
    """One waiting runner: what it asked for, what it got so far, and what is under way for it."""

    __slots__ = ("cancelled", "claiming", "full", "grants", "id", "offer", "over")

    def __init__(self, offer_id: int, offer: Offer) -> None:
        self.id = offer_id
        self.offer = offer
        self.grants: list[Grant] = []
        self.claiming: set[UUID] = set()
        """Agents whose queues were asked to claim for it."""
        self.cancelled: list[UUID] = []
        """Leases its runner is to stop, to be told with the answer."""
        self.over = False
        """It takes nothing more, and ends with the last claim under way."""
        self.full = False
        """The database says that its runner has no slot left."""

    def __repr__(self) -> str:
        return f"<OpenOffer {self.id}: {len(self.grants)}+{len(self.claiming)}/{self.offer.max_leases}>"

    @property
    def talent(self) -> Talent:
        return self.offer.labels, self.offer.unsandboxed

    def room(self) -> int:
        """Leases it could still take."""
        return 0 if self.over else self.offer.max_leases - len(self.grants) - len(self.claiming)


class OfferBook:
    """Open offers by number; those with nothing under way stand in line.

    By whose agents their runners may have, and by what they can do.
    """

    def __init__(self) -> None:
        self._open: dict[int, OpenOffer] = {}
        self._of_runner: dict[UUID, dict[int, OpenOffer]] = {}
        self._in_line: dict[Scope, dict[Talent, OrderedDict[int, OpenOffer]]] = {}
        self._next = 0

    def __len__(self) -> int:
        return len(self._open)

    def __repr__(self) -> str:
        return f"<OfferBook {len(self._open)} open, of {len(self._of_runner)} runners>"

    def add(self, offer: Offer) -> OpenOffer:
        """Note an offer under the next number, at the end of the line."""
        self._next += 1
        entry = self._open[self._next] = OpenOffer(self._next, offer)
        self._of_runner.setdefault(offer.runner_id, {})[entry.id] = entry
        self._line_for(entry)[entry.id] = entry
        return entry

    def _line_for(self, entry: OpenOffer) -> OrderedDict[int, OpenOffer]:
        return self._in_line.setdefault(entry.offer.scope, {}).setdefault(entry.talent, OrderedDict())

    def get(self, offer_id: int) -> OpenOffer | None:
        """None once it is answered."""
        return self._open.get(offer_id)

    def remove(self, entry: OpenOffer) -> None:
        """Forget an answered offer."""
        self.leave_line(entry)
        self._open.pop(entry.id, None)
        mine = self._of_runner.get(entry.offer.runner_id, {})
        mine.pop(entry.id, None)
        if not mine:
            self._of_runner.pop(entry.offer.runner_id, None)

    def leave_line(self, entry: OpenOffer) -> None:
        """It has claims under way, or is over: others first."""
        lines = self._in_line.get(entry.offer.scope, {})
        line = lines.get(entry.talent)
        if line is None:
            return
        line.pop(entry.id, None)
        if not line:
            del lines[entry.talent]
        if not lines:
            del self._in_line[entry.offer.scope]

    def rejoin_line(self, entry: OpenOffer) -> None:
        """Put an offer back whose claims came to nothing: it has waited longest, so it goes to the front."""
        line = self._line_for(entry)
        line[entry.id] = entry
        line.move_to_end(entry.id, last=False)

    def of_runner(self, runner_id: UUID) -> Sequence[OpenOffer]:
        """All of one runner, oldest first."""
        return tuple(self._of_runner.get(runner_id, {}).values())

    def for_agent(self, agent: ReadyAgent) -> OpenOffer | None:
        """Who should get this agent: its last runner if that is in line, else who is longest in it."""
        need = need_of(agent)
        # Three looks, however many tenants have runners of their own.
        lines = {scope: self._in_line[scope] for scope in scopes_with(agent) if scope in self._in_line}
        if agent.last_runner_id is not None:
            for entry in self._of_runner.get(agent.last_runner_id, {}).values():
                in_line = entry.id in lines.get(entry.offer.scope, {}).get(entry.talent, {})
                if in_line and admits(entry.offer.labels, need, unsandboxed=entry.offer.unsandboxed):
                    return entry
        fronts = (
            next(iter(line.values()))
            for by_talent in lines.values()
            for (labels, unsandboxed), line in by_talent.items()
            if admits(labels, need, unsandboxed=unsandboxed)
        )
        return min(fronts, key=lambda entry: entry.id, default=None)
