"""Holds one agent's queue: says when it has work, and gives the oldest out under a lease."""

from typing import Any

from sexton_actors.protocol import queue as m
from sexton_actors.queue import cancellation, claims, readiness
from sexton_actors.queue.state import QueueState
from sexton_actors.world import World
from sexton_engine import Actor, Context, MailboxSpec
from sexton_storage.errors import StorageUnavailable

Message = readiness.News | m.Claim | m.SettleClaim | m.Cancel | m.CancelMany


class QueueActor(Actor):
    """One agent's queue. It serialises what becomes of its events while nobody holds them.

    What it remembers only saves questions: the claim itself is conditional in the database, and the
    dispatcher looks there each second, so a wrong memory costs a moment and never an event.
    """

    kind = "queue"
    mailbox = MailboxSpec(capacity=1024)
    transparent = (StorageUnavailable,)

    def __init__(self, context: Context, world: World) -> None:
        super().__init__(context)
        self._queue = QueueState(context, world)

    async def on_receive(self, message: Message) -> Any:
        """Dispatch."""
        match message:
            case m.Claim():
                return await claims.claim(self._queue, message)
            case m.SettleClaim():
                await claims.settle(self._queue, message)
            case m.Cancel():
                return await cancellation.cancel(self._queue, message)
            case m.CancelMany():
                return await cancellation.cancel_many(self._queue, message)
            case _:
                await readiness.hear(self._queue, message)
        return None
