"""The schema moves forward only, once, and under one hand."""

from collections.abc import Sequence

import asyncpg
import msgspec
import pytest
import trio

from sexton_actors.loans import CredentialGrant, Reach, grants_in
from sexton_storage.portal import open_portal
from sexton_storage.postgres import migrate as migrate_module, open_postgres_storage, server_check
from sexton_storage.postgres.connections.bounds import MIGRATION_SESSION
from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.connections.dial import connect
from sexton_storage.postgres.migrate import migrate
from sexton_storage.postgres.schema.steps import Migration, shipped_migrations
from sexton_storage.records.grants import GrantStatus
from sexton_storage.startup import DatabaseNewer, MigrationFailed

NEXT = Migration(9001, "9001_next.sql", "CREATE TABLE next_one (id int); CREATE INDEX ON next_one (id)")
ARRIVAL = 13
"""The migration that numbers the events."""
LENDING = 20
"""The migration that keeps which credentials an agent may be lent."""
_OLD_EVENT = """
INSERT INTO events (id, zombie_id, workspace_id, tenant_id, actor, event_type, status, request_json,
                    created_at, updated_at)
VALUES ('01900000-0000-7000-8000-00000000000{number}', gen_random_uuid(), gen_random_uuid(),
        gen_random_uuid(), 'steer:ann', 'message', 'received', '{{}}', 1, 1)
"""
_OLD_AGENT = """
WITH config AS (
    INSERT INTO config_versions (id, zombie_id, revision, status, source_markdown, trigger_markdown, compiled,
                                 created_at)
    VALUES (gen_random_uuid(), gen_random_uuid(), 1, 'ACTIVE', '', '',
            '{"credentials": ["hub", "slack"], "integrations": ["slack"], "network_allow": ["a.example.com"],
              "tools": ["http_request"]}', 7)
    RETURNING id, zombie_id
)
INSERT INTO zombies (id, workspace_id, tenant_id, name, status, version, config_version_id, config_revision,
                     required_tags, approval_token_hash, url_secret_hashes, created_at, updated_at,
                     allows_unsandboxed)
SELECT zombie_id, gen_random_uuid(), gen_random_uuid(), 'old', 'active', 1, id, 1, '{}', '', '{}', 7, 7, false
  FROM config
"""
NARROW = next(m.version for m in shipped_migrations() if m.name.endswith("_narrow_rows.sql"))
"""The migration that keeps what waits and what runs in tables of their own."""
_OLD_ROWS = """
INSERT INTO events (id, zombie_id, workspace_id, tenant_id, actor, event_type, status, request_json,
                    created_at, updated_at)
SELECT gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'steer:ann', 'message',
       status, '{}', n, n
  FROM generate_series(1, 500) n
 CROSS JOIN unnest(array['received', 'waiting_approval', 'running', 'processed', 'agent_error',
                         'gate_blocked', 'cancelled', 'dead_lettered']) status;
INSERT INTO leases (id, event_id, zombie_id, workspace_id, tenant_id, runner_id, fencing_token, attempt,
                    status, version, granted_at, expires_at, ceiling_at, metered_at, run_nanos_per_sec,
                    input_nanos_per_mtok, cached_input_nanos_per_mtok, output_nanos_per_mtok)
SELECT gen_random_uuid(), id, zombie_id, workspace_id, tenant_id, gen_random_uuid(), 1, 1,
       CASE status WHEN 'running' THEN (array['active', 'cancelling'])[1 + arrival % 2] ELSE 'reported' END,
       1, 1, created_at, 1, 1, 1, 0, 0, 0
  FROM events WHERE status <> 'received'
"""
_MISSED = """
SELECT (SELECT count(*) FROM (
           (SELECT zombie_id, arrival, id, workspace_id, created_at FROM events WHERE status = 'received')
           EXCEPT SELECT zombie_id, arrival, event_id, workspace_id, created_at FROM waiting_events) missed)
     + (SELECT count(*) FROM (
           (SELECT workspace_id, zombie_id, id, event_id, runner_id FROM leases
             WHERE status IN ('active', 'cancelling'))
           EXCEPT SELECT workspace_id, zombie_id, lease_id, event_id, runner_id FROM live_leases) missed)
"""
_KEPT = "SELECT ARRAY[(SELECT count(*) FROM waiting_events), (SELECT count(*) FROM live_leases)]"
# What a server of the release before does meanwhile, which has not heard of the tables.
_OLD_WRITES = """
UPDATE events SET status = 'running' WHERE status = 'received' AND created_at <= 100;
UPDATE leases SET status = 'reported' WHERE status = 'active';
UPDATE events SET status = 'received' WHERE status = 'gate_blocked' AND created_at <= 30;
DELETE FROM events WHERE status = 'received' AND created_at > 490;
UPDATE leases SET status = 'cancelling', version = 2 WHERE status = 'cancelling';
"""
BROKEN = Migration(9002, "9002_broken.sql", "CREATE TABLE half (id int); SELECT no_such_column FROM half")


