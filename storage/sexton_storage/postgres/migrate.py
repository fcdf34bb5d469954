"""Brings the schema to what this program needs: numbered SQL files, each run once, forward only."""

import asyncio
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

import asyncpg

from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.startup import DatabaseNewer, MigrationFailed, NotAllowed, SchemaBehind

LOCK_KEY = 0x5E870A
"""Advisory lock that one starting server holds while it migrates."""
LOCK_WAIT_S = 600.0
LOCK_POLL_S = 0.1
_NAME = re.compile(r"(\d{4})_[a-z0-9_]+\.sql")
_TABLE = """
CREATE TABLE IF NOT EXISTS schema_migrations (
    version integer PRIMARY KEY,
    name    text NOT NULL,
    sha256  text NOT NULL,
    at      timestamptz NOT NULL DEFAULT now()
)
"""


@dataclass(frozen=True, slots=True)
class Migration:
    version: int
    name: str
    sql: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()


def shipped_migrations() -> Sequence[Migration]:
    """Read the files of this release, in order."""
    folder = resources.files("sexton_storage.migrations")
    found = [(_NAME.fullmatch(f.name), f) for f in folder.iterdir()]
    return sorted(
        (Migration(int(m[1]), f.name, f.read_text(encoding="utf-8")) for m, f in found if m),
        key=lambda m: m.version,
    )


async def migrate(connection: Connection, migrations: Sequence[Migration]) -> Sequence[str]:
    """Run what has not run yet, each in a transaction of its own.

    Gives the names. Runs in the asyncio thread.

    Raises DatabaseNewer when the database has more than we know, NotAllowed when the role may not do it,
    MigrationFailed when a file that ran was changed since, when one fails, or when another server holds the
    lock for too long.
    """
    # First only looked at: where nothing is to be done, a role that may create nothing is enough.
    done = await _done(connection)
    if done is not None and not _missing(done, migrations):
        return []
    await _lock(connection)
    try:
        await _make_table(connection)
        new = _missing(await _done(connection) or {}, migrations)
        for migration in new:
            await _run(connection, migration)
        return [m.name for m in new]
    finally:
        if not connection.is_closed():
            await connection.execute(f"SELECT pg_advisory_unlock({LOCK_KEY})")


async def verify(connection: Connection, migrations: Sequence[Migration]) -> Sequence[str]:
    """Look whether the schema is this release's, and change nothing; the names of what ran, which is none.

    For those who visit a database that a server uses. Raises DatabaseNewer and MigrationFailed.
    """
    done = await _done(connection)
    if done is None:
        raise SchemaBehind("no server has made this database yet")
    if missing := _missing(done, migrations):
        raise SchemaBehind(f"the database is of an older release: {missing[0].name} has not run on it")
    return ()


Done = dict[int, tuple[str, str]]
"""What ran: version to name and SHA-256."""


async def _done(connection: Connection) -> Done | None:
    """What ran on this database; None when nothing ever did."""
    if await connection.fetchval("SELECT to_regclass('schema_migrations')") is None:
        return None
    try:
        rows = await connection.fetch("SELECT version, name, sha256 FROM schema_migrations ORDER BY version")
    except asyncpg.InsufficientPrivilegeError as error:
        raise NotAllowed(f"the role may not read which migrations ran: {error}") from error
    return {row[0]: (row[1], row[2]) for row in rows}


def _missing(done: Done, migrations: Sequence[Migration]) -> list[Migration]:
    _check(done, migrations)
    return [m for m in migrations if m.version not in done]


async def _make_table(connection: Connection) -> None:
    try:
        await connection.execute(_TABLE)
    except asyncpg.InsufficientPrivilegeError as error:
        raise NotAllowed(f"the role may not make tables: {error}") from error


async def _lock(connection: Connection) -> None:
    # Polled, not waited for: a waiter would hold a snapshot, and CREATE INDEX CONCURRENTLY in the lock's
    # holder waits for old snapshots to go.
    for _ in range(int(LOCK_WAIT_S / LOCK_POLL_S)):
        if await connection.fetchval("SELECT pg_try_advisory_lock($1)", LOCK_KEY):
            return
        await asyncio.sleep(LOCK_POLL_S)
    raise MigrationFailed(f"another server has been migrating this database for {LOCK_WAIT_S:.0f} s")


def _check(done: Done, migrations: Sequence[Migration]) -> None:
    known = {m.version: m for m in migrations}
    newest = max(known)
    for version, (name, sha256) in done.items():
        if version > newest:
            raise DatabaseNewer(
                f"the database has {name}, this release knows up to {newest:04}: run a newer release"
            )
        if version not in known or known[version].sha256 != sha256:
            raise MigrationFailed(f"{name} ran on this database in another form than the one of this release")


async def _run(connection: Connection, migration: Migration) -> None:
    try:
        async with connection.transaction():
            await connection.execute(migration.sql)
            await connection.execute(
                "INSERT INTO schema_migrations (version, name, sha256) VALUES ($1, $2, $3)",
                migration.version,
                migration.name,
                migration.sha256,
            )
    except asyncpg.InsufficientPrivilegeError as error:
        raise NotAllowed(f"the role may not run {migration.name}: {error}") from error
    except asyncpg.PostgresError as error:
        raise MigrationFailed(f"{migration.name}: {error}") from error
