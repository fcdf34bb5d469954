"""Keeps the index of the words of events, behind the events."""

from collections.abc import Sequence
from typing import Final

import msgspec
import trio

from sexton_actors.pace import rest_s
from sexton_actors.rounds import Round, RoundsActor
from sexton_engine import Message

INDEX_INTERVAL_S: Final = 1.0
INDEX_PAGE: Final = 200


class Index(msgspec.Struct, Message[None], frozen=True):
    """Write the words of the events that arrived or ended."""


class WordIndexer(RoundsActor):
    """Behind the writes of others, as a bulk job is: a search looks at what is not in the index yet itself.

    Several nodes may look at the same time; one of them writes.
    """

    kind = "word_indexer"

    def rounds(self) -> Sequence[Round]:
        """At once: a restart may have left some."""
        return (Round(Index(), INDEX_INTERVAL_S, self._index),)

    async def _index(self) -> float | None:
        storage = self._world.storage
        began, queued = trio.current_time(), storage.journal.statistics().hot.depth
        done = await storage.event_words.index(limit=INDEX_PAGE)
        meters = self._world.meters
        meters.indexed += done.events
        meters.index_behind_s = done.behind_ms / 1000
        return rest_s(trio.current_time() - began, done.events, queued, 0) if done.more else None
