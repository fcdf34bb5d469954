"""The hub: rings the readers of an agent's stream when there is more to read."""

from typing import Any, assert_never
from uuid import UUID

from sexton_engine import DEFERRED, Actor, Context, MailboxSpec, ReplyPort
from sexton_storage.stores import StorageUnavailable

from sexton_actors.hub import messages as m
from sexton_actors.terms import RESCAN_INTERVAL_S
from sexton_actors.world import World

Message = m.FramesWritten | m.AwaitFrames | m.AwaitOver | m.LookElsewhere


class Hub(Actor):
    """Holds no frames: readers read the store, and this says when. One look a second finds other nodes' frames."""

    kind = "hub"
    mailbox = MailboxSpec(capacity=65_536)
    transparent = (StorageUnavailable,)

    def __init__(self, context: Context, world: World) -> None:
        super().__init__(context)
        self._world = world
        self._heads: dict[UUID, int] = {}
        self._readers: dict[UUID, dict[int, tuple[int, ReplyPort[int]]]] = {}
        self._tickets = 0

    async def on_start(self) -> None:
        """Begin the rounds."""
        self.context.set_timer("look", RESCAN_INTERVAL_S, m.LookElsewhere())

    async def on_receive(self, message: Message) -> Any:
        """Dispatch."""
        match message:
            case m.FramesWritten(heads=heads):
                for zombie_id, head in heads:
                    self._ring(zombie_id, head)
            case m.AwaitFrames():
                return await self._await(message)
            case m.AwaitOver(zombie_id=zombie_id, ticket=ticket):
                self._answer(zombie_id, ticket)
            case m.LookElsewhere():
                await self._look()
            case _:
                assert_never(message)
        return None

    def _ring(self, zombie_id: UUID, head: int) -> None:
        if zombie_id not in self._readers:
            return
        self._heads[zombie_id] = max(head, self._heads.get(zombie_id, 0))
        for ticket, (after, _) in tuple(self._readers[zombie_id].items()):
            if after < head:
                self._answer(zombie_id, ticket)

    async def _await(self, message: m.AwaitFrames) -> Any:
        zombie_id = message.zombie_id
        if zombie_id not in self._readers:
            # The first reader: what was written before it came rang for nobody.
            heads = await self._world.storage.frames.heads([zombie_id])
            self._heads[zombie_id] = heads.get(zombie_id, 0)
        if self._heads[zombie_id] > message.after or message.wait_s <= 0:
            head = self._heads[zombie_id]
            self._drop_if_unread(zombie_id)
            return head
        self._tickets += 1
        readers = self._readers.setdefault(zombie_id, {})
        readers[self._tickets] = (message.after, self.context.defer())
        self.context.set_timer(self._tickets, message.wait_s, m.AwaitOver(zombie_id, self._tickets))
        return DEFERRED

    def _answer(self, zombie_id: UUID, ticket: int) -> None:
        entry = self._readers.get(zombie_id, {}).pop(ticket, None)
        if entry is None:
            return
        self.context.cancel_timer(ticket)
        entry[1].set(self._heads[zombie_id])
        self._drop_if_unread(zombie_id)

    def _drop_if_unread(self, zombie_id: UUID) -> None:
        if not self._readers.get(zombie_id):
            self._readers.pop(zombie_id, None)
            self._heads.pop(zombie_id, None)

    async def _look(self) -> None:
        self.context.set_timer("look", RESCAN_INTERVAL_S, m.LookElsewhere())
        if self._readers:
            heads = await self._world.storage.frames.heads(tuple(self._readers))
            for zombie_id, head in heads.items():
                self._ring(zombie_id, head)
