"""The hub: rings the readers of an agent's stream when there is more to read."""

from typing import Any, assert_never
from uuid import UUID

from sexton_actors.hub import messages as m
from sexton_actors.terms import MORE_INTERVAL_S, RESCAN_INTERVAL_S
from sexton_actors.world import World
from sexton_engine import DEFERRED, Actor, Context, MailboxSpec, ReplyPort
from sexton_storage.stores import StorageUnavailable

READERS_MAX = 50_000
"""Readers that wait on one node; each has a timer, of which an actor may have 65,536."""

Message = m.FramesWritten | m.AgentGone | m.AwaitFrames | m.AwaitOver | m.Look


class Hub(Actor):
    """Holds no frames: readers read the store, and this says when.

    One look a second finds the frames of other nodes. A reader too many is answered at once.
    """

    kind = "hub"
    mailbox = MailboxSpec(capacity=65_536)
    transparent = (StorageUnavailable,)

    def __init__(self, context: Context, world: World) -> None:
        super().__init__(context)
        self._world = world
        self._heads: dict[UUID, int] = {}
        self._readers: dict[UUID, dict[int, tuple[int, ReplyPort]]] = {}
        self._waiting = 0
        self._tickets = 0
        self._looking = False

    def on_start(self) -> None:
        """Begin the rounds."""
        self.context.set_timer("look", RESCAN_INTERVAL_S, m.Look())

    def on_receive(self, message: Message) -> Any:
        """Dispatch."""
        match message:
            case m.FramesWritten(heads=heads):
                for zombie_id, head in heads:
                    self._ring(zombie_id, head)
            case m.AgentGone(zombie_id=zombie_id):
                self._dismiss(zombie_id)
            case m.AwaitFrames():
                return self._await(message)
            case m.AwaitOver(zombie_id=zombie_id, ticket=ticket):
                self._answer(zombie_id, ticket)
            case m.Look():
                self._look()
            case _:
                assert_never(message)
        return None

    def _ring(self, zombie_id: UUID, head: int) -> None:
        readers = self._readers.get(zombie_id)
        if readers is None:
            return
        self._heads[zombie_id] = head = max(head, self._heads[zombie_id])
        for ticket, (after, _) in tuple(readers.items()):
            if after < head:
                self._answer(zombie_id, ticket)

    def _await(self, message: m.AwaitFrames) -> Any:
        zombie_id, after = message.zombie_id, message.after
        head = self._heads.get(zombie_id, 0)
        if head > after or message.wait_s <= 0 or self._waiting >= READERS_MAX:
            return max(head, after)
        if zombie_id not in self._readers:
            # The first reader: what was written since it read rang for nobody, so the database is asked at
            # once.
            self._readers[zombie_id], self._heads[zombie_id] = {}, 0
            self.context.set_timer("look", 0, m.Look())
        self._tickets += 1
        self._waiting += 1
        self._readers[zombie_id][self._tickets] = (after, self.context.defer())
        self.context.set_timer(self._tickets, message.wait_s, m.AwaitOver(zombie_id, self._tickets))
        return DEFERRED

    def _answer(self, zombie_id: UUID, ticket: int) -> None:
        readers = self._readers.get(zombie_id, {})
        reader = readers.pop(ticket, None)
        if reader is None:
            return
        self._waiting -= 1
        self.context.cancel_timer(ticket)
        after, port = reader
        port.set(max(after, self._heads[zombie_id]))
        if not readers:
            del self._readers[zombie_id], self._heads[zombie_id]

    def _dismiss(self, zombie_id: UUID) -> None:
        self._heads.pop(zombie_id, None)
        for ticket, (_, port) in self._readers.pop(zombie_id, {}).items():
            self._waiting -= 1
            self.context.cancel_timer(ticket)
            port.set(m.GONE)

    # --- the database's view --------------------------------------------------------------------------------

    def _look(self) -> None:
        # Set first: an outage must not end the rounds. A look that is under way may be too early for a new
        # reader.
        self.context.set_timer("look", MORE_INTERVAL_S if self._looking else RESCAN_INTERVAL_S, m.Look())
        if self._looking or not self._readers:
            return
        # Beside the mailbox: while the database is slow, readers are still rung.
        self._looking = True
        self.context.start_task(self._read_heads, tuple(self._readers))

    async def _read_heads(self, zombie_ids: tuple[UUID, ...]) -> None:
        try:
            heads = await self._world.storage.frames.heads(zombie_ids)
        except StorageUnavailable:
            return
        finally:
            self._looking = False
        self.context.tell("hub", "", m.FramesWritten(tuple(heads.items())))
        for zombie_id in zombie_ids:
            # Deleted by another node, or before its reader came.
            if zombie_id not in heads:
                self.context.tell("hub", "", m.AgentGone(zombie_id))
