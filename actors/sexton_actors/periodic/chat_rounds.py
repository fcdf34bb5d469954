"""The chat's rounds: finds what no news has reached, and wakes who shows it."""

import msgspec

from sexton_actors.protocol.chat import Look
from sexton_actors.terms import LOOK_EVERY_S
from sexton_actors.world import World
from sexton_engine import Actor, Context, MailboxSpec, Message
from sexton_storage.errors import StorageUnavailable

WORKSPACES_A_ROUND = 1_000


class Round(msgspec.Struct, Message[None], frozen=True):
    """Ask the database which workspaces have something to be shown or closed."""


class ChatRounds(Actor):
    """Runs on every node: each thing is claimed by one row, whoever comes first."""

    kind = "chat_rounds"
    mailbox = MailboxSpec(capacity=16)
    transparent = (StorageUnavailable,)

    def __init__(self, context: Context, world: World) -> None:
        super().__init__(context)
        self._world = world

    def on_start(self) -> None:
        """Begin at once, where there is a platform at all."""
        if self._world.chat is not None:
            self.context.set_timer("round", 0, Round())

    async def on_receive(self, message: Round) -> None:
        """Wake the chats that have work."""
        # Set first: an outage must not end the rounds.
        self.context.set_timer("round", LOOK_EVERY_S, message)
        waiting = await self._world.storage.chats.waiting(self._world.now_ms(), limit=WORKSPACES_A_ROUND)
        for workspace_id in waiting:
            self.context.tell("chat", workspace_id, Look())
