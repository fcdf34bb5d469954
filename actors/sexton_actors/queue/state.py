"""What a queue knows of its agent. It only saves questions: the claim itself asks the database."""

from typing import NamedTuple
from uuid import UUID

from sexton_actors.held.agent import HeldAgent
from sexton_actors.loans import unlent, withheld
from sexton_actors.manifest.model import Manifest
from sexton_actors.world import World
from sexton_engine import Context
from sexton_storage.records.zombies import Zombie


class Lending(NamedTuple):
    """What an agent's record says of the credentials that its files name."""

    withheld: tuple[str, ...]
    """Those without which it must not run."""
    unlent: tuple[str, ...]
    """Those that a run goes without."""


class QueueState(HeldAgent):
    """The agent as fresh as this node keeps records, and what was told and done about its events."""

    __slots__ = ("_lending", "announced", "last_runner_id", "leased", "looked", "over_until")

    def __init__(self, context: Context, world: World) -> None:
        super().__init__(context, world)
        self.announced = False
        """Whether the dispatcher was told that the agent is ready."""
        self.leased = False
        """Whether one of its events is leased, as far as is known here."""
        self.looked = False
        """Whether the database was asked since this actor woke: before, older events may wait unknown."""
        self.last_runner_id: UUID | None = None
        self._lending: tuple[Zombie, Lending] | None = None
        self.over_until = 0
        """Until then its budget is taken for spent: nothing is claimed in vain each second."""

    def lending_of(self, zombie: Zombie, manifest: Manifest) -> Lending:
        """Which credentials a run may not have, worked out once for each version of the record."""
        known = self._lending
        if known is None or known[0] is not zombie:
            found = Lending(withheld(zombie.lending, manifest), unlent(zombie.lending, manifest))
            known = self._lending = (zombie, found)
        return known[1]

    def __repr__(self) -> str:
        return f"<QueueState {self.context.key} announced={self.announced} leased={self.leased}>"
