"""What a workspace's chat knows between two turns, and the token of its bot."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import structlog

from sexton_actors.addresses import uuid_key
from sexton_actors.ports.chat import ChatFault
from sexton_actors.protocol.chat import Work
from sexton_actors.world import World
from sexton_engine import Context

TOKEN_NAME = "chat/slack"  # noqa: S105  the credential's name; with a slash no person can give, read or lend it

log = structlog.get_logger()


class ChatState:
    """When the platform may be asked again; all else is read at each turn."""

    __slots__ = ("context", "not_before", "world")

    def __init__(self, context: Context, world: World) -> None:
        self.context = context
        self.world = world
        self.not_before = 0
        """Unix ms; the platform has asked to be left alone until then."""

    def __repr__(self) -> str:
        return f"<ChatState {self.context.key} not before {self.not_before}>"

    @property
    def id(self) -> UUID:
        return uuid_key(self.context)

    def work_in(self, seconds: float) -> None:
        """Begin a turn then, in place of the one that was set before."""
        self.context.set_timer("work", seconds, Work())

    async def token(self) -> str | None:
        """The bot's token, decrypted; None where no token is stored."""
        data: Mapping[str, Any] | None = await self.world.secrets.open(self.id, TOKEN_NAME)
        token = None if data is None else data.get("bot_token")
        return token if isinstance(token, str) else None

    async def note_revoked(self, fault: ChatFault) -> None:
        """The platform takes the token no more: the install waits for a person to renew it."""
        log.warning("chat_token_refused", workspace_id=str(self.id), detail=fault.detail)
        await self.world.storage.chats.revoke(self.id, self.world.now_ms())
