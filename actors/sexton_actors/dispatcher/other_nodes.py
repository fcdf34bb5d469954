"""What a dispatcher tells the other nodes of ready agents, and makes of what they tell."""

from collections.abc import Callable, Sequence
from typing import Final, assert_never
from uuid import UUID

from sexton_actors.dispatcher.matching import Matching
from sexton_actors.protocol import dispatcher as m
from sexton_actors.protocol.queue import NotKnownReady
from sexton_actors.world import World
from sexton_engine import Context
from sexton_storage.errors import StorageUnavailable
from sexton_storage.records.events import ReadyAgent
from sexton_storage.signals import Signal, Topic

LOOKED_UP_MAX: Final = 32
"""Agents that are looked up one by one; of more, all that is ready is looked at."""

Message = m.StillReady | m.ReadyElsewhere | m.LookedUp


class OtherNodes:
    """An agent that finds no runner here is told to the others.

    Of those that they tell of, a node looks up in the database which are ready, once a runner waits, and
    tries to claim them. Several nodes may, and one gets it.
    """

    def __init__(
        self, context: Context, world: World, matching: Matching, look_now: Callable[[], None]
    ) -> None:
        self._context = context
        self._world = world
        self._matching = matching
        self._look_now = look_now
        self._wanted: set[UUID] = set()
        self._are_many = False
        self._looking_up = False

    def __repr__(self) -> str:
        return f"<OtherNodes {len(self._wanted)} to look up>"

    def receive(self, message: Message) -> None:
        """Dispatch."""
        match message:
            case m.StillReady(zombie_id=zombie_id):
                self._still_ready(zombie_id)
            case m.ReadyElsewhere(zombie_ids=zombie_ids):
                self._ready(zombie_ids)
            case m.LookedUp(agents=agents):
                self._looked_up(agents)
            case _:
                assert_never(message)

    def tell(self, zombie_id: UUID) -> None:
        """Let other nodes know, if nobody who waits here can have it."""
        if zombie_id in self._matching.ready:
            self._world.storage.signals.send(Signal(Topic.READY, zombie_id))

    def _still_ready(self, zombie_id: UUID) -> None:
        if self._matching.knows(zombie_id):
            self.tell(zombie_id)
        else:
            self._context.tell("queue", zombie_id, NotKnownReady())

    def _ready(self, zombie_ids: Sequence[UUID]) -> None:
        self._wanted.update(zombie_ids)
        if len(self._wanted) > LOOKED_UP_MAX:
            self._wanted.clear()
            self._are_many = True
        self.somebody_waits()

    def somebody_waits(self) -> None:
        """Look up what others told of, if somebody does wait."""
        if not self._matching.offers:
            return
        if self._are_many:
            self._are_many = False
            self._look_now()
        elif self._wanted and not self._looking_up:
            self._look_up()

    def all_is_looked_at(self) -> None:
        """A walk through all that is ready begins: what was told before that need not be looked up."""
        self._wanted.clear()
        self._are_many = False

    def _look_up(self) -> None:
        # Beside the mailbox: while the database is slow, offers still end in time.
        self._looking_up = True
        wanted, self._wanted = tuple(self._wanted), set()
        self._context.start_task(self._read, wanted)

    async def _read(self, zombie_ids: Sequence[UUID]) -> None:
        found: list[ReadyAgent] = []
        try:
            for zombie_id in zombie_ids:
                agent = await self._world.storage.events.ready_agent(zombie_id)
                found += () if agent is None else (agent,)
        except StorageUnavailable:
            return
        finally:
            self._looking_up = False
        self._context.tell("dispatcher", "", m.LookedUp(tuple(found)))

    def _looked_up(self, agents: Sequence[ReadyAgent]) -> None:
        for agent in agents:
            self._matching.found(agent)
        self.somebody_waits()
