"""Who is signing in, in PostgreSQL."""

from collections.abc import Sequence
from uuid import UUID

from sexton_storage.decisions import device_logins
from sexton_storage.errors import Conflict, NameTaken
from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.sql.rows import Rows
from sexton_storage.postgres.stores.base import PostgresStore
from sexton_storage.records.auth_sessions import OPEN_SESSION, AuthSession, SessionBounds, SessionsFull
from sexton_storage.records.sign_ins import BrowserSession, SignInAttempt, SignInLink
from sexton_storage.terms import AUTH_SESSION_KEEP_MS

AUTH_SESSIONS = Rows(AuthSession)
LINKS = Rows(SignInLink)
BROWSERS = Rows(BrowserSession)
ATTEMPTS = Rows(SignInAttempt)

CREATE_LOCK = 0x5E870B
"""Advisory lock of the transaction that counts the open sessions and adds one."""
_OPEN = (
    f"status IN ({', '.join(repr(str(status)) for status in OPEN_SESSION)}) AND expires_at > sexton_now_ms()"
)
_COUNT_OPEN = f"""
SELECT count(*) AS open_all, count(*) FILTER (WHERE origin = $1::bytea) AS open_here
  FROM auth_sessions WHERE {_OPEN}
"""
_PENDING = "status = 'pending' AND expires_at > sexton_now_ms()"
_NETWORK = f"substring(origin FROM 1 FOR {device_logins.NETWORK})"
_COUNT_PENDING = f"""
SELECT {_NETWORK} AS network, count(*) AS open FROM auth_sessions
 WHERE {_PENDING} AND origin IS NOT NULL GROUP BY 1
"""
_ABORT_OLDEST = f"""
UPDATE auth_sessions SET status = 'aborted', version = version + 1
 WHERE id = (SELECT id FROM auth_sessions WHERE {_PENDING} AND {_NETWORK} = $1
              ORDER BY created_at, id LIMIT 1 FOR UPDATE)
RETURNING id
"""
_LIST_OPEN = f"""
SELECT id FROM auth_sessions WHERE {_OPEN} AND ($1::text IS NULL OR approved_by = $1)
 ORDER BY created_at, id LIMIT $2
"""
_CHANGED = tuple(name for name in AUTH_SESSIONS.names if name != "id")
_MARKS = ", ".join(f"${i}" for i in range(2, len(_CHANGED) + 2))
_VERSION = _CHANGED.index("version") + 2
_SAVE = f"""
UPDATE auth_sessions SET ({", ".join(_CHANGED)}) = ({_MARKS})
 WHERE id = $1 AND version = ${_VERSION} - 1 RETURNING id
"""
SESSION_NAMES = {"browser_sessions_pkey": NameTaken}
_LIST_SESSIONS = f"""
SELECT {BROWSERS.columns()} FROM browser_sessions
 WHERE user_id = $1 AND least(idle_ends_at, ends_at) > sexton_now_ms()
 ORDER BY created_at DESC, id DESC LIMIT $2
"""
_LIST_TENANT = f"""
SELECT {BROWSERS.columns("s")} FROM browser_sessions s JOIN users u ON u.id = s.user_id
 WHERE u.tenant_id = $1 AND ($2::uuid IS NULL OR u.id = $2)
   AND least(s.idle_ends_at, s.ends_at) > sexton_now_ms()
 ORDER BY s.created_at DESC, s.id DESC LIMIT $3
"""
_USE_LINK = """
UPDATE sign_in_links SET used_at = sexton_now_ms()
 WHERE token_hash = $1 AND user_id = $2 AND used_at IS NULL AND expires_at > sexton_now_ms() RETURNING true
"""
_TOUCH = """
UPDATE browser_sessions SET seen_at = greatest(seen_at, $2), idle_ends_at = greatest(idle_ends_at,
    $3) WHERE id = $1
"""
_TAKE = f"DELETE FROM sign_in_attempts WHERE state_hash = $1 RETURNING {ATTEMPTS.columns()}"


