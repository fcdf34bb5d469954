"""Runners and what exists once for the installation, in PostgreSQL."""

from collections.abc import Sequence
from uuid import UUID

from sexton_storage.billing import COUNT_KEEP_DAYS
from sexton_storage.fleet import RunnerChange
from sexton_storage.paging import RUNNER_SORTS, sort_key
from sexton_storage.periods import day_of
from sexton_storage.postgres.base import PostgresStore
from sexton_storage.postgres.connection import Connection
from sexton_storage.postgres.follow_ups import sweep_follow_ups
from sexton_storage.postgres.identity import sweep_identity
from sexton_storage.postgres.key_uses import sweep_key_uses
from sexton_storage.postgres.memories import sweep_memories
from sexton_storage.postgres.overview import sweep_changes
from sexton_storage.postgres.rows import Rows
from sexton_storage.postgres.schema import ENROLMENTS, RUNNERS
from sexton_storage.postgres.tenancy import insert_tenant
from sexton_storage.records import EnrolmentToken, Runner, Tenant, User, Workspace
from sexton_storage.stores import Conflict
from sexton_storage.writes import DEDUP_WINDOW_MS

SWEEP_LIMIT = 10_000
"""Rows of one kind that one sweep deletes, at most."""
MARK_KEEP_MS = 3_600_000
LANE_KEEP_MS = 24 * 3_600_000
"""Much longer than anybody waits to learn the outcome of a commit."""
CHANGES = Rows(RunnerChange)
_INSTALLED = "installed"
_RUNNER = f"SELECT {RUNNERS.columns()} FROM runners"
_USE_UP = """
UPDATE enrolment_tokens SET used_at = sexton_now_ms()
 WHERE token_hash = $1 AND used_at IS NULL AND expires_at > sexton_now_ms() RETURNING true
"""
_OPEN = f"""
SELECT {ENROLMENTS.columns()} FROM enrolment_tokens
 WHERE token_hash = $1 AND used_at IS NULL AND expires_at > sexton_now_ms()
"""
_SAVE = """
UPDATE runners SET admin_state = $3, version = $2 WHERE id = $1 AND version = $2 - 1 RETURNING id
"""
_TOUCH = """
UPDATE runners r SET last_seen_at = greatest(r.last_seen_at, v.at)
  FROM (SELECT id, max(at) AS at FROM unnest($1::uuid[], $2::bigint[]) AS u(id, at) GROUP BY id) v
 WHERE r.id = v.id AND v.at > coalesce(r.last_seen_at, 0)
"""
_PUT_SETTING = """
INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""
_SWEEP_DEDUP = """
DELETE FROM dedup_keys WHERE (zombie_id, key) IN (
    SELECT zombie_id, key FROM dedup_keys WHERE seen_at <= $1 LIMIT $2)
