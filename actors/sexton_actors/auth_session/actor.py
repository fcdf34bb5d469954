"""Holds one auth session: decides, saves, and only then answers."""

from typing import Any, Final

from sexton_actors.auth_session import transitions
from sexton_actors.auth_session.record import HeldSession
from sexton_actors.protocol import auth_session as m
from sexton_actors.protocol.attributed import Attributed
from sexton_actors.refusal import Refusal
from sexton_actors.world import World
from sexton_engine import Actor, Context, MailboxSpec
from sexton_storage.attribution import attributed
from sexton_storage.errors import StorageUnavailable
from sexton_storage.records.auth_sessions import AuthSession, SessionsFull

FULL: Final = {
    SessionsFull.ALL: "As many sessions are open as there may be.",
    SessionsFull.ADDRESS: "As many sessions of your address are open as there is room for.",
}
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
                with attributed(message.audit if isinstance(message, Attributed) else None):
                    return await self._ask(message)

    async def _open(self, message: m.Open) -> AuthSession | Refusal:
        world = self._held.world
        session = transitions.opened(self._held.id, message, world.now_ms())
        lacks = await world.storage.auth_sessions.create(session, world.device_logins)
        if lacks is None:
            return self._held.adopt(session)
        return Refusal("UZ-AUTH-008", FULL[lacks], retry_after_s=TRY_AGAIN_S)

    async def _ask(self, message: m.Ask) -> Any:
        async def attempt(session: AuthSession, now: int) -> Any:
            decision = transitions.decide(session, message, now)
            if decision.session is not None:
                await self._held.save(decision.session)
            return decision.reply

        return await self._held.until_kept(attempt)
