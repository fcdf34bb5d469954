"""What exists once for the installation, in PostgreSQL."""

from sexton_storage.periods import day_of
from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.stores.base import PostgresStore
from sexton_storage.postgres.stores.deliveries import sweep_deliveries, sweep_delivery_counts
from sexton_storage.postgres.stores.failures import sweep_failures
from sexton_storage.postgres.stores.fleet import sweep_changes
from sexton_storage.postgres.stores.follow_ups import sweep_follow_ups
from sexton_storage.postgres.stores.identity import sweep_identity
from sexton_storage.postgres.stores.jobs import sweep_jobs
from sexton_storage.postgres.stores.key_uses import sweep_key_uses
from sexton_storage.postgres.stores.memories import sweep_memories
from sexton_storage.postgres.stores.tenants import insert_tenant
from sexton_storage.records.tenants import Tenant
from sexton_storage.records.users import User
from sexton_storage.records.workspaces import Workspace
from sexton_storage.terms import COUNT_KEEP_DAYS, DEDUP_WINDOW_MS

SWEEP_LIMIT = 10_000
"""Rows of one kind that one sweep deletes, at most."""
MARK_KEEP_MS = 3_600_000
LANE_KEEP_MS = 24 * 3_600_000
"""Much longer than anybody waits to learn the outcome of a commit."""
_INSTALLED = "installed"
_PUT_SETTING = """
INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""
_SWEEP_DEDUP = """
DELETE FROM dedup_keys WHERE (zombie_id, key) IN (
    SELECT zombie_id, key FROM dedup_keys WHERE seen_at <= $1 LIMIT $2)
"""
_SWEEP_COUNTS = "DELETE FROM event_counts WHERE day < $1"
_SWEEP_TOKENS = "DELETE FROM enrolment_tokens WHERE used_at IS NOT NULL OR expires_at <= $1"


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

    async def sweep(self, now: int, *, deliveries: bool = True) -> int:
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
            swept += await sweep_jobs(connection, now, SWEEP_LIMIT)
            swept += await sweep_failures(connection, now, SWEEP_LIMIT)
            swept += await sweep_delivery_counts(connection, now, SWEEP_LIMIT)
            if deliveries:
                swept += await sweep_deliveries(connection, now, SWEEP_LIMIT)
            return swept + await sweep_identity(connection, now)

        # Deleting what is past keeping may be done twice: no mark is needed.
        return await self._database.read(work)
