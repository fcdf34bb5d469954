"""The reclaimer: takes leases back from dead runners, those of dead nodes too."""

import msgspec

from sexton_actors.protocol.lease import Expire
from sexton_actors.terms import MORE_INTERVAL_S, RECLAIM_INTERVAL_S
from sexton_actors.world import World
from sexton_engine import Actor, Context, MailboxSpec, Message
from sexton_storage.errors import StorageUnavailable

RECLAIM_PAGE = 5_000
"""Leases that are reclaimed in one round: what a whole dead node may have held comes in a few."""


class Look(msgspec.Struct, Message[None], frozen=True):
    """Ask the database which leases are past their deadline."""


class Reclaimer(Actor):
    """Finds what no timer of this node knows; each lease's own actor decides and writes.

    It runs on every node: two that find the same lease both ask, and one conditional write holds.
    """

    kind = "reclaimer"
    mailbox = MailboxSpec(capacity=16)
    transparent = (StorageUnavailable,)

    def __init__(self, context: Context, world: World) -> None:
        super().__init__(context)
        self._world = world

    def on_start(self) -> None:
        """Look at once: a restart may have found many."""
        self.context.set_timer("look", 0, Look())

    async def on_receive(self, message: Look) -> None:
        """Expire what is due, and come again soon when there may be more."""
        # Set first: an outage must not end the rounds.
        self.context.set_timer("look", RECLAIM_INTERVAL_S, message)
        due = await self._world.storage.leases.expired(limit=RECLAIM_PAGE)
        for lease_id in due:
            self.context.tell("lease", lease_id, Expire())
        if len(due) == RECLAIM_PAGE:
            self.context.set_timer("look", MORE_INTERVAL_S, message)
