"""Keeps the index of the words of events, behind the events."""

from collections.abc import Sequence
from typing import Final

import msgspec
import trio

from sexton_actors.pace import MAX_REST_S, Utilization
from sexton_actors.rounds import Round, RoundsActor
from sexton_actors.world import World
from sexton_engine import Context, Message

INDEX_INTERVAL_S: Final = 1.0
INDEX_PAGE: Final = 200
QUIET_SHARE: Final = 3.0
"""The rest after a page, as a part of the time that it took, where nothing else waits."""
BUSY_SHARE: Final = 9.0
BUSY_AT: Final = 0.5
"""The part of the time that the journal's hot lane has been committing: more, and all else goes first."""
BEHIND_MAX_S: Final = 60.0
"""However busy the journal is, the index stays no further behind, so that a search has little to look at."""


class Index(msgspec.Struct, Message[None], frozen=True):
    """Write the words of the events that arrived or ended."""


class WordIndexer(RoundsActor):
    """Behind the writes of others, as a bulk job is: a search looks at what is not in the index yet itself.

    Several nodes may look at the same time; one of them writes.
    """

    kind = "word_indexer"

    def __init__(self, context: Context, world: World) -> None:
        super().__init__(context, world)
        self._journal = Utilization(trio.current_time(), world.storage.journal.statistics().hot.seconds)

    def rounds(self) -> Sequence[Round]:
        """At once: a restart may have left some."""
        return (Round(Index(), INDEX_INTERVAL_S, self._index),)

    async def _index(self) -> float | None:
        storage, meters = self._world.storage, self._world.meters
        began = trio.current_time()
        done = await storage.event_words.index(limit=INDEX_PAGE)
        ended, hot = trio.current_time(), storage.journal.statistics().hot
        busy = self._journal.since_last(ended, hot.seconds)
        meters.indexed += done.events
        meters.index_behind_s = behind_s = done.behind_ms / 1000
        return _rest_s(ended - began, busy, behind_s) if done.more else None


def _rest_s(took_s: float, busy: float, behind_s: float) -> float:
    """Seconds until the next page, where there is one: all else goes first, and nobody waits for this.

    ``took_s``: how long this one took. ``busy``: the part of the time in which the journal was committing.
    ``behind_s``: how old the oldest news is that this page has left.

    >>> _rest_s(0.125, busy=0.1, behind_s=1.0), _rest_s(0.125, busy=0.9, behind_s=1.0)
    (0.375, 1.125)
    >>> _rest_s(0.125, busy=0.9, behind_s=90.0), _rest_s(9.0, busy=0.1, behind_s=1.0)
    (0.375, 2.0)
    """
    goes_last = busy >= BUSY_AT and behind_s < BEHIND_MAX_S
    return min(MAX_REST_S, took_s * (BUSY_SHARE if goes_last else QUIET_SHARE))
