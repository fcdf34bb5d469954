"""Old and new releases share a schema while they may, and a step that was cut off is done by the next run."""

import asyncio
from collections.abc import Sequence
from typing import Any

import asyncpg
import pytest

from sexton_storage.portal import open_portal
from sexton_storage.postgres import migrate as migrate_module, open_postgres_storage, server_check
from sexton_storage.postgres.connections.bounds import MIGRATION_SESSION
from sexton_storage.postgres.connections.dial import connect
from sexton_storage.postgres.connections.settings import PostgresSettings
from sexton_storage.postgres.migrate import migrate, plan, verify
from sexton_storage.postgres.schema.steps import BadStep, Migration, shipped_migrations
from sexton_storage.postgres.server_check import bring_up
from sexton_storage.startup import ConnectFailed, DatabaseNewer, MigrationFailed

KNOWN = shipped_migrations()
NEWEST = KNOWN[-1].version
EXPAND = Migration(
    9001, "9001_more.sql", f"-- serves-from: {NEWEST:04}\nALTER TABLE tenants ADD COLUMN more int"
)
CONTRACT = Migration(9002, "9002_less.sql", "-- serves-from: 9001\nALTER TABLE tenants DROP COLUMN more")
INDEX = Migration(
    9003,
    "9003_index.sql",
    f"-- serves-from: {NEWEST:04}\n-- transaction: none\n\n"
    "create unique index concurrently if not exists by_value on pages (value);\n"
    "-- repeat\nupdate pages set filled = true\n"
    " where id in (select id from pages where not filled limit 2);\n",
)
PAGES = """
CREATE TABLE pages (id int, value int, filled bool);
INSERT INTO pages SELECT n, {value}, false FROM generate_series(1, 5) n
"""
IN_USE = "SELECT count(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND wait_event_type = 'Lock'"


class World:
    """A database, from the asyncio side; each call of ``migrate`` is a program of its own."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn

    async def migrate(self, *steps: Migration) -> Sequence[str]:
        connection = await connect(self.dsn, MIGRATION_SESSION)
        try:
            return await migrate(connection, [*KNOWN, *steps])
        finally:
            await connection.close(timeout=5)

    async def value(self, query: str) -> Any:
        connection: Any = await asyncpg.connect(self.dsn)
        try:
            return await connection.fetchval(query)
        finally:
            await connection.close()

    async def run(self, script: str) -> None:
        connection: Any = await asyncpg.connect(self.dsn)
        try:
            await connection.execute(script)
        finally:
            await connection.close()

    async def until(self, query: str) -> None:
        while not await self.value(query):
            await asyncio.sleep(0.01)


@pytest.fixture
def world(postgres_dsn: str) -> World:
    return World(postgres_dsn)


async def test_a_release_goes_on_serving_on_a_schema_that_only_grew(world: World) -> None:
    async with open_portal() as portal:
        assert await portal.run(lambda: world.migrate(EXPAND)) == [EXPAND.name]

    async with open_postgres_storage(world.dsn) as storage:
        assert await storage.healthy()


async def test_a_release_that_the_schema_has_left_behind_does_not_start_and_says_which_would(
    world: World,
) -> None:
    async with open_portal() as portal:
        await portal.run(lambda: world.migrate(EXPAND, CONTRACT))

    with pytest.raises(
        DatabaseNewer, match=rf"9002_less.sql, which serves releases from 9001 on; .* {NEWEST:04}"
    ) as told:
        async with open_postgres_storage(world.dsn):
            raise AssertionError("it opened")

    assert "Start the release that changed the schema" in told.value.way_out


def test_the_release_before_the_last_step_serves_after_it(world: World) -> None:
    async def work() -> Sequence[str]:
        await world.migrate(EXPAND, CONTRACT)
        connection = await connect(world.dsn, MIGRATION_SESSION)
        try:
            return await verify(connection, [*KNOWN, EXPAND])
        finally:
            await connection.close()

    assert asyncio.run(work()) == ()


def test_a_step_of_ours_that_a_newer_release_went_past_is_not_run_behind_its_back(world: World) -> None:
    late = Migration(9000, "9000_late.sql", "CREATE TABLE late ()")

    async def work() -> None:
        await world.migrate(EXPAND)
        await world.migrate(late)

    with pytest.raises(MigrationFailed, match=r"9000_late.sql never ran"):
        asyncio.run(work())


def test_a_database_that_only_older_releases_migrated_gets_the_mark(world: World) -> None:
    async def work() -> Any:
        await world.run("ALTER TABLE schema_migrations DROP COLUMN serves_from")
        assert await world.migrate() == []
        await world.migrate(EXPAND)
        return await world.value("SELECT array_agg(serves_from) FROM schema_migrations WHERE version > 9000")

    assert asyncio.run(work()) == [NEWEST]


def test_an_index_that_a_failed_build_left_invalid_is_built_again(world: World) -> None:
    async def work() -> tuple[Any, Any]:
        await world.run(PAGES.format(value=1))
        with pytest.raises(MigrationFailed, match=r"9003_index.sql: could not create unique index"):
            await world.migrate(INDEX)
        assert await world.value(
            "SELECT NOT indisvalid FROM pg_index WHERE indexrelid = 'by_value'::regclass"
        )
        await world.run("UPDATE pages SET value = id")
        assert await world.migrate(INDEX) == [INDEX.name]
        return (
            await world.value("SELECT indisvalid FROM pg_index WHERE indexrelid = 'by_value'::regclass"),
            await world.value("SELECT count(*) FROM pages WHERE filled"),
        )

    assert asyncio.run(work()) == (True, 5)


@pytest.mark.parametrize("step", [EXPAND, INDEX], ids=["transaction", "parts"])
def test_a_session_that_is_ended_in_a_step_leaves_it_to_the_next(
    world: World, step: Migration, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed program, a lost machine and a failover are one to the database: the session ends."""
    monkeypatch.setattr(server_check, "shipped_migrations", lambda: [*KNOWN, step])

    async def work() -> Any:
        await world.run(PAGES.format(value="n"))
        holder: Any = await asyncpg.connect(world.dsn)
        held = holder.transaction()
        await held.start()
        await holder.execute("LOCK tenants; LOCK pages")
        running = asyncio.create_task(bring_up(world.dsn, PostgresSettings(), migrates=True))
        await world.until(IN_USE)
        await world.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE pid <> pg_backend_pid() AND wait_event_type = 'Lock'"
        )
        await held.rollback()
        await holder.close()
        return await running

    assert asyncio.run(work()) == [step.name]


