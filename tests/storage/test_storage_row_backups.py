"""A database of an operator's own: its rows are dumped while it serves, and restored into an empty one."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from sexton_storage.backups.after_restore import TOKENS_SKIPPED
from sexton_storage.backups.copies import Source, make_backup
from sexton_storage.backups.faults import BackupFault
from sexton_storage.backups.manifest import Kind, Manifest
from sexton_storage.backups.repository import Repository
from sexton_storage.backups.row_restores import restore_rows
from sexton_storage.embedded import EmbeddedServer
from sexton_storage.postgres import open_postgres_storage
from sexton_storage.records.events import EventStatus
from sexton_storage.refusals import Lost
from sexton_storage.schema_number import schema_number
from sexton_storage.startup import RestoreUnfinished
from sexton_storage.terms import RESTORE_MARK
from sexton_storage.writes import EventEnd
from tests.worlds.storage import StorageWorld, metered

DONE = EventEnd(EventStatus.PROCESSED, response_text="It was the disk.")
KEYS = {"master.keys": b"1:c2VjcmV0\n"}
TABLES = """
SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') ORDER BY 1
"""


async def ask(dsn: str, query: str) -> list[Any]:
    connection = await asyncpg.connect(dsn)
    try:
        return [row[0] for row in await connection.fetch(query)]
    finally:
        await connection.close()


def rows_of(dsn: str) -> dict[str, int]:
    """How many rows each table has, but for the marks of who writes there at the moment."""
    names = [name for name in asyncio.run(ask(dsn, TABLES)) if name != "journal_lanes"]
    return {name: asyncio.run(ask(dsn, f"SELECT count(*) FROM {name}"))[0] for name in names}


@pytest.fixture
def empty_dsn(embedded_server: EmbeddedServer) -> Iterator[str]:
    """The address of a database that has just been created."""
    asyncio.run(
        ask(embedded_server.superuser_dsn, "CREATE DATABASE restored OWNER sexton TEMPLATE template0")
    )
    yield embedded_server.dsn.replace("/sexton?", "/restored?")
    asyncio.run(ask(embedded_server.superuser_dsn, "DROP DATABASE restored WITH (FORCE)"))


async def dumped(dsn: str, repository: Repository) -> Manifest:
    async def now() -> int:
        return 1_732_060_800_000

    return await make_backup(repository, Source(dsn, Kind.DUMP, "0.1.0", schema_number(), now), None)


async def test_rows_are_restored_into_an_empty_database_and_what_ran_then_may_not_write(
    postgres_dsn: str, empty_dsn: str, tmp_path: Path
) -> None:
    repository = Repository(tmp_path / "backups")
    async with open_postgres_storage(postgres_dsn) as storage:
        world = await StorageWorld(storage).found()
        done, _ = await world.renew(await world.lease(), nanos=700)
        await world.end(done, DONE, nanos=41)
        going, _ = await world.renew(await world.lease(), nanos=300)
        manifest = await dumped(postgres_dsn, repository)
        balance = await world.balance()

        await restore_rows(repository, manifest, empty_dsn, tmp_path / "data", KEYS)

    assert rows_of(empty_dsn) == rows_of(postgres_dsn)

    async with open_postgres_storage(empty_dsn) as storage:
        world.storage = storage
        stale = await storage.journal.write(world.renewal(going))
        due = await storage.leases.expired(limit=10)

        assert await metered(world, [done.event_id, going.event_id]) == 1_041
        assert await world.balance() == balance
        assert isinstance(stale, Lost)
        assert due == [going.id]
    [fence, _] = asyncio.run(ask(empty_dsn, "SELECT fence FROM agent_heads ORDER BY fence DESC"))
    assert fence == going.fencing_token + TOKENS_SKIPPED
    assert (tmp_path / "data" / "master.keys").read_bytes() == KEYS["master.keys"]


async def test_a_database_that_is_not_empty_is_left_as_it_is(postgres_dsn: str, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "backups")
    async with open_postgres_storage(postgres_dsn) as storage:
        await StorageWorld(storage).found()
    manifest = await dumped(postgres_dsn, repository)
    before = rows_of(postgres_dsn)

    with pytest.raises(BackupFault, match="the database is not empty: it has ") as refused:
        await restore_rows(repository, manifest, postgres_dsn, tmp_path / "data", KEYS)

    assert "Name an empty one" in refused.value.way_out
    assert rows_of(postgres_dsn) == before
    assert not (tmp_path / "data").exists()


async def test_a_restore_that_failed_in_the_middle_leaves_nothing_that_a_server_starts_on(
    postgres_dsn: str, empty_dsn: str, tmp_path: Path
) -> None:
    repository = Repository(tmp_path / "backups")
    manifest = await dumped(postgres_dsn, repository)
    [dump] = (tmp_path / "backups").rglob("*.dump")
    whole = dump.read_bytes()
    dump.write_bytes(whole[: len(whole) // 2])

    with pytest.raises(BackupFault, match="pg_restore failed"):
        await restore_rows(repository, manifest, empty_dsn, tmp_path / "data", KEYS)

    assert rows_of(empty_dsn).keys() == {RESTORE_MARK}

    with pytest.raises(RestoreUnfinished):
        async with open_postgres_storage(empty_dsn):
            raise AssertionError("it opened")

    dump.write_bytes(whole)
    await restore_rows(repository, manifest, empty_dsn, tmp_path / "data", KEYS)
    async with open_postgres_storage(empty_dsn) as storage:
        assert await storage.healthy()
