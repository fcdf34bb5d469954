"""Holds one auth session: decides, saves, and only then answers."""

from typing import Any

from sexton_actors.auth_session import transitions
from sexton_actors.auth_session.record import HeldSession
from sexton_actors.protocol import auth_session as m
from sexton_actors.refusal import Refusal
from sexton_actors.world import World
from sexton_engine import Actor, Context, MailboxSpec
from sexton_storage.errors import StorageUnavailable
from sexton_storage.records.auth_sessions import AuthSession

MAX_OPEN = 8_192
"""Sessions that may be open at once; one more is turned away.

One address may begin ten a minute, and so have fifty open: a hundred and sixty addresses to fill it all.
"""
TRY_AGAIN_S = 30
"""Sessions end within minutes, so there is room again soon."""


class AuthSessionActor(Actor):
    """One session. The only writer of its row on this node; it needs no timer, for expiry is not written."""

    kind = "session"
    mailbox = MailboxSpec(capacity=64)
    transparent = (StorageUnavailable,)

    def __init__(self, context: Context, world: World) -> None:
        super().__init__(context)
        self._held = HeldSession(context, world)

    async def on_receive(self, message: m.Open | m.Ask) -> Any:
        """Dispatch."""
        match message:
            case m.Open():
                return await self._open(message)
            case _:
                return await self._ask(message)

    async def _open(self, message: m.Open) -> AuthSession | Refusal:
        world = self._held.world
        session = transitions.opened(self._held.id, message, world.now_ms())
        if not await world.storage.auth_sessions.create(session, limit=MAX_OPEN):
            return Refusal("UZ-AUTH-008", f"{MAX_OPEN} sessions are open.", retry_after_s=TRY_AGAIN_S)
        return self._held.adopt(session)

    async def _ask(self, message: m.Ask) -> Any:
        async def attempt(session: AuthSession, now: int) -> Any:
            decision = transitions.decide(session, message, now)
            if decision.session is not None:
                await self._held.save(decision.session)
            return decision.reply

        return await self._held.until_kept(attempt)
