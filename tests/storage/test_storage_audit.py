"""PostgreSQL keeps the audit log: nothing of it is changed, and no change is there without its line."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg
import pytest
import trio

from sexton_storage.attribution import attributed
from sexton_storage.decisions.audit import first_break
from sexton_storage.errors import RowRefused
from sexton_storage.memory.tables import AUDITED
from sexton_storage.postgres import PostgresStorage
from sexton_storage.records.api_keys import ApiKey
from sexton_storage.records.audit import AuditEntry, AuditHead
from sexton_storage.records.users import Role
from tests.worlds.storage import StorageWorld, new_id

NAMED_OTHERWISE = {
    "configs": "config_versions",
    "context_tokens": "workspace_scoring",
    "deliveries": "webhook_deliveries",
    "enrolments": "enrolment_tokens",
    "jobs": "bulk_jobs",
    "plans": "billing_plans",
    "retention_policies": "workspace_retention",
}
BESIDE = {"credits"}
"""Kept as a list in memory, and told of there by the store."""
TRIGGERS = "SELECT DISTINCT tgrelid::regclass::text FROM pg_trigger WHERE tgname = 'audited'"
BLOCKED = "SELECT pid FROM pg_locks WHERE NOT granted"


def by_hand(dsn: str, work: Callable[[asyncpg.Connection], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        connection = await asyncpg.connect(dsn)
        try:
            return await work(connection)
        finally:
            await connection.close()

    return asyncio.run(run())


async def make_key(world: StorageWorld, name: str) -> None:
    key_id = new_id()
    entry = AuditEntry(new_id(), world.tenant_id, "api_key.create", "user:1", "ann", "::1", "r1")
    with attributed(entry):
        await world.storage.api_keys.create(
            ApiKey(key_id, world.tenant_id, name, "", Role.USER, key_id.bytes, 1)
        )


async def names(world: StorageWorld) -> list[str]:
    keys, _ = await world.storage.api_keys.list(world.tenant_id, page=1, page_size=9, sort="key_name")
    return [key.key_name for key in keys]


async def test_lines_are_neither_changed_nor_deleted(
    postgres_storage: PostgresStorage, postgres_dsn: str
) -> None:
    world = await StorageWorld(postgres_storage).found()
    await make_key(world, "a")

    for attempt in (
        "UPDATE audit_log SET body = '{}'",
        "DELETE FROM audit_log",
        "TRUNCATE audit_log",
        "SET session_replication_role = replica; DELETE FROM audit_log",
    ):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await trio.to_thread.run_sync(by_hand, postgres_dsn, lambda c, sql=attempt: c.execute(sql))
    told = {NAMED_OTHERWISE.get(name, name) for name in AUDITED} | BESIDE
    rows = await trio.to_thread.run_sync(by_hand, postgres_dsn, lambda c: c.fetch(TRIGGERS))
    kept = await world.storage.audit.read(world.tenant_id, limit=9)

    assert {row[0] for row in rows} == told
    assert first_break(kept) == await world.storage.audit.head(world.tenant_id)


async def test_where_no_line_can_be_written_nothing_is_changed(
    postgres_storage: PostgresStorage, postgres_dsn: str
) -> None:
    world = await StorageWorld(postgres_storage).found()
    await trio.to_thread.run_sync(
        by_hand, postgres_dsn, lambda c: c.execute("ALTER TABLE audit_log RENAME TO elsewhere")
    )
    with pytest.raises(RowRefused):
        await make_key(world, "a")
    await trio.to_thread.run_sync(
        by_hand, postgres_dsn, lambda c: c.execute("ALTER TABLE elsewhere RENAME TO audit_log")
    )
    assert await names(world) == []

    await make_key(world, "b")
    assert await names(world) == ["b"]


async def test_a_backend_that_is_killed_while_it_commits_leaves_both_or_neither(
    postgres_storage: PostgresStorage, postgres_dsn: str
) -> None:
    """The end of the log is held, so that the commit waits; it is killed there, and made again."""
    world = await StorageWorld(postgres_storage).found()
    await make_key(world, "first")

    async def kill(connection: asyncpg.Connection) -> None:
        async with asyncio.timeout(30), connection.transaction():
            await connection.execute("SELECT FROM audit_heads FOR UPDATE")
            held.set()
            while not (found := await connection.fetch(BLOCKED)):
                await asyncio.sleep(0.01)
            await connection.execute("SELECT pg_terminate_backend($1)", found[0][0])

    held = Held()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.to_thread.run_sync, by_hand, postgres_dsn, kill)
        await held.wait()
        await make_key(world, "second")
    kept = await world.storage.audit.read(world.tenant_id, limit=9)

    assert await names(world) == ["first", "second"]
    assert first_break(kept) == AuditHead(2, kept[-1].hash)


class Held:
    """An event that is set in a thread."""

    def __init__(self) -> None:
        self._event, self._token = trio.Event(), trio.lowlevel.current_trio_token()

    def set(self) -> None:
        self._token.run_sync_soon(self._event.set)

    async def wait(self) -> None:
        await self._event.wait()
