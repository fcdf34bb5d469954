"""The reclaimer: takes leases back from dead runners, those of dead nodes too."""

from collections.abc import Sequence

import msgspec

from sexton_actors.protocol.lease import Expire
from sexton_actors.rounds import Round, RoundsActor
from sexton_actors.terms import MORE_INTERVAL_S, RECLAIM_INTERVAL_S
from sexton_engine import Message

RECLAIM_PAGE = 5_000
"""Leases that are reclaimed in one round: what a whole dead node may have held comes in a few."""


class Look(msgspec.Struct, Message[None], frozen=True):
    """Ask the database which leases are past their deadline."""


class Reclaimer(RoundsActor):
    """Finds what no timer of this node knows; each lease's own actor decides and writes.

    It runs on every node: two that find the same lease both ask, and one conditional write holds.
    """

    kind = "reclaimer"

    def rounds(self) -> Sequence[Round]:
        """At once: a restart may have found many."""
        return (Round(Look(), RECLAIM_INTERVAL_S, self._look),)

    async def _look(self) -> float | None:
        due = await self._world.storage.leases.expired(limit=RECLAIM_PAGE)
        for lease_id in due:
            self.context.tell("lease", lease_id, Expire())
        return MORE_INTERVAL_S if len(due) == RECLAIM_PAGE else None