async def _migrate(dsn: str, migrations: Sequence[Migration]) -> Sequence[str]:
    async def work() -> Sequence[str]:
        connection = await connect(dsn, MIGRATION_SESSION)
        try:
            return await migrate(connection, migrations)
        finally:
            await connection.close()

    async with open_portal() as portal:
        return await portal.run(work)


async def _value(dsn: str, query: str) -> object:
    async def work() -> object:
        connection: Connection = await connect(dsn, MIGRATION_SESSION)
        try:
            return await connection.fetchval(query)
        finally:
            await connection.close()

    async with open_portal() as portal:
        return await portal.run(work)


async def _run(dsn: str, script: str) -> None:
    async def work() -> None:
        connection: Connection = await connect(dsn, MIGRATION_SESSION)
        try:
            await connection.execute(script)
        finally:
            await connection.close()

    async with open_portal() as portal:
        await portal.run(work)


def test_the_shipped_files_are_numbered_without_gaps() -> None:
    versions = [m.version for m in shipped_migrations()]
    assert versions == list(range(1, len(versions) + 1))


async def test_what_ran_is_not_run_again(postgres_dsn: str) -> None:
    every = [*shipped_migrations(), NEXT]

    assert await _migrate(postgres_dsn, every) == ["9001_next.sql"]
    assert await _migrate(postgres_dsn, every) == []


async def test_a_database_of_a_newer_release_is_refused(postgres_dsn: str) -> None:
    await _migrate(postgres_dsn, [*shipped_migrations(), NEXT])
    with pytest.raises(DatabaseNewer, match="9001_next"):
        async with open_postgres_storage(postgres_dsn):
            raise AssertionError("it opened")


async def test_a_file_that_was_changed_after_it_ran_is_refused(postgres_dsn: str) -> None:
    await _migrate(postgres_dsn, [*shipped_migrations(), NEXT])
    changed = Migration(NEXT.version, NEXT.name, NEXT.sql + " -- changed")
    with pytest.raises(MigrationFailed, match="another form"):
        await _migrate(postgres_dsn, [*shipped_migrations(), changed])


async def test_a_file_that_fails_leaves_nothing_behind(postgres_dsn: str) -> None:
    with pytest.raises(MigrationFailed, match="9002_broken"):
        await _migrate(postgres_dsn, [*shipped_migrations(), NEXT, BROKEN])

    assert await _value(
        postgres_dsn, "SELECT to_regclass('half') IS NULL AND to_regclass('next_one') IS NOT NULL"
    )
    assert await _migrate(postgres_dsn, [*shipped_migrations(), NEXT]) == []


async def test_of_many_starters_one_migrates(postgres_dsn: str) -> None:
    ran: list[str] = []

    async def start() -> None:
        ran.extend(await _migrate(postgres_dsn, [*shipped_migrations(), NEXT]))

    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(start)

    assert ran == ["9001_next.sql"]


