"""The chat's rounds: finds what no news has reached, and wakes who shows it."""

from collections.abc import Sequence

import msgspec

from sexton_actors.protocol.chat import Look
from sexton_actors.rounds import Round, RoundsActor
from sexton_actors.terms import LOOK_EVERY_S
from sexton_engine import Message

WORKSPACES_A_ROUND = 1_000


class LookForWork(msgspec.Struct, Message[None], frozen=True):
    """Ask the database which workspaces have something to be shown or closed."""


class ChatRounds(RoundsActor):
    """Runs on every node: each thing is claimed by one row, whoever comes first."""

    kind = "chat_rounds"

    def rounds(self) -> Sequence[Round]:
        """None where there is no platform to show anything on."""
        return () if self._world.chat is None else (Round(LookForWork(), LOOK_EVERY_S, self._look),)

    async def _look(self) -> None:
        waiting = await self._world.storage.chats.waiting(self._world.now_ms(), limit=WORKSPACES_A_ROUND)
        for workspace_id in waiting:
            self.context.tell("chat", workspace_id, Look())
