"""Restores a dump into an empty database; until it is done no server starts there."""

import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final

import asyncpg

from sexton_storage.backups.after_restore import Connection, finish_restore
from sexton_storage.backups.copies import DUMP_FILE
from sexton_storage.backups.faults import BackupFault
from sexton_storage.backups.manifest import Manifest
from sexton_storage.backups.repository import Repository
from sexton_storage.backups.restores import write_keys
from sexton_storage.backups.tools import run_tool, tools_folder, without_password
from sexton_storage.embedded.ownership import owned
from sexton_storage.portal import open_portal
from sexton_storage.terms import RESTORE_MARK

_TABLES: Final = """
SELECT relname FROM pg_class
 WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND relname <> $1
 LIMIT 1
"""


async def restore_rows(
    repository: Repository, manifest: Manifest, dsn: str, data: Path, keys: Mapping[str, bytes]
) -> None:
    """Restore the rows in one transaction, make them ready in another. Raises BackupFault."""
    await _look_and_mark(dsn)
    address, password = without_password(dsn)
    words = ["--no-owner", "--no-privileges", "--single-transaction", "--exit-on-error", "--no-password"]
    dump = str(repository.path / manifest.id / DUMP_FILE)
    await run_tool(
        [str(tools_folder(os.environ) / "pg_restore"), *words, f"--dbname={address}", dump], password=password
    )
    with owned(data):
        write_keys(data, keys)
    await finish_restore(dsn, [f"DROP TABLE {RESTORE_MARK}"])


async def _look_and_mark(dsn: str) -> None:
    async def work(connection: Connection) -> None:
        found = await connection.fetchval(_TABLES, RESTORE_MARK)
        if found is not None:
            raise BackupFault(
                f"the database is not empty: it has {found}",
                "Name an empty one; if a restore was interrupted, drop the database and create it again",
            )
        await connection.execute(f"CREATE TABLE IF NOT EXISTS {RESTORE_MARK} ()")

    await _connected(dsn, work)


async def _connected(dsn: str, work: Callable[[Connection], Awaitable[None]]) -> None:
    async def connect_and_work() -> None:
        connection = await asyncpg.connect(dsn)
        try:
            await work(connection)
        finally:
            await connection.close()

    async with open_portal() as portal:
        try:
            await portal.run(connect_and_work)
        except (asyncpg.PostgresError, OSError) as fault:
            raise BackupFault(f"the database cannot be used: {fault}", "Check --database-url") from fault
