"""Tenants, workspaces, users, API keys and credentials in memory."""

from collections import Counter
from collections.abc import Sequence
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.decisions.claim import unblocked
from sexton_storage.errors import NameTaken
from sexton_storage.memory.base import MemoryStore, page_of
from sexton_storage.memory.tables import Tables
from sexton_storage.paging import API_KEY_SORTS, sort_key
from sexton_storage.records.api_keys import ApiKey
from sexton_storage.records.credentials import Credential
from sexton_storage.records.plans import first_plan
from sexton_storage.records.tenants import Tenant
from sexton_storage.records.users import User
from sexton_storage.records.workspaces import Workspace
from sexton_storage.rules import waits_for_credit


class MemoryTenants(MemoryStore):
    async def create(self, tenant: Tenant, workspace: Workspace, user: User) -> None:
        await self._round_trip()
        if any(o.subject == user.subject and o.issuer is None for o in self._tables.users.values()):
            raise NameTaken(user.subject)
        self._tables.tenants[tenant.id] = tenant
        self._tables.plans[tenant.id] = first_plan(tenant)
        self._tables.workspaces[workspace.id] = workspace
        self._tables.users[user.id] = user

    async def load(self, tenant_id: UUID) -> Tenant | None:
        await self._round_trip()
        return self._tables.tenants.get(tenant_id)

    async def credit(
        self, tenant_id: UUID, amount_nanos: int, reason: str, actor: str, *, credit_id: UUID | None = None
    ) -> Tenant | None:
        if amount_nanos < 0:
            raise ValueError("a credit is not negative")
        await self._round_trip()
        tenant = self._tables.tenants.get(tenant_id)
        if tenant is None or credit_id in self._tables.credit_ids:
            return tenant
        if credit_id is not None:
            self._tables.credit_ids.add(credit_id)
        now, balance = self._tables.now(), tenant.balance_nanos + amount_nanos
        exhausted_at = None if balance > 0 else tenant.exhausted_at
        credited = replace(tenant, balance_nanos=balance, exhausted_at=exhausted_at, updated_at=now)
        self._tables.tenants[tenant_id] = credited
        self._tables.credits.append((tenant_id, amount_nanos, reason, actor))
        self._tables.audit.note(None)
        if credited.has_credit:
            _free(self._tables, tenant_id, now)
        return credited

    async def set_unlimited(self, tenant_id: UUID, *, unlimited: bool) -> Tenant | None:
        await self._round_trip()
        tenant, now = self._tables.tenants.get(tenant_id), self._tables.now()
        if tenant is None or tenant.unlimited is unlimited:
            return tenant
        lasts = unlimited or tenant.balance_nanos > 0
        changed = replace(
            tenant,
            unlimited=unlimited,
            exhausted_at=None if lasts else tenant.exhausted_at or now,
            updated_at=now,
        )
        self._tables.tenants[tenant_id] = changed
        if lasts:
            _free(self._tables, tenant_id, now)
        return changed


def _free(tables: Tables, tenant_id: UUID, now: int) -> None:
    for event in list(tables.events.values()):
        if event.tenant_id == tenant_id and waits_for_credit(event) and event.completed_at is None:
            tables.put_event(unblocked(event, now))


class MemoryWorkspaces(MemoryStore):
    async def load(self, workspace_id: UUID) -> Workspace | None:
        await self._round_trip()
        return self._tables.workspaces.get(workspace_id)

    async def list(self, tenant_id: UUID) -> Sequence[Workspace]:
        await self._round_trip()
        mine = (w for w in self._tables.workspaces.values() if w.tenant_id == tenant_id)
        return sorted(mine, key=lambda w: (w.created_at, w.id))

    async def create(self, workspace: Workspace) -> None:
        await self._round_trip()
        self._check_name(workspace)
        self._tables.workspaces[workspace.id] = workspace

    async def save(self, workspace: Workspace) -> bool:
        await self._round_trip()
        old = self._tables.workspaces.get(workspace.id)
        if old is None:
            return False
        self._check_name(workspace)
        self._tables.workspaces[workspace.id] = replace(old, name=workspace.name, paused=workspace.paused)
        return True

    def _check_name(self, workspace: Workspace) -> None:
        for other in self._tables.workspaces.values():
            same = (other.tenant_id, other.name) == (workspace.tenant_id, workspace.name)
            if same and other.id != workspace.id:
                raise NameTaken(workspace.name)


