"""Runners and what exists once for the installation, in memory."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.errors import Conflict
from sexton_storage.memory.apply_follow_ups import sweep_follow_ups
from sexton_storage.memory.apply_memories import sweep_memories
from sexton_storage.memory.base import MemoryStore, page_of
from sexton_storage.memory.deliveries import sweep_deliveries
from sexton_storage.memory.failures import sweep_failures
from sexton_storage.memory.identity import sweep_identity
from sexton_storage.memory.jobs import sweep_jobs
from sexton_storage.memory.key_uses import sweep_key_uses
from sexton_storage.memory.overview import sweep_changes
from sexton_storage.paging import RUNNER_SORTS, sort_key
from sexton_storage.periods import day_of
from sexton_storage.records.plans import first_plan
from sexton_storage.records.runners import EnrolmentToken, Runner, RunnerChange
from sexton_storage.records.tenants import Tenant
from sexton_storage.records.users import User
from sexton_storage.records.workspaces import Workspace
from sexton_storage.terms import COUNT_KEEP_DAYS, DEDUP_WINDOW_MS


class MemoryRunners(MemoryStore):
    async def enrol(self, runner: Runner, *, enrolment_hash: bytes | None) -> bool:
        await self._round_trip()
        if enrolment_hash is not None and not self._use_up(enrolment_hash):
            return False
        self._tables.runners[runner.id] = runner
        return True

    def _use_up(self, enrolment_hash: bytes) -> bool:
        token = self._open_enrolment(enrolment_hash)
        if token is None:
            return False
        self._tables.enrolments[enrolment_hash] = replace(token, used_at=self._tables.now())
        return True

    def _open_enrolment(self, enrolment_hash: bytes) -> EnrolmentToken | None:
        token = self._tables.enrolments.get(enrolment_hash)
        if token is None or token.used_at is not None or token.expires_at <= self._tables.now():
            return None
        return token

    async def find_by_hash(self, token_hash: bytes) -> Runner | None:
        await self._round_trip()
        return next((r for r in self._tables.runners.values() if r.token_hash == token_hash), None)

    async def load(self, runner_id: UUID) -> Runner | None:
        await self._round_trip()
        return self._tables.runners.get(runner_id)

    async def hosts(self, runner_ids: Sequence[UUID]) -> Mapping[UUID, str]:
        await self._round_trip()
        known = self._tables.runners
        return {runner_id: known[runner_id].host_id for runner_id in runner_ids if runner_id in known}

    async def list(self, *, page: int, page_size: int, sort: str) -> tuple[Sequence[Runner], int]:
        field, descends = sort_key(sort, RUNNER_SORTS)
        await self._round_trip()
        rows = sorted(
            self._tables.runners.values(), key=lambda r: (getattr(r, field), r.id), reverse=descends
        )
        return page_of(rows, page, page_size)

    async def save(self, runner: Runner, change: RunnerChange | None = None) -> None:
        await self._round_trip()
        self._faults.may_conflict()
        old = self._tables.runners.get(runner.id)
        if old is None or old.version != runner.version - 1:
            raise Conflict(f"runner {runner.id} is not at version {runner.version - 1}")
        self._tables.runners[runner.id] = replace(
            old,
            admin_state=runner.admin_state,
            offers=runner.offers,
            release=runner.release,
            version=runner.version,
        )
        if change is not None:
            self._tables.runner_changes.append(change)

    async def touch(self, seen: Sequence[tuple[UUID, int]]) -> None:
        await self._round_trip()
        for runner_id, at in seen:
            runner = self._tables.runners.get(runner_id)
            if runner is not None:
                self._tables.runners[runner_id] = replace(
                    runner, last_seen_at=max(at, runner.last_seen_at or at)
                )

    async def mint_enrolment(self, token: EnrolmentToken) -> None:
        await self._round_trip()
        self._tables.enrolments[token.token_hash] = token

    async def open_enrolment(self, token_hash: bytes) -> EnrolmentToken | None:
        await self._round_trip()
        return self._open_enrolment(token_hash)


class MemoryInstance(MemoryStore):
    async def first_start(
        self, tenant: Tenant, workspace: Workspace, user: User, settings: dict[str, bytes]
    ) -> bool:
        await self._round_trip()
        if self._tables.started:
            return False
        self._tables.started = True
        self._tables.tenants[tenant.id] = tenant
        self._tables.plans[tenant.id] = first_plan(tenant)
        self._tables.workspaces[workspace.id] = workspace
        self._tables.users[user.id] = user
        self._tables.settings.update(settings)
        return True

    async def setting(self, name: str) -> bytes | None:
        await self._round_trip()
        return self._tables.settings.get(name)

    async def put_setting(self, name: str, value: bytes) -> None:
        await self._round_trip()
        self._tables.settings[name] = value

    async def swap_setting(self, name: str, old: bytes, new: bytes) -> bool:
        await self._round_trip()
        if self._tables.settings.get(name) != old:
            return False
        self._tables.settings[name] = new
        return True

    async def settle_setting(self, name: str, value: bytes) -> bytes:
        await self._round_trip()
        return self._tables.settings.setdefault(name, value)

    async def sweep(self, now: int, *, deliveries: bool = True) -> int:
        await self._round_trip()
        tables = self._tables
        before = len(tables.dedup) + len(tables.enrolments)
        kept_from = day_of(now) - COUNT_KEEP_DAYS
        tables.event_counts = {key: n for key, n in tables.event_counts.items() if key[1] >= kept_from}
        tables.dedup = {key: row for key, row in tables.dedup.items() if row.seen_at > now - DEDUP_WINDOW_MS}
        tables.enrolments.keep_if(lambda row: row.used_at is None and row.expires_at > now)
        return (
            before
            - len(tables.dedup)
            - len(tables.enrolments)
            + sweep_identity(tables, now)
            + sweep_key_uses(tables, now)
            + sweep_changes(tables, now)
            + sweep_memories(tables, now)
            + sweep_follow_ups(tables, now)
            + sweep_jobs(tables, now)
            + sweep_failures(tables, now)
            + (sweep_deliveries(tables, now) if deliveries else 0)
        )
