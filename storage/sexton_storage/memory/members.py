"""Members of tenants, in memory."""

from collections.abc import Sequence
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.decisions import members as rules
from sexton_storage.errors import NameTaken
from sexton_storage.memory.base import MemoryStore, page_of
from sexton_storage.records.auth_sessions import OPEN_SESSION, AuthSessionStatus
from sexton_storage.records.members import MemberChange, MemberChanged, MemberRefusal
from sexton_storage.records.users import MemberStatus, User


class MemoryMembers(MemoryStore):
    async def add(self, user: User) -> None:
        await self._round_trip()
        users = self._tables.users
        if user.id in users or any(u.subject == user.subject and u.issuer is None for u in users.values()):
            raise NameTaken(user.subject)
        users[user.id] = user

    async def find(self, tenant_id: UUID, user_id: UUID) -> User | None:
        await self._round_trip()
        return self._of(tenant_id, user_id)

    async def meet(self, user: User) -> User:
        await self._round_trip()
        known = [
            u
            for u in self._tables.users.values()
            if (u.tenant_id, u.subject) == (user.tenant_id, user.subject)
        ]
        found = min(known, key=lambda u: u.issuer is not None, default=user)
        if found.issuer is not None:
            found = replace(found, role=user.role, platform_admin=user.platform_admin)
            self._tables.users[found.id] = found
        return found

    async def list(
        self, tenant_id: UUID, *, status: MemberStatus | None, page: int, page_size: int
    ) -> tuple[Sequence[User], int]:
        await self._round_trip()
        found = [
            u
            for u in self._tables.users.values()
            if u.tenant_id == tenant_id and (status is None or u.status is status)
        ]
        found.sort(key=lambda u: (u.created_at, u.id))
        return page_of(found, page, page_size)

    async def change(
        self, tenant_id: UUID, user_id: UUID, change: MemberChange
    ) -> MemberChanged | MemberRefusal:
        await self._round_trip()
        users, member = self._tables.users, self._of(tenant_id, user_id)
        if member is None:
            return MemberRefusal.UNKNOWN
        heir = None if change.heir_id is None else self._of(tenant_id, change.heir_id)
        if change.heir_id is not None and (heir is None or heir.id == member.id or not heir.is_admitted):
            return MemberRefusal.NO_HEIR
        theirs = [user for user in users.values() if user.tenant_id == tenant_id]
        after = rules.change(
            member,
            change,
            self._tables.now(),
            tenant_admins=sum(map(rules.is_tenant_admin, theirs)),
            platform_admins=sum(map(rules.is_platform_admin, users.values())),
        )
        if isinstance(after, MemberRefusal):
            return after
        users[after.id] = after
        return MemberChanged(after) if after == member else self._end_access(after, change.heir_id)

    async def platform_admin(self) -> UUID | None:
        await self._round_trip()
        found = sorted(
            filter(rules.is_platform_admin, self._tables.users.values()), key=lambda u: (u.created_at, u.id)
        )
        return found[0].id if found else None

    def _of(self, tenant_id: UUID, user_id: UUID) -> User | None:
        user = self._tables.users.get(user_id)
        return user if user is not None and user.tenant_id == tenant_id else None

    def _end_access(self, member: User, heir_id: UUID | None) -> MemberChanged:
        if member.is_admitted:
            return MemberChanged(member)
        sign_ins = self._sign_out(member)
        if member.status is not MemberStatus.REMOVED:
            return MemberChanged(member, sign_ins_ended=sign_ins)
        keys = self._keys(member.id, heir_id)
        if heir_id is None:
            return MemberChanged(member, sign_ins_ended=sign_ins, keys_ended=keys)
        return MemberChanged(member, sign_ins_ended=sign_ins, keys_handed_over=keys)

    def _sign_out(self, member: User) -> int:
        tables = self._tables
        ended = [s.id for s in tables.browser_sessions.values() if s.user_id == member.id]
        for session_id in ended:
            del tables.browser_sessions[session_id]
        tables.sign_in_links.keep_if(lambda link: link.user_id != member.id)
        for session in list(tables.auth_sessions.values()):
            if session.approved_by == f"user:{member.id}" and session.status in OPEN_SESSION:
                tables.auth_sessions[session.id] = replace(
                    session, status=AuthSessionStatus.ABORTED, version=session.version + 1, sealed_token=None
                )
        return len(ended)

    def _keys(self, owner_id: UUID, heir_id: UUID | None) -> int:
        tables = self._tables
        keys = [k for k in tables.api_keys.values() if k.owner_id == owner_id and k.revoked_at is None]
        agent_keys = [k for k in tables.agent_keys.values() if k.owner_id == owner_id]
        for key in keys:
            ended = replace(key, revoked_at=tables.now())
            tables.api_keys[key.id] = ended if heir_id is None else replace(key, owner_id=heir_id)
        for agent_key in agent_keys:
            if heir_id is None:
                del tables.agent_keys[agent_key.id]
            else:
                tables.agent_keys[agent_key.id] = replace(agent_key, owner_id=heir_id)
        return len(keys) + len(agent_keys)