class MemoryUsers(MemoryStore):
    async def load(self, user_id: UUID) -> User | None:
        await self._round_trip()
        return self._tables.users.get(user_id)

    async def find_by_subject(self, subject: str) -> User | None:
        await self._round_trip()
        users = self._tables.users.values()
        return next((u for u in users if u.subject == subject and u.issuer is None), None)


class MemoryApiKeys(MemoryStore):
    async def find_by_hash(self, token_hash: bytes) -> ApiKey | None:
        await self._round_trip()
        return next((k for k in self._tables.api_keys.values() if k.token_hash == token_hash), None)

    async def create(self, key: ApiKey) -> None:
        await self._round_trip()
        for other in self._tables.api_keys.values():
            if (other.tenant_id, other.key_name) == (key.tenant_id, key.key_name):
                raise NameTaken(key.key_name)
        self._tables.api_keys[key.id] = key

    async def list(
        self, tenant_id: UUID, *, page: int, page_size: int, sort: str, owner_id: UUID | None = None
    ) -> tuple[Sequence[ApiKey], int]:
        field, descends = sort_key(sort, API_KEY_SORTS)
        await self._round_trip()
        mine = [
            k
            for k in self._tables.api_keys.values()
            if k.tenant_id == tenant_id and owner_id in {None, k.owner_id}
        ]
        mine.sort(key=lambda k: (getattr(k, field), k.id), reverse=descends)
        return page_of(mine, page, page_size)

    async def load(self, tenant_id: UUID, key_id: UUID) -> ApiKey | None:
        await self._round_trip()
        return self._of(tenant_id, key_id)

    async def revoke(self, tenant_id: UUID, key_id: UUID, now: int) -> ApiKey | None:
        await self._round_trip()
        key = self._of(tenant_id, key_id)
        if key is None:
            return None
        revoked = replace(key, revoked_at=now if key.revoked_at is None else key.revoked_at)
        self._tables.api_keys[key_id] = revoked
        return revoked

    async def delete(self, tenant_id: UUID, key_id: UUID) -> bool:
        await self._round_trip()
        key = self._of(tenant_id, key_id)
        if key is None or key.revoked_at is None:
            return False
        del self._tables.api_keys[key_id]
        return True

    async def touch(self, used: Sequence[tuple[UUID, int]]) -> None:
        await self._round_trip()
        for key_id, at in used:
            key = self._tables.api_keys.get(key_id)
            if key is not None:
                self._tables.api_keys[key_id] = replace(key, last_used_at=max(at, key.last_used_at or at))

    def _of(self, tenant_id: UUID, key_id: UUID) -> ApiKey | None:
        key = self._tables.api_keys.get(key_id)
        return key if key is not None and key.tenant_id == tenant_id else None


class MemoryCredentials(MemoryStore):
    async def put(self, credential: Credential) -> None:
        await self._round_trip()
        key = (credential.workspace_id, credential.name)
        old = self._tables.credentials.get(key)
        created_at = credential.created_at if old is None else old.created_at
        self._tables.credentials[key] = replace(credential, created_at=created_at)

    async def load(self, workspace_id: UUID, name: str) -> Credential | None:
        await self._round_trip()
        return self._tables.credentials.get((workspace_id, name))

    async def list(self, workspace_id: UUID, *, limit: int, after: str | None = None) -> Sequence[Credential]:
        await self._round_trip()
        mine = (
            replace(c, sealed=b"")
            for c in self._tables.credentials.values()
            if c.workspace_id == workspace_id and "/" not in c.name and (after is None or c.name > after)
        )
        return sorted(mine, key=lambda c: c.name)[:limit]

    async def delete(self, workspace_id: UUID, name: str) -> bool:
        await self._round_trip()
        return self._tables.credentials.pop((workspace_id, name), None) is not None

    async def sealed_before(
        self, version: int, *, after: tuple[UUID, str] | None, limit: int
    ) -> Sequence[Credential]:
        await self._round_trip()
        rows = sorted(self._tables.credentials.items())
        return [row for key, row in rows if (after is None or key > after) and _key_version(row) < version][
            :limit
        ]

    async def reseal(self, credential: Credential, sealed: bytes) -> bool:
        await self._round_trip()
        key = (credential.workspace_id, credential.name)
        kept = self._tables.credentials.get(key)
        if kept is None or kept.sealed != credential.sealed:
            return False
        self._tables.credentials[key] = replace(kept, sealed=sealed)
        return True

    async def count_by_key(self) -> dict[int, int]:
        await self._round_trip()
        return dict(Counter(_key_version(row) for row in self._tables.credentials.values()))


def _key_version(credential: Credential) -> int:
    return int.from_bytes(credential.sealed[1:5])
