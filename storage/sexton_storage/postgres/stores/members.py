"""Members of tenants, in PostgreSQL."""

from collections.abc import Sequence
from uuid import UUID

from sexton_storage.decisions import members as rules
from sexton_storage.errors import NameTaken
from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.sql.schema import USERS
from sexton_storage.postgres.stores.base import Conditions, PostgresStore
from sexton_storage.postgres.stores.tenants import SUBJECTS
from sexton_storage.records.auth_sessions import OPEN_SESSION, AuthSessionStatus
from sexton_storage.records.members import MemberChange, MemberChanged, MemberRefusal
from sexton_storage.records.users import MemberStatus, User

_SELECT = f"SELECT {USERS.columns()} FROM users"
_FIND = f"{_SELECT} WHERE tenant_id = $1 AND subject = $2 ORDER BY issuer IS NOT NULL LIMIT 1"
_MEET = f"""
{USERS.insert("users")} ON CONFLICT (tenant_id, subject) WHERE issuer IS NOT NULL
DO UPDATE SET role = excluded.role, platform_admin = excluded.platform_admin RETURNING {USERS.columns()}
"""
# The member, and all whom the rules count: two changes at once would each find the other's admin there.
_LOCK = f"""
{_SELECT}
 WHERE (tenant_id = $1 AND (id = $2 OR role = 'admin' AND status = 'active' AND issuer IS NULL))
    OR (platform_admin AND status = 'active' AND issuer IS NULL)
 ORDER BY id FOR UPDATE
"""
_SAVE = "UPDATE users SET role = $2, status = $3, changed_at = $4, changed_by = $5 WHERE id = $1"
_ABORT = f"""
UPDATE auth_sessions SET status = '{AuthSessionStatus.ABORTED}', version = version + 1, sealed_token = NULL
 WHERE approved_by = $1 AND status IN ({", ".join(repr(str(status)) for status in OPEN_SESSION)})
"""
_SIGN_OUT = "DELETE FROM browser_sessions WHERE user_id = $1"
_DROP_LINKS = "DELETE FROM sign_in_links WHERE user_id = $1"
_END_KEYS = "UPDATE api_keys SET revoked_at = sexton_now_ms() WHERE owner_id = $1 AND revoked_at IS NULL"
_END_AGENT_KEYS = "DELETE FROM agent_keys WHERE owner_id = $1"
_GIVE_KEYS = "UPDATE api_keys SET owner_id = $2 WHERE owner_id = $1 AND revoked_at IS NULL"
_GIVE_AGENT_KEYS = "UPDATE agent_keys SET owner_id = $2 WHERE owner_id = $1"
_PLATFORM_ADMIN = """
SELECT id FROM users WHERE platform_admin AND status = 'active' AND issuer IS NULL
 ORDER BY created_at, id LIMIT 1
"""


class PostgresMembers(PostgresStore):
    async def add(self, user: User) -> None:
        values = USERS.values(user)
        names = {**SUBJECTS, "users_pkey": NameTaken}
        await self._database.change(lambda c: c.execute(USERS.insert("users"), *values), names)

    async def find(self, tenant_id: UUID, user_id: UUID) -> User | None:
        return USERS.maybe(await self._row(f"{_SELECT} WHERE tenant_id = $1 AND id = $2", tenant_id, user_id))

    async def meet(self, user: User) -> User:
        found = USERS.maybe(await self._row(_FIND, user.tenant_id, user.subject))
        if found is not None and (found.issuer is None or found.rank == user.rank):
            return found
        values = USERS.values(user)
        # To claim the same twice is to claim it once: no transaction with a mark is needed.
        row = await self._database.read(lambda c: c.fetchrow(_MEET, *values))
        return USERS.record(row) if row is not None else user

    async def list(
        self, tenant_id: UUID, *, status: MemberStatus | None, page: int, page_size: int
    ) -> tuple[Sequence[User], int]:
        where = Conditions("tenant_id = $1", tenant_id)
        if status is not None:
            where.add("status = {}", status)
        return await self._page(USERS, "users", where, "created_at, id", page=page, page_size=page_size)

    async def change(
        self, tenant_id: UUID, user_id: UUID, change: MemberChange
    ) -> MemberChanged | MemberRefusal:
        return await self._database.change(lambda c: _change(c, tenant_id, user_id, change))

    async def platform_admin(self) -> UUID | None:
        found: UUID | None = await self._value(_PLATFORM_ADMIN)
        return found


async def _change(
    connection: Connection, tenant_id: UUID, user_id: UUID, asked: MemberChange
) -> MemberChanged | MemberRefusal:
    locked = USERS.many(await connection.fetch(_LOCK, tenant_id, user_id))
    member = next((user for user in locked if user.id == user_id and user.tenant_id == tenant_id), None)
    if member is None:
        return MemberRefusal.UNKNOWN
    if asked.heir_id is not None and not await _is_heir(connection, member, asked.heir_id):
        return MemberRefusal.NO_HEIR
    now: int = await connection.fetchval("SELECT sexton_now_ms()")
    after = rules.change(
        member,
        asked,
        now,
        tenant_admins=sum(rules.is_tenant_admin(user) and user.tenant_id == tenant_id for user in locked),
        platform_admins=sum(rules.is_platform_admin(user) for user in locked),
    )
    if isinstance(after, MemberRefusal) or after == member:
        return after if isinstance(after, MemberRefusal) else MemberChanged(member)
    await connection.execute(_SAVE, after.id, after.role, after.status, after.changed_at, after.changed_by)
    return await _end_access(connection, after, asked.heir_id)


async def _is_heir(connection: Connection, member: User, heir_id: UUID) -> bool:
    query = "SELECT true FROM users WHERE tenant_id = $1 AND id = $2 AND id <> $3 AND status = 'active'"
    return bool(await connection.fetchval(query, member.tenant_id, heir_id, member.id))


async def _end_access(connection: Connection, member: User, heir_id: UUID | None) -> MemberChanged:
    if member.is_admitted:
        return MemberChanged(member)
    sign_ins = await _count(connection, _SIGN_OUT, member.id)
    await connection.execute(_DROP_LINKS, member.id)
    await connection.execute(_ABORT, f"user:{member.id}")
    if member.status is not MemberStatus.REMOVED:
        return MemberChanged(member, sign_ins_ended=sign_ins)
    if heir_id is None:
        ended = [await _count(connection, query, member.id) for query in (_END_KEYS, _END_AGENT_KEYS)]
        return MemberChanged(member, sign_ins_ended=sign_ins, keys_ended=sum(ended))
    given = [await _count(connection, query, member.id, heir_id) for query in (_GIVE_KEYS, _GIVE_AGENT_KEYS)]
    return MemberChanged(member, sign_ins_ended=sign_ins, keys_handed_over=sum(given))


async def _count(connection: Connection, query: str, *args: object) -> int:
    return int((await connection.execute(query, *args)).split()[-1])
