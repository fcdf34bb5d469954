"""One auth session as its actor holds it."""

from sexton_actors.held.record import Held
from sexton_actors.refusal import Refusal
from sexton_actors.terms import RECORD_FRESH_MS
from sexton_actors.world import World
from sexton_engine import Context
from sexton_storage.records.auth_sessions import AuthSession


class HeldSession(Held[AuthSession]):
    """Terminal and browser may reach different nodes, so it is never older than a second."""

    __slots__ = ()

    subject = "The session"

    def __init__(self, context: Context, world: World) -> None:
        super().__init__(context, world, fresh_ms=RECORD_FRESH_MS)

    def unknown(self) -> Refusal:
        return Refusal("UZ-AUTH-005", f"There is no session {self.id}.")

    async def _read(self) -> AuthSession | None:
        return await self.world.storage.auth_sessions.load(self.id)

    def _version(self, record: AuthSession) -> int:
        return record.version

    async def save(self, session: AuthSession) -> None:
        """Raises Conflict when another node was first."""
        await self.world.storage.auth_sessions.save(session)
        self.adopt(session)