"""
_SWEEP_COUNTS = "DELETE FROM event_counts WHERE day < $1"
_SWEEP_TOKENS = "DELETE FROM enrolment_tokens WHERE used_at IS NOT NULL OR expires_at <= $1"


class PostgresRunners(PostgresStore):
    async def enrol(self, runner: Runner, *, enrolment_hash: bytes | None) -> bool:
        async def work(connection: Connection) -> bool:
            if enrolment_hash is not None and not await connection.fetchval(_USE_UP, enrolment_hash):
                return False
            await connection.execute(RUNNERS.insert("runners"), *RUNNERS.values(runner))
            return True

        return await self._database.change(work)

    async def find_by_hash(self, token_hash: bytes) -> Runner | None:
        return RUNNERS.maybe(await self._row(f"{_RUNNER} WHERE token_hash = $1", token_hash))

    async def load(self, runner_id: UUID) -> Runner | None:
        return RUNNERS.maybe(await self._row(f"{_RUNNER} WHERE id = $1", runner_id))

    async def list(self, *, page: int, page_size: int, sort: str) -> tuple[Sequence[Runner], int]:
        field, descends = sort_key(sort, RUNNER_SORTS)
        way = "DESC" if descends else "ASC"
        query = f"{_RUNNER} ORDER BY {field} {way}, id {way} LIMIT $1 OFFSET $2"
        rows = await self._rows(query, page_size, (page - 1) * page_size)
        return RUNNERS.many(rows), await self._value("SELECT count(*) FROM runners")

    async def save(self, runner: Runner, change: RunnerChange | None = None) -> None:
        async def work(connection: Connection) -> bool:
            args = (runner.id, runner.version, runner.admin_state)
            if await connection.fetchval(_SAVE, *args) is None:
                return False
            if change is not None:
                await connection.execute(CHANGES.insert("runner_changes"), *CHANGES.values(change))
            return True

        if not await self._database.change(work):
            raise Conflict(f"runner {runner.id} is not at version {runner.version - 1}")

    async def touch(self, seen: Sequence[tuple[UUID, int]]) -> None:
        # Moving a time forward twice is moving it once: no transaction with a mark is needed.
        ids, times = [runner_id for runner_id, _ in seen], [at for _, at in seen]
        await self._database.read(lambda c: c.execute(_TOUCH, ids, times))

    async def mint_enrolment(self, token: EnrolmentToken) -> None:
        values = ENROLMENTS.values(token)
        await self._database.change(lambda c: c.execute(ENROLMENTS.insert("enrolment_tokens"), *values))

    async def open_enrolment(self, token_hash: bytes) -> EnrolmentToken | None:
        return ENROLMENTS.maybe(await self._row(_OPEN, token_hash))


class PostgresInstance(PostgresStore):
    async def first_start(
        self, tenant: Tenant, workspace: Workspace, user: User, settings: dict[str, bytes]
    ) -> bool:
        async def work(connection: Connection) -> bool:
            mark = "INSERT INTO settings (name, value) VALUES ($1, '') ON CONFLICT DO NOTHING RETURNING true"
            if not await connection.fetchval(mark, _INSTALLED):
                return False
            await insert_tenant(connection, tenant, workspace, user)
            for name, value in settings.items():
                await connection.execute(_PUT_SETTING, name, value)
            return True

        return await self._database.change(work)

    async def setting(self, name: str) -> bytes | None:
        value: bytes | None = await self._value("SELECT value FROM settings WHERE name = $1", name)
        return value

    async def put_setting(self, name: str, value: bytes) -> None:
        await self._database.change(lambda c: c.execute(_PUT_SETTING, name, value))

    async def swap_setting(self, name: str, old: bytes, new: bytes) -> bool:
        swap = "UPDATE settings SET value = $3 WHERE name = $1 AND value = $2 RETURNING true"
        return bool(await self._database.read(lambda c: c.fetchval(swap, name, old, new)))

    async def settle_setting(self, name: str, value: bytes) -> bytes:
        keep = "INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING"
        await self._database.change(lambda c: c.execute(keep, name, value))
        kept: bytes = await self._value("SELECT value FROM settings WHERE name = $1", name)
        return kept

    async def sweep(self, now: int) -> int:
        async def work(connection: Connection) -> int:
            keys = await connection.execute(_SWEEP_DEDUP, now - DEDUP_WINDOW_MS, SWEEP_LIMIT)
            tokens = await connection.execute(_SWEEP_TOKENS, now)
            await connection.execute(_SWEEP_COUNTS, day_of(now) - COUNT_KEEP_DAYS)
            await connection.execute("DELETE FROM commit_marks WHERE at < sexton_now_ms() - $1", MARK_KEEP_MS)
            await connection.execute(
                "DELETE FROM journal_lanes WHERE at < sexton_now_ms() - $1", LANE_KEEP_MS
            )
            swept = int(keys.split()[-1]) + int(tokens.split()[-1])
            swept += await sweep_key_uses(connection, now)
            swept += await sweep_changes(connection, now, SWEEP_LIMIT)
            swept += await sweep_memories(connection, now, SWEEP_LIMIT)
            swept += await sweep_follow_ups(connection, now, SWEEP_LIMIT)
            return swept + await sweep_identity(connection, now)

        # Deleting what is past keeping may be done twice: no mark is needed.
        return await self._database.read(work)
