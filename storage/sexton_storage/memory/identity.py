"""Who is signing in, in memory."""

from collections import Counter
from collections.abc import Sequence
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.decisions import device_logins
from sexton_storage.errors import Conflict, NameTaken
from sexton_storage.memory.base import MemoryStore
from sexton_storage.memory.tables import Tables
from sexton_storage.records.auth_sessions import (
    OPEN_SESSION,
    AuthSession,
    AuthSessionStatus,
    SessionBounds,
    SessionsFull,
)
from sexton_storage.records.sign_ins import BrowserSession, SignInAttempt, SignInLink
from sexton_storage.terms import AUTH_SESSION_KEEP_MS


class MemoryAuthSessions(MemoryStore):
    async def create(self, session: AuthSession, bounds: SessionBounds) -> SessionsFull | None:
        await self._round_trip()
        there = self._open()
        here = sum(session.origin is not None and s.origin == session.origin for s in there)
        lacks = device_logins.full(len(there), here, bounds)
        if session.origin is not None and device_logins.may_displace(lacks, here):
            lacks = self._displace(there, session.origin)
        if lacks is None:
            self._tables.auth_sessions[session.id] = session
        return lacks

    def _displace(self, there: Sequence[AuthSession], origin: bytes) -> SessionsFull | None:
        networks = [
            (s.origin[: device_logins.NETWORK], s)
            for s in there
            if s.origin is not None and s.status is AuthSessionStatus.PENDING
        ]
        given = device_logins.giving_way(Counter(network for network, _ in networks), origin)
        if given is None:
            return SessionsFull.ALL
        oldest = min((s for network, s in networks if network == given), key=lambda s: (s.created_at, s.id))
        changes = {"status": AuthSessionStatus.ABORTED, "version": oldest.version + 1}
        self._tables.auth_sessions[oldest.id] = replace(oldest, **changes)
        return None

    async def load(self, session_id: UUID) -> AuthSession | None:
        await self._round_trip()
        return self._tables.auth_sessions.get(session_id)

    async def save(self, session: AuthSession) -> None:
        await self._round_trip()
        self._faults.may_conflict()
        old = self._tables.auth_sessions.get(session.id)
        if old is None or old.version != session.version - 1:
            raise Conflict(f"auth session {session.id} is not at version {session.version - 1}")
        self._tables.auth_sessions[session.id] = session

    async def list_open(self, *, approved_by: str | None, limit: int) -> Sequence[UUID]:
        await self._round_trip()
        mine = [s for s in self._open() if approved_by is None or s.approved_by == approved_by]
        mine.sort(key=lambda s: (s.created_at, s.id))
        return [s.id for s in mine[:limit]]

    def _open(self) -> list[AuthSession]:
        now = self._tables.now()
        return [
            s for s in self._tables.auth_sessions.values() if s.status in OPEN_SESSION and s.expires_at > now
        ]


class MemorySignIns(MemoryStore):
    async def offer(self, link: SignInLink) -> None:
        await self._round_trip()
        self._tables.sign_in_links.setdefault(link.token_hash, link)

    async def find_link(self, token_hash: bytes) -> SignInLink | None:
        await self._round_trip()
        return self._tables.sign_in_links.get(token_hash)

    async def withdraw(self, user_id: UUID) -> None:
        await self._round_trip()
        links = self._tables.sign_in_links
        for key in [k for k, link in links.items() if link.user_id == user_id and link.used_at is None]:
            del links[key]

    async def sign_in(self, session: BrowserSession, *, link_hash: bytes | None) -> bool:
        await self._round_trip()
        if link_hash is not None and not self._use_up(link_hash, session.user_id):
            return False
        if session.id in self._tables.browser_sessions:
            raise NameTaken(str(session.id))
        self._tables.browser_sessions[session.id] = session
        return True

    def _use_up(self, link_hash: bytes, user_id: UUID) -> bool:
        link, now = self._tables.sign_in_links.get(link_hash), self._tables.now()
        if link is None or link.user_id != user_id or link.used_at is not None or link.expires_at <= now:
            return False
        self._tables.sign_in_links[link_hash] = replace(link, used_at=now)
        return True

    async def find_session(self, token_hash: bytes) -> BrowserSession | None:
        await self._round_trip()
        sessions = self._tables.browser_sessions.values()
        return next((s for s in sessions if s.token_hash == token_hash), None)

    async def load_session(self, session_id: UUID) -> BrowserSession | None:
        await self._round_trip()
        return self._tables.browser_sessions.get(session_id)

    async def list_sessions(self, user_id: UUID, *, limit: int) -> Sequence[BrowserSession]:
        await self._round_trip()
        return self._newest({user_id}, limit)

    async def list_tenant(
        self, tenant_id: UUID, *, user_id: UUID | None, limit: int
    ) -> Sequence[BrowserSession]:
        await self._round_trip()
        theirs = {
            u.id for u in self._tables.users.values() if u.tenant_id == tenant_id and user_id in {None, u.id}
        }
        return self._newest(theirs, limit)

    def _newest(self, user_ids: set[UUID], limit: int) -> list[BrowserSession]:
        now = self._tables.now()
        mine = [
            s
            for s in self._tables.browser_sessions.values()
            if s.user_id in user_ids and min(s.idle_ends_at, s.ends_at) > now
        ]
        mine.sort(key=lambda s: (s.created_at, s.id), reverse=True)
        return mine[:limit]

    async def touch(self, session_id: UUID, *, seen_at: int, idle_ends_at: int) -> None:
        await self._round_trip()
        old = self._tables.browser_sessions.get(session_id)
        if old is not None:
            self._tables.browser_sessions[session_id] = replace(
                old, seen_at=max(old.seen_at, seen_at), idle_ends_at=max(old.idle_ends_at, idle_ends_at)
            )

    async def sign_out(self, session_id: UUID) -> bool:
        await self._round_trip()
        return self._tables.browser_sessions.pop(session_id, None) is not None

    async def sign_out_all(self, user_id: UUID) -> Sequence[UUID]:
        await self._round_trip()
        ended = [s.id for s in self._tables.browser_sessions.values() if s.user_id == user_id]
        for session_id in ended:
            del self._tables.browser_sessions[session_id]
        return ended

    async def begin(self, attempt: SignInAttempt) -> None:
        await self._round_trip()
        self._tables.sign_in_attempts[attempt.state_hash] = attempt

    async def take(self, state_hash: bytes) -> SignInAttempt | None:
        await self._round_trip()
        return self._tables.sign_in_attempts.pop(state_hash, None)


def sweep_identity(tables: Tables, now: int) -> int:
    """Delete sessions that nobody asks about any more, and what can sign nobody in; how many rows."""
    before = _rows(tables)
    tables.auth_sessions.keep_if(lambda row: row.expires_at > now - AUTH_SESSION_KEEP_MS)
    tables.sign_in_links.keep_if(lambda row: row.expires_at > now)
    tables.browser_sessions.keep_if(lambda row: min(row.idle_ends_at, row.ends_at) > now)
    tables.sign_in_attempts = {
        key: row for key, row in tables.sign_in_attempts.items() if row.expires_at > now
    }
    return before - _rows(tables)


def _rows(tables: Tables) -> int:
    kinds = (
        tables.auth_sessions,
        tables.sign_in_links,
        tables.browser_sessions,
        tables.sign_in_attempts,
    )
    return sum(len(rows) for rows in kinds)
