"""Holds heartbeats open for a runner whose slots are all taken: it has no open poll to be told on."""

from collections.abc import Iterator
from uuid import UUID

import msgspec

from sexton_actors.protocol.runner import Heartbeat, HeartbeatOver, LookForCancelled
from sexton_engine import Context, ReplyPort

LISTENERS_MAX = 16
"""Heartbeats of one runner that wait; one more is answered at once."""


class Listener(msgspec.Struct, frozen=True):
    port: ReplyPort
    claimed: tuple[UUID, ...]
    """The leases that the runner works on, by its own word."""


class Listeners:
    """The open heartbeats of one runner, each with a timer."""

    def __init__(self, context: Context, look_every_s: float) -> None:
        self._context = context
        self._look_every_s = look_every_s
        self._waiting: dict[int, Listener] = {}
        self._tickets = 0

    def __repr__(self) -> str:
        return f"<Listeners {len(self._waiting)} waiting>"

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def has_room(self) -> bool:
        return len(self._waiting) < LISTENERS_MAX

    def add(self, message: Heartbeat) -> None:
        """Hold its answer back, for as long as it says it waits."""
        self._tickets += 1
        self._waiting[self._tickets] = Listener(self._context.defer(), message.active_lease_ids)
        self._context.set_timer(self._tickets, message.wait_ms / 1000, HeartbeatOver(self._tickets))
        if len(self._waiting) == 1:
            self.look_again()

    def look_again(self) -> None:
        if self._waiting:
            self._context.set_timer("listen", self._look_every_s, LookForCancelled())

    def claimed(self) -> set[UUID]:
        """What all of them work on."""
        return {lease_id for listener in self._waiting.values() for lease_id in listener.claimed}

    def take(self, ticket: int) -> Iterator[Listener]:
        """The one of this ticket, if it waits still."""
        listener = self._waiting.pop(ticket, None)
        self._context.cancel_timer(ticket)
        if listener is not None:
            yield listener

    def take_all(self) -> Iterator[Listener]:
        for ticket in tuple(self._waiting):
            yield from self.take(ticket)
        self._context.cancel_timer("listen")
