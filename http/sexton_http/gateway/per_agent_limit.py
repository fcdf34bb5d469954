"""Keeps a crowd at one agent's door from filling the house."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from sexton_http.answers import Problem

WAIT_S = 1


class Crowds:
    """How many deliveries of each agent are under way; one that is at ``limit`` is told to come again.

    The limit is a part of what the server takes at once, so that some room is left for all others.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._now: Counter[UUID] = Counter()

    def __repr__(self) -> str:
        return f"<Crowds, {len(self._now)} agents, {self.limit} each>"

    @contextmanager
    def room_for(self, zombie_id: UUID) -> Iterator[None]:
        """Raises Problem UZ-API-003: a sender comes again by itself after a 503."""
        if self._now[zombie_id] >= self.limit:
            raise Problem("UZ-API-003", "too many deliveries of this agent are under way", wait_s=WAIT_S)
        self._now[zombie_id] += 1
        try:
            yield
        finally:
            self._now[zombie_id] -= 1
            if not self._now[zombie_id]:
                del self._now[zombie_id]
