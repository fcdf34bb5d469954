"""Writes down which runners were heard of, and counts the fleet and the queues, every few seconds."""

from collections.abc import Sequence
from typing import Final

import msgspec

from sexton_actors.rounds import Round, RoundsActor
from sexton_engine import Message

CENSUS_INTERVAL_S: Final = 5.0


class Count(msgspec.Struct, Message[None], frozen=True):
    """Ask the database how much waits and is held."""


class CensusTaker(RoundsActor):
    """Keeps the counts, so that no scrape has to ask the database.

    Every node takes its own; all see the same database, so their numbers agree but for seconds.
    """

    kind = "census"

    def rounds(self) -> Sequence[Round]:
        """At once: an operator may be waiting for it."""
        return (Round(Count(), CENSUS_INTERVAL_S, self._count),)

    async def _count(self) -> None:
        if heard := self._world.meters.take_heard():
            # All at once: a renewal costs no write of its own for this.
            await self._world.storage.runners.touch(heard)
        _, self._world.meters.file_bytes_kept = await self._world.storage.blobs.held()
        if self._world.objects is not None:
            self._world.meters.files_to_move = await self._world.storage.blobs.to_move()
        self._world.meters.census = census = await self._world.storage.fleet.census()
        self._world.meters.label_history.note(census)
        self._world.backlog.begin_census()
        self._world.backlog.end_census(await self._world.storage.events.backlog())
