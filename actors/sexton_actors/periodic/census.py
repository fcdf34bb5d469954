"""Writes down which runners were heard of, and counts the fleet and the queue, every few seconds."""

from typing import Final

import msgspec

from sexton_actors.world import World
from sexton_engine import Actor, Context, MailboxSpec, Message
from sexton_storage.errors import StorageUnavailable

CENSUS_INTERVAL_S: Final = 5.0


class Count(msgspec.Struct, Message[None], frozen=True):
    """Ask the database how much waits and is held."""


class CensusTaker(Actor):
    """So that no scrape has to ask the database.

    Every node takes its own; all see the same database, so their numbers agree but for seconds.
    """

    kind = "census"
    mailbox = MailboxSpec(capacity=16)
    transparent = (StorageUnavailable,)

    def __init__(self, context: Context, world: World) -> None:
        super().__init__(context)
        self._world = world

    def on_start(self) -> None:
        """Count at once: an operator may be waiting for it."""
        self.context.set_timer("count", 0, Count())

    async def on_receive(self, message: Count) -> None:
        """Write down who was heard of, count, and come again."""
        # Set first: an outage must not end the rounds.
        self.context.set_timer("count", CENSUS_INTERVAL_S, message)
        if heard := self._world.meters.take_heard():
            # All at once: a renewal costs no write of its own for this.
            await self._world.storage.runners.touch(heard)
        self._world.meters.census = await self._world.storage.fleet.census()
