"""The hub: reads each followed stream once, for all of its readers on this node."""

from collections import OrderedDict
from typing import Any, assert_never
from uuid import UUID

from sexton_actors.hub.channel import READ_FRAMES, Channel
from sexton_actors.protocol import hub as m
from sexton_actors.terms import MORE_INTERVAL_S
from sexton_actors.world import World
from sexton_engine import DEFERRED, Actor, Context, MailboxSpec
from sexton_storage.errors import StorageUnavailable

KEPT_BYTES = 16 * 1024 * 1024
"""What the channels keep together; beyond it, those that had frames longest ago keep none."""
FORGETS = 5
"""Looks after an erasure at which nothing that is held is trusted: a read takes less time than these."""
READERS_MAX = 50_000
"""Readers that wait on one node; each has a timer, of which an actor may have 65,536."""

Message = m.FramesWritten | m.FramesRead | m.AgentGone | m.AwaitFrames | m.AwaitOver | m.Look


class Hub(Actor):
    """Keeps the newest frames of the agents that somebody follows, and hands them to all who wait.

    A thousand readers of one agent cost the database what one does. Other nodes tell of their frames,
    and one look a second finds what they could not tell. A reader too many is answered at once.
    """

    kind = "hub"
    mailbox = MailboxSpec(capacity=65_536)
    transparent = (StorageUnavailable,)

    def __init__(self, context: Context, world: World) -> None:
        super().__init__(context)
        self._world = world
        self._channels: dict[UUID, Channel] = {}
        self._keeping: OrderedDict[UUID, Channel] = OrderedDict()
        """Those that keep frames, the one that was given some last at the end."""
        self._kept_bytes = 0
        self._waiting = 0
        self._tickets = 0
        self._looking = False
        self._erasures, self._forgets = 0, 0
        """How much was erased, as far as this node knows, and how many looks forget what is held."""

    def on_start(self) -> None:
        """Begin the rounds."""
        self.context.set_timer("look", self._world.look_every_s, m.Look())

    def on_receive(self, message: Message) -> Any:
        """Dispatch."""
        match message:
            case m.FramesWritten(heads=heads):
                for zombie_id, head in heads:
                    self._written(zombie_id, head)
            case m.FramesRead(zombie_id=zombie_id):
                self._have_read(message)
            case m.AgentGone(zombie_id=zombie_id):
                self._dismiss(zombie_id)
            case m.AwaitFrames():
                return self._await(message)
            case m.AwaitOver():
                self._give_up(message)
            case m.Look():
                self._look()
            case _:
                assert_never(message)
        return None

    # --- readers --------------------------------------------------------------------------------------------

    def _await(self, message: m.AwaitFrames) -> Any:
        zombie_id, after = message.zombie_id, message.after
        channel = self._channels.get(zombie_id)
        if channel is None:
            # The first reader: what was written since it read rang for nobody, so the store is read at once.
            channel = self._channels[zombie_id] = Channel(after)
            self._read(zombie_id, channel)
        news = channel.news(after)
        if news is not None:
            return news
        if message.wait_s <= 0 or self._waiting >= READERS_MAX:
            return m.News(after)
        self._tickets += 1
        self._waiting += 1
        channel.wait(self._tickets, after, self.context.defer())
        self.context.set_timer(self._tickets, message.wait_s, m.AwaitOver(zombie_id, self._tickets))
        if after > channel.upto and not channel.is_reading:
            # One that is ahead has read what is still to be read here.
            self._read(zombie_id, channel)
        return DEFERRED

    def _give_up(self, message: m.AwaitOver) -> None:
        channel = self._channels.get(message.zombie_id)
        reader = None if channel is None else channel.leave(message.ticket)
        if reader is not None:
            self._waiting -= 1
            self.context.cancel_timer(message.ticket)
            reader[1].set(m.News(reader[0]))

    def _dismiss(self, zombie_id: UUID) -> None:
        channel = self._drop(zombie_id)
        for ticket, (_, port) in () if channel is None else channel.leave_all():
            self._waiting -= 1
            self.context.cancel_timer(ticket)
            port.set(m.News(m.GONE))

    # --- frames ---------------------------------------------------------------------------------------------

    def _written(self, zombie_id: UUID, head: int) -> None:
        channel = self._channels.get(zombie_id)
        if channel is not None:
            channel.head = max(channel.head, head)
            if channel.wants_reading:
                self._read(zombie_id, channel)

    def _read(self, zombie_id: UUID, channel: Channel) -> None:
        # Beside the mailbox: while the database is slow, other streams go on.
        channel.is_reading = True
        self.context.start_task(self._read_frames, zombie_id, channel)

    async def _read_frames(self, zombie_id: UUID, channel: Channel) -> None:
        after, expected = channel.upto, channel.head
        try:
            frames = await self._world.storage.frames.read(zombie_id, after=after, limit=READ_FRAMES)
        except StorageUnavailable:
            # The next look finds it behind, and reads again.
            channel.is_reading = False
            return
        self.context.tell("hub", "", m.FramesRead(zombie_id, after, expected, tuple(frames)))

    def _have_read(self, message: m.FramesRead) -> None:
        channel = self._channels.get(message.zombie_id)
        if channel is None or channel.upto != message.after:
            return
        self._kept_bytes -= channel.kept_bytes
        channel.add(message.frames, message.expected)
        self._kept_bytes += channel.kept_bytes
        self._keeping[message.zombie_id] = channel
        self._keeping.move_to_end(message.zombie_id)
        for ticket, port, news in channel.ready():
            self._waiting -= 1
            self.context.cancel_timer(ticket)
            port.set(news)
        # After its readers have been told: what was read for them is theirs, whoever else keeps nothing.
        self._bound()
        if channel.wants_reading or len(message.frames) == READ_FRAMES:
            self._read(message.zombie_id, channel)

    def _bound(self) -> None:
        while self._kept_bytes > KEPT_BYTES:
            _, channel = self._keeping.popitem(last=False)
            self._kept_bytes -= channel.kept_bytes
            channel.forget()

    def _drop(self, zombie_id: UUID) -> Channel | None:
        channel = self._channels.pop(zombie_id, None)
        if channel is not None and self._keeping.pop(zombie_id, None) is not None:
            self._kept_bytes -= channel.kept_bytes
        return channel

    def _forget_erased(self, erasures: int) -> None:
        """Hold nothing that was read before a page of an erasure: whoever asks for it reads the store."""
        if erasures != self._erasures:
            # A read that was under way may still bring what was there before.
            self._erasures, self._forgets = erasures, FORGETS
        if self._forgets:
            self._forgets -= 1
            for channel in self._keeping.values():
                channel.forget()
            self._keeping.clear()
            self._kept_bytes = 0

    # --- the database's view --------------------------------------------------------------------------------

    def _look(self) -> None:
        # Set first: an outage must not end the rounds. A look that is under way may be too early for a new
        # reader.
        next_s = MORE_INTERVAL_S if self._looking else self._world.look_every_s
        self.context.set_timer("look", next_s, m.Look())
        if self._looking:
            return
        for zombie_id in [key for key, channel in self._channels.items() if channel.is_over()]:
            self._drop(zombie_id)
        if self._channels:
            self._looking = True
            self.context.start_task(self._read_heads, tuple(self._channels))

    async def _read_heads(self, zombie_ids: tuple[UUID, ...]) -> None:
        storage = self._world.storage
        try:
            heads = await storage.frames.heads(zombie_ids)
            erasures = await storage.erasures.newest_change()
        except StorageUnavailable:
            return
        finally:
            self._looking = False
        self._forget_erased(erasures)
        self.context.tell("hub", "", m.FramesWritten(tuple(heads.items())))
        for zombie_id in zombie_ids:
            # Deleted by another node, or before its reader came.
            if zombie_id not in heads:
                self.context.tell("hub", "", m.AgentGone(zombie_id))
