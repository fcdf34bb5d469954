"""What is past keeping goes by pages: all of a page or none, found by indexes, by one node at once."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import asyncpg
import pytest
import trio

from sexton_storage.embedded.roles import as_superuser
from sexton_storage.errors import StorageError
from sexton_storage.postgres import PostgresStorage, open_postgres_storage
from sexton_storage.records.events import EventStatus
from sexton_storage.records.retention import KeptClass, RetentionPolicy
from sexton_storage.records.tenants import PlanTier
from sexton_storage.writes import EventEnd
from tests.storage.test_storage_backlog_plans import read_so_far
from tests.worlds.storage import HOUR_MS, StorageWorld, metered

SOON = {PlanTier.FREE: -HOUR_MS}
OTHERS = 5_000
"""Rows of a workspace that keeps them, older than those that go."""
DUE = 40
BROKEN = """
CREATE FUNCTION breaks() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'broken'; END $$;
CREATE TRIGGER breaks BEFORE DELETE ON events FOR EACH ROW EXECUTE FUNCTION breaks()
"""
HELD = "SELECT pg_advisory_xact_lock(1234554321, 57)"
_ROWS = (
    """
INSERT INTO webhook_deliveries (id, zombie_id, workspace_id, tenant_id, at, address, source, verdict, reason,
                                detail, headers, size, body_bytes, replays)
SELECT gen_random_uuid(), $1, $1, $1, $3::bigint + n, 'first', '', 'accepted', '', '', '{}', 0, 0, 0
  FROM generate_series(1, $2::int) n
""",
    """
INSERT INTO transcripts (zombie_id, event_id, attempt, workspace_id, began_at)
SELECT $1, gen_random_uuid(), 1, $1, $3::bigint + n FROM generate_series(1, $2::int) n
""",
    """
INSERT INTO artefacts (id, zombie_id, workspace_id, event_id, lease_id, attempt, name, media_type, blob_id,
                       sha256, size, created_at)
SELECT gen_random_uuid(), $1, $1, gen_random_uuid(), $1, 1, 'f', 'text/plain', $1, '', 1, $3::bigint + n
  FROM generate_series(1, $2::int) n
""",
    """
INSERT INTO events (id, zombie_id, workspace_id, tenant_id, actor, event_type, status, request_json,
                    created_at, updated_at, completed_at)
SELECT gen_random_uuid(), $1, $1, $1, 'steer:t', 'message', 'processed', '{}', $3::bigint + n, n,
       $3::bigint + n
  FROM generate_series(1, $2::int) n
""",
)


def by_hand(dsn: str, work: Callable[[asyncpg.Connection], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        connection = await asyncpg.connect(as_superuser(dsn))
        try:
            return await work(connection)
        finally:
            await connection.close()

    return asyncio.run(run())


async def ended(world: StorageWorld) -> list[UUID]:
    agent, events = await world.agent(), []
    for _ in range(3):
        await world.append(agent)
        lease = (await world.claim(agent)).lease
        await world.end(lease, EventEnd(EventStatus.PROCESSED), nanos=5)
        events.append(lease.event_id)
    return events


async def test_a_page_that_breaks_off_in_the_middle_leaves_every_row(
    postgres_storage: PostgresStorage, postgres_dsn: str
) -> None:
    world = await StorageWorld(postgres_storage).found()
    events = await ended(world)
    await trio.to_thread.run_sync(lambda: by_hand(postgres_dsn, lambda c: c.execute(BROKEN)))

    with pytest.raises(StorageError):
        await postgres_storage.retention.drop(KeptClass.EVENTS, SOON, limit=9)
    leases = "SELECT count(*) FROM leases"
    left = await trio.to_thread.run_sync(lambda: by_hand(postgres_dsn, lambda c: c.fetchval(leases)))

    assert left == 3
    assert None not in [await postgres_storage.events.load(event_id) for event_id in events]
    assert await metered(world, events) == 15


async def test_of_two_nodes_that_come_at_once_one_deletes_and_the_other_comes_again(
    postgres_storage: PostgresStorage, postgres_dsn: str
) -> None:
    world = await StorageWorld(postgres_storage).found()
    events = await ended(world)
    other = await trio.to_thread.run_sync(lambda: Beside(postgres_dsn))
    try:
        while_held = await postgres_storage.retention.drop(KeptClass.EVENTS, SOON, limit=9)
    finally:
        await trio.to_thread.run_sync(other.end)

    assert while_held == 0
    assert await postgres_storage.retention.drop(KeptClass.EVENTS, SOON, limit=9) == 3
    assert await metered(world, events) == 15


class Beside:
    """A node that is killed in the middle of its page."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._loop = asyncio.new_event_loop()
        self._connection = self._loop.run_until_complete(asyncpg.connect(as_superuser(dsn)))
        self._loop.run_until_complete(self._connection.execute(f"BEGIN; {HELD}"))

    def end(self) -> None:
        """Close the connection, and wait until PostgreSQL has let its locks go: it notices a while later."""
        pid = self._connection.get_server_pid()
        self._connection.terminate()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

        async def wait_for_its_end(connection: asyncpg.Connection) -> None:
            await connection.execute("SELECT pg_terminate_backend($1, 60000)", pid)

        by_hand(self._dsn, wait_for_its_end)


async def test_rounds_read_what_goes_and_not_what_others_keep(postgres_dsn: str) -> None:
    async with open_postgres_storage(postgres_dsn) as storage:
        keeps, drops = await StorageWorld(storage).found(), await StorageWorld(storage).found()
        long_ago = storage.clock.now_ms() - 9 * 24 * HOUR_MS
        await storage.retention.save(RetentionPolicy(drops.workspace_id, 3, 3, 3, 3, 1))

    async def fill(connection: asyncpg.Connection) -> None:
        await connection.execute("SET session_replication_role = replica")
        await connection.execute("ALTER TABLE artefacts DISABLE TRIGGER USER")  # They have no contents.
        for insert in _ROWS:
            await connection.execute(insert, keeps.workspace_id, OTHERS, long_ago)
            await connection.execute(insert, drops.workspace_id, DUE, long_ago + OTHERS)
        await connection.execute("VACUUM ANALYZE")

    await trio.to_thread.run_sync(lambda: by_hand(postgres_dsn, fill))
    before = await trio.to_thread.run_sync(lambda: asyncio.run(read_so_far(postgres_dsn)))
    async with open_postgres_storage(postgres_dsn) as storage:
        gone = {kept: await storage.retention.drop(kept, {}, limit=500) for kept in KeptClass}
        left = [
            (await storage.retention.due(keeps.workspace_id, kept, keep_ms=0, limit=10_000)).rows
            for kept in KeptClass
        ]
    after = await trio.to_thread.run_sync(lambda: asyncio.run(read_so_far(postgres_dsn)))
    read = {name: count - before.get(name, 0) for name, count in after.items()}
    tables = ("events", "transcripts", "artefacts", "webhook_deliveries")

    assert gone == dict.fromkeys(KeptClass, DUE)
    assert left == [OTHERS] * len(KeptClass)
    assert {name: read[name] for name in tables if read[name]} == {}
