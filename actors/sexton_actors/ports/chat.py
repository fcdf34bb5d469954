"""What a chat platform is asked, and what it can answer."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Protocol
from uuid import UUID

import msgspec


class Notice(msgspec.Struct, frozen=True):
    """A message: plain text for notifications, and the platform's own blocks."""

    text: str
    blocks: tuple[Mapping[str, Any], ...]


class Subject(StrEnum):
    """What a message is about."""

    GATE = "gate"
    TRIAL = "trial"


class Shown(msgspec.Struct, frozen=True):
    """The message is there; ``message_id`` names it in its channel."""

    channel_id: str
    message_id: str


class BotIdentity(msgspec.Struct, frozen=True):
    """The token is good: where it is good, and for whom."""

    team_id: str
    team_name: str
    bot_user_id: str


class Trouble(StrEnum):
    REVOKED = "revoked"
    """The token is not taken any more."""
    BUSY = "busy"
    """Later, after ``wait_s``: too many calls, no answer, or a fault of theirs. It may have been done."""
    REFUSED = "refused"
    """The call was understood and not done: no such channel, the bot is not in it, no such message."""


class ChatFault(msgspec.Struct, frozen=True):
    trouble: Trouble
    detail: str
    wait_s: int = 0
    heard: bool = True
    """The platform has certainly not done it; False when it may have."""


class ChatPlatform(Protocol):
    """One platform; every call is bounded in time and raises nothing."""

    async def post(
        self, token: str, channel_id: str, notice: Notice, subject: Subject, key: UUID
    ) -> Shown | ChatFault:
        """Post what is about this gate or trial.

        The same ``key`` again is the same message, as far as the platform keeps it in mind.
        """
        ...

    async def update(
        self, token: str, channel_id: str, message_id: str, notice: Notice
    ) -> Shown | ChatFault: ...

    async def test(self, token: str) -> BotIdentity | ChatFault:
        """Ask whether the token is good."""
        ...

    async def revoke(self, token: str) -> None:
        """Give the token back; nobody minds when that fails."""
        ...
