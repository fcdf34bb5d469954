"""Keeps the index of the words of events, behind the events."""

from collections.abc import Sequence
from typing import Final

import msgspec
import trio

from sexton_actors.pace import MAX_REST_S, QUEUED_MANY
from sexton_actors.rounds import Round, RoundsActor
from sexton_engine import Message

INDEX_INTERVAL_S: Final = 1.0
INDEX_PAGE: Final = 200
QUIET_SHARE: Final = 3.0
"""The rest after a page, as a part of the time that it took, where nothing else waits."""
BUSY_SHARE: Final = 9.0


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
        return _rest_s(trio.current_time() - began, queued) if done.more else None


def _rest_s(took_s: float, queued: int) -> float:
    """Seconds until the next page, where there is one: all else goes first, and nobody waits for this.

    ``took_s``: how long this one took. ``queued``: writes that waited before it.

    >>> _rest_s(0.125, queued=0), _rest_s(0.125, queued=100), _rest_s(9.0, queued=0)
    (0.375, 1.125, 2.0)
    """
    return min(MAX_REST_S, took_s * (BUSY_SHARE if queued > QUEUED_MANY else QUIET_SHARE))
