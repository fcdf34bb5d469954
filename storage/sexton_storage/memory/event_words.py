"""The index of words in memory: there is none, since all events are looked at."""

from sexton_storage.memory.base import MemoryStore
from sexton_storage.records.event_words import NOTHING, Indexed


class MemoryEventWords(MemoryStore):
    async def index(self, *, limit: int) -> Indexed:  # noqa: ARG002 # the protocol's
        await self._round_trip()
        return NOTHING
