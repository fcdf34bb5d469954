"""Holds one auth session: decides, saves, and only then answers."""

from typing import Any

from sexton_actors.addresses import uuid_key
from sexton_actors.auth_session import transitions
from sexton_actors.protocol import auth_session as m
from sexton_actors.refusal import Refusal
from sexton_actors.terms import MAX_RACES, RECORD_FRESH_MS
from sexton_actors.world import World
from sexton_engine import Actor, Context, MailboxSpec
from sexton_storage.errors import Conflict, StorageUnavailable
from sexton_storage.records.auth_sessions import AuthSession

MAX_OPEN = 1_024
"""Sessions that may be open at once; one more is turned away."""
TRY_AGAIN_S = 30
"""Sessions end within minutes, so there is room again soon."""


class AuthSessionActor(Actor):
    """One session. The only writer of its row on this node; it needs no timer, for expiry is not written."""

    kind = "session"
    mailbox = MailboxSpec(capacity=64)
    transparent = (StorageUnavailable,)

    def __init__(self, context: Context, world: World) -> None:
        super().__init__(context)
        self._world = world
        self._session: AuthSession | None = None
        self._loaded_at = 0

    async def on_receive(self, message: m.Open | m.Ask) -> Any:
        """Dispatch; a record that another node may have changed is read again."""
        if isinstance(message, m.Open):
            return await self._open(message)
        for _ in range(MAX_RACES):
            session = await self._fresh()
            if session is None:
                return Refusal("UZ-AUTH-005", f"There is no session {self.context.key}.")
            decision = transitions.decide(session, message, self._world.now_ms())
            if decision.session is None or await self._save(decision.session):
                return decision.reply
        return Refusal("UZ-API-003", "The session changes faster than it can be read.", retry_after_s=1)

    async def _open(self, message: m.Open) -> AuthSession | Refusal:
        session = transitions.opened(uuid_key(self.context), message, self._world.now_ms())
        if not await self._world.storage.auth_sessions.create(session, limit=MAX_OPEN):
            return Refusal("UZ-AUTH-008", f"{MAX_OPEN} sessions are open.", retry_after_s=TRY_AGAIN_S)
        self._adopt(session)
        return session

    async def _fresh(self) -> AuthSession | None:
        stale = self._world.now_ms() - self._loaded_at >= RECORD_FRESH_MS
        if self._session is None or stale:
            found = await self._world.storage.auth_sessions.load(uuid_key(self.context))
            self._session = found
            if found is not None:
                self._adopt(found)
        return self._session

    async def _save(self, session: AuthSession) -> bool:
        """False when another node was first; it is then read again."""
        try:
            await self._world.storage.auth_sessions.save(session)
        except Conflict:
            self._session = None
            return False
        self._adopt(session)
        return True

    def _adopt(self, session: AuthSession) -> None:
        self._session = session
        self._loaded_at = self._world.now_ms()