def test_a_database_that_goes_away_again_and_again_is_told(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    end_self = Migration(9001, "9001_end.sql", "SELECT pg_terminate_backend(pg_backend_pid())")
    monkeypatch.setattr(server_check, "shipped_migrations", lambda: [*KNOWN, end_self])

    with pytest.raises(ConnectFailed, match="went away while its schema was looked at"):
        asyncio.run(bring_up(world.dsn, PostgresSettings(), migrates=True))

    assert asyncio.run(world.value("SELECT count(*) FROM schema_migrations WHERE version > 9000")) == 0


def test_a_table_that_somebody_holds_is_asked_for_again_and_others_get_through_between(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate_module, "LOCK_MS", 20)
    monkeypatch.setattr(migrate_module, "pause_s", lambda *_: 0.01)

    async def work() -> tuple[Any, Any]:
        holder: Any = await asyncpg.connect(world.dsn)
        held = holder.transaction()
        await held.start()
        await holder.execute("SELECT FROM tenants")
        running = asyncio.create_task(world.migrate(EXPAND))
        await world.until(IN_USE)
        read = await world.value("SELECT count(*) FROM tenants")
        await held.rollback()
        await holder.close()
        return read, await running

    assert asyncio.run(work()) == (0, [EXPAND.name])


def test_a_table_that_is_never_let_go_ends_the_step_and_names_who_holds_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate_module, "LOCK_MS", 10)
    monkeypatch.setattr(migrate_module, "TRIES", 2)
    monkeypatch.setattr(migrate_module, "pause_s", lambda *_: 0.0)

    async def work() -> None:
        holder: Any = await asyncpg.connect(world.dsn, server_settings={"application_name": "a report"})
        try:
            await holder.execute("BEGIN; SELECT FROM tenants")
            await world.migrate(EXPAND)
        finally:
            await holder.close()

    with pytest.raises(MigrationFailed, match=r"9001_more.sql did not get a table .* a report \(pid \d+\)"):
        asyncio.run(work())


def test_a_database_that_takes_no_writes_is_told_and_left_as_it_is(world: World) -> None:
    async def work() -> None:
        name = await world.value("SELECT current_database()")
        await world.run(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        await bring_up(world.dsn, PostgresSettings(connect_s=0), migrates=True)

    with pytest.raises(
        ConnectFailed, match="it takes no writes: it is a standby, or default_transaction_read_only"
    ):
        asyncio.run(work())


def test_a_plan_names_steps_and_rows_and_changes_nothing(world: World) -> None:
    async def work() -> Any:
        await world.run("DELETE FROM schema_migrations WHERE version >= 56")
        connection = await connect(world.dsn, MIGRATION_SESSION)
        try:
            found = await plan(connection, [*[m for m in KNOWN if m.version <= 56], EXPAND])
        finally:
            await connection.close()
        assert await world.value("SELECT max(version) FROM schema_migrations") == 55
        return found

    found = asyncio.run(work())
    first, second = found.steps

    assert (found.at, found.serves_from) == ("0055_metering_slices.sql", max(56, NEWEST))
    assert (first.name, first.measured, second.measured) == ("0056_shadow_runs.sql", True, False)
    assert {lock.table: (lock.mode, lock.goes_through) for lock in first.locks} == {
        "bulk_jobs": ("ACCESS EXCLUSIVE", True),
        "events": ("ACCESS EXCLUSIVE", True),
        "leases": ("ACCESS EXCLUSIVE", False),
    }


@pytest.mark.parametrize(
    ("mark", "asked"),
    [
        ("serves-from: soon", "serves_from"),
        ("serves-from: 9002", "serves_from"),
        ("transaction: two", "in_transaction"),
    ],
)
def test_a_file_whose_first_lines_make_no_sense_is_refused(mark: str, asked: str) -> None:
    with pytest.raises(BadStep, match=r"9001_odd.sql"):
        getattr(Migration(9001, "9001_odd.sql", f"-- {mark}\nSELECT 1"), asked)