async def test_a_lock_that_is_never_let_go_ends_the_wait(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate_module, "LOCK_WAIT_S", 0.2)

    async def work() -> None:
        holder = await asyncpg.connect(postgres_dsn)
        await holder.execute(f"SELECT pg_advisory_lock({migrate_module.LOCK_KEY})")
        connection = await connect(postgres_dsn, MIGRATION_SESSION)
        try:
            await migrate(connection, [*shipped_migrations(), NEXT])
        finally:
            await connection.close()
            await holder.close()

    async with open_portal() as portal:
        with pytest.raises(MigrationFailed, match="another server"):
            await portal.run(work)


async def test_a_visitor_takes_no_database_but_that_of_its_own_release(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_postgres_storage(postgres_dsn, migrates=False) as storage:
        assert await storage.healthy()
    monkeypatch.setattr(server_check, "shipped_migrations", lambda: [*shipped_migrations(), NEXT])
    with pytest.raises(MigrationFailed, match="9001_next"):
        async with open_postgres_storage(postgres_dsn, migrates=False):
            raise AssertionError("it opened")
    assert await _value(postgres_dsn, "SELECT to_regclass('next_one')") is None

    await _value(postgres_dsn, "DROP TABLE schema_migrations")
    with pytest.raises(MigrationFailed, match="no server"):
        async with open_postgres_storage(postgres_dsn, migrates=False):
            raise AssertionError("it opened")


async def _begin_before(dsn: str, version: int) -> None:
    """A database of the release before this migration."""
    await _value(dsn, "DROP SCHEMA public CASCADE")
    await _value(dsn, "CREATE SCHEMA public")
    await _migrate(dsn, [m for m in shipped_migrations() if m.version < version])


async def test_what_waits_and_what_runs_is_found_after_the_change_and_followed_whoever_writes(
    postgres_dsn: str,
) -> None:
    await _begin_before(postgres_dsn, NARROW)
    await _run(postgres_dsn, _OLD_ROWS)
    await _migrate(postgres_dsn, shipped_migrations())

    assert await _value(postgres_dsn, _MISSED) == 0
    assert await _value(postgres_dsn, _KEPT) == [500, 500]

    await _run(postgres_dsn, _OLD_WRITES)

    assert await _value(postgres_dsn, _MISSED) == 0
    assert await _value(postgres_dsn, _KEPT) == [500 - 100 + 30 - 10, 250]

    seldom = "SELECT count(*) FROM events WHERE unusual_status IS NOT NULL AND unusual_status <> status"

    assert await _value(postgres_dsn, seldom) == 0


async def test_agents_that_were_there_before_credentials_were_granted_keep_what_their_files_name(
    postgres_dsn: str,
) -> None:
    await _begin_before(postgres_dsn, LENDING)
    for parent in ("tenant", "workspace", "config_version"):
        await _value(postgres_dsn, f"ALTER TABLE zombies DROP CONSTRAINT zombies_{parent}_id_fkey")
    await _value(postgres_dsn, _OLD_AGENT)
    await _migrate(postgres_dsn, shipped_migrations())

    lending = msgspec.json.decode(str(await _value(postgres_dsn, "SELECT lending::text FROM zombies")))
    by = "system:upgrade"

    assert grants_in(lending) == {
        "hub": CredentialGrant(
            "hub", GrantStatus.APPROVED, Reach(("a.example.com",), ("http_request",)), 7, by, 7, by
        )
    }
    assert await _value(postgres_dsn, "SELECT decides_by_token FROM zombies") is True


async def test_events_that_were_there_before_they_had_numbers_keep_the_order_of_their_ids(
    postgres_dsn: str,
) -> None:
    await _begin_before(postgres_dsn, ARRIVAL)
    for number in (2, 3, 1):
        await _value(postgres_dsn, _OLD_EVENT.format(number=number))

    await _migrate(postgres_dsn, shipped_migrations())
    await _value(postgres_dsn, _OLD_EVENT.format(number=0))

    numbers = "SELECT array_agg(right(id::text, 1) ORDER BY arrival) FROM events"

    assert await _value(postgres_dsn, numbers) == ["1", "2", "3", "0"]