class PostgresAuthSessions(PostgresStore):
    async def create(self, session: AuthSession, bounds: SessionBounds) -> SessionsFull | None:
        async def work(connection: Connection) -> SessionsFull | None:
            await connection.execute("SELECT pg_advisory_xact_lock($1)", CREATE_LOCK)
            [row] = await connection.fetch(_COUNT_OPEN, session.origin)
            lacks = device_logins.full(row["open_all"], row["open_here"], bounds)
            if session.origin is not None and device_logins.may_displace(lacks, row["open_here"]):
                rows = await connection.fetch(_COUNT_PENDING)
                pending = {one["network"]: one["open"] for one in rows}
                given = device_logins.giving_way(pending, session.origin)
                if given is not None and await connection.fetchval(_ABORT_OLDEST, given) is not None:
                    lacks = None
            if lacks is None:
                insert = AUTH_SESSIONS.insert("auth_sessions")
                await connection.execute(insert, *AUTH_SESSIONS.values(session))
            return lacks

        return await self._database.change(work)

    async def load(self, session_id: UUID) -> AuthSession | None:
        query = f"SELECT {AUTH_SESSIONS.columns()} FROM auth_sessions WHERE id = $1"
        return AUTH_SESSIONS.maybe(await self._row(query, session_id))

    async def save(self, session: AuthSession) -> None:
        values = dict(zip(AUTH_SESSIONS.names, AUTH_SESSIONS.values(session), strict=True))
        args = (session.id, *(values[name] for name in _CHANGED))
        if await self._database.change(lambda c: c.fetchval(_SAVE, *args)) is None:
            raise Conflict(f"auth session {session.id} is not at version {session.version - 1}")

    async def list_open(self, *, approved_by: str | None, limit: int) -> Sequence[UUID]:
        return [row[0] for row in await self._rows(_LIST_OPEN, approved_by, limit)]


class PostgresSignIns(PostgresStore):
    async def offer(self, link: SignInLink) -> None:
        values, query = LINKS.values(link), f"{LINKS.insert('sign_in_links')} ON CONFLICT DO NOTHING"
        await self._database.change(lambda c: c.execute(query, *values))

    async def find_link(self, token_hash: bytes) -> SignInLink | None:
        query = f"SELECT {LINKS.columns()} FROM sign_in_links WHERE token_hash = $1"
        return LINKS.maybe(await self._row(query, token_hash))

    async def withdraw(self, user_id: UUID) -> None:
        query = "DELETE FROM sign_in_links WHERE user_id = $1 AND used_at IS NULL"
        await self._database.change(lambda c: c.execute(query, user_id))

    async def sign_in(self, session: BrowserSession, *, link_hash: bytes | None) -> bool:
        async def work(connection: Connection) -> bool:
            if link_hash is not None and not await connection.fetchval(_USE_LINK, link_hash, session.user_id):
                return False
            await connection.execute(BROWSERS.insert("browser_sessions"), *BROWSERS.values(session))
            return True

        return await self._database.change(work, SESSION_NAMES)

    async def find_session(self, token_hash: bytes) -> BrowserSession | None:
        query = f"SELECT {BROWSERS.columns()} FROM browser_sessions WHERE token_hash = $1"
        return BROWSERS.maybe(await self._row(query, token_hash))

    async def load_session(self, session_id: UUID) -> BrowserSession | None:
        query = f"SELECT {BROWSERS.columns()} FROM browser_sessions WHERE id = $1"
        return BROWSERS.maybe(await self._row(query, session_id))

    async def list_sessions(self, user_id: UUID, *, limit: int) -> Sequence[BrowserSession]:
        return BROWSERS.many(await self._rows(_LIST_SESSIONS, user_id, limit))

    async def list_tenant(
        self, tenant_id: UUID, *, user_id: UUID | None, limit: int
    ) -> Sequence[BrowserSession]:
        return BROWSERS.many(await self._rows(_LIST_TENANT, tenant_id, user_id, limit))

    async def touch(self, session_id: UUID, *, seen_at: int, idle_ends_at: int) -> None:
        # Moving a time forward twice is moving it once: no transaction with a mark is needed.
        await self._database.read(lambda c: c.execute(_TOUCH, session_id, seen_at, idle_ends_at))

    async def sign_out(self, session_id: UUID) -> bool:
        query = "DELETE FROM browser_sessions WHERE id = $1 RETURNING id"
        return await self._database.change(lambda c: c.fetchval(query, session_id)) is not None

    async def sign_out_all(self, user_id: UUID) -> Sequence[UUID]:
        query = "DELETE FROM browser_sessions WHERE user_id = $1 RETURNING id"
        return [row[0] for row in await self._database.change(lambda c: c.fetch(query, user_id))]

    async def begin(self, attempt: SignInAttempt) -> None:
        values = ATTEMPTS.values(attempt)
        await self._database.change(lambda c: c.execute(ATTEMPTS.insert("sign_in_attempts"), *values))

    async def take(self, state_hash: bytes) -> SignInAttempt | None:
        return ATTEMPTS.maybe(await self._database.change(lambda c: c.fetchrow(_TAKE, state_hash)))


async def sweep_identity(connection: Connection, now: int) -> int:
    """Delete sessions that nobody asks about any more, and what can sign nobody in; how many rows."""
    swept = 0
    for query, before in (
        ("DELETE FROM auth_sessions WHERE expires_at <= $1", now - AUTH_SESSION_KEEP_MS),
        ("DELETE FROM sign_in_links WHERE expires_at <= $1", now),
        ("DELETE FROM browser_sessions WHERE least(idle_ends_at, ends_at) <= $1", now),
        ("DELETE FROM sign_in_attempts WHERE expires_at <= $1", now),
    ):
        swept += int((await connection.execute(query, before)).split()[-1])
    return swept
