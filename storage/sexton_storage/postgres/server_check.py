"""Looks, before anything else, whether a server is one that this program can work with."""

import asyncio
from collections.abc import Sequence
from time import monotonic
from typing import Final

import asyncpg

from sexton_storage.postgres.connections.bounds import CONNECT_S, MIGRATION_SESSION
from sexton_storage.postgres.connections.connection import FAULTS, Connection, Failure, failure_of
from sexton_storage.postgres.connections.dial import SettingsDropped, connect
from sexton_storage.postgres.connections.settings import BACKOFF_MAX_S, PostgresSettings
from sexton_storage.postgres.migrate import migrate, plan, verify
from sexton_storage.postgres.role_check import look_at_role
from sexton_storage.postgres.schema.steps import shipped_migrations
from sexton_storage.schema_plan import SchemaPlan
from sexton_storage.startup import ConnectFailed, PooledByTransaction, ServerTooOld

OLDEST_MAJOR: Final = 15
"""The oldest PostgreSQL that still gets fixes; the tests use the one that Sexton brings along."""
CONNECTIONS: Final = 4
"""How often the database may go away while its schema is brought up to date."""
_ALLOWED: Final = """
SELECT sum(CASE name WHEN 'max_connections' THEN setting::int ELSE -setting::int END)
  FROM pg_settings
 WHERE name IN ('max_connections', 'superuser_reserved_connections', 'reserved_connections')
"""
_STRAYED = (
    SettingsDropped,
    asyncpg.DuplicatePreparedStatementError,
    asyncpg.InvalidSQLStatementNameError,
)
"""What happens when two statements of a connection meet different sessions."""


async def bring_up(dsn: str, settings: PostgresSettings, *, migrates: bool) -> Sequence[str]:
    """Wait for the database, look whether it will do, and bring its schema up to date or look whether it is.

    Gives the names of the migrations that ran. A connection that is lost meanwhile is made again, and what is
    left is done. Raises ConnectFailed and MigrationFailed.
    """
    ran: list[str] = []
    migrations = shipped_migrations()
    for left in reversed(range(CONNECTIONS)):
        connection = await _wait_for(dsn, settings)
        try:
            if not migrates:
                return await verify(connection, migrations)
            return await migrate(connection, migrations, ran)
        except FAULTS as error:
            if failure_of(error, connection) is not Failure.LOST or not left:
                said = str(error).partition("\n")[0] or type(error).__name__
                raise ConnectFailed(
                    f"the database went away while its schema was looked at: {said}"
                ) from error
        finally:
            await connection.close(timeout=5)
    raise AssertionError(CONNECTIONS)


async def look_ahead(dsn: str, settings: PostgresSettings) -> SchemaPlan:
    """Look what bringing the schema up to date would do. Raises ConnectFailed and MigrationFailed."""
    connection = await _wait_for(dsn, settings)
    try:
        return await plan(connection, shipped_migrations())
    except FAULTS as error:
        raise ConnectFailed(f"the database went away while its schema was looked at: {error}") from error
    finally:
        await connection.close(timeout=5)


async def look_at_rights(dsn: str, settings: PostgresSettings) -> Sequence[str]:
    """Give what the role may do beyond what the server needs. Raises ConnectFailed."""
    connection = await _wait_for(dsn, settings)
    try:
        return await look_at_role(connection)
    finally:
        await connection.close(timeout=5)


async def look_at_connections(dsn: str, settings: PostgresSettings) -> int:
    """Give how many connections there may be of those who are not superusers. Raises ConnectFailed."""
    connection = await _wait_for(dsn, settings)
    try:
        return int(await connection.fetchval(_ALLOWED))
    finally:
        await connection.close(timeout=5)


async def _wait_for(dsn: str, settings: PostgresSettings) -> Connection:
    deadline = monotonic() + settings.connect_s
    timeout_s = min(CONNECT_S, settings.patience_s)
    while True:
        try:
            return await connect_first(dsn, timeout_s=timeout_s)
        except FAULTS as error:
            if failure_of(error) is not Failure.LOST or monotonic() > deadline:
                said = str(error).partition("\n")[0] or type(error).__name__
                raise ConnectFailed(f"the database cannot be reached: {said}") from error
            await asyncio.sleep(BACKOFF_MAX_S)


async def connect_first(dsn: str, *, timeout_s: float) -> Connection:
    """Open the first connection, with no bounds on how long a statement takes.

    Raises ServerTooOld, PooledByTransaction, and what ``connect`` raises.
    """
    try:
        connection = await connect(dsn, MIGRATION_SESSION, timeout_s=timeout_s)
        try:
            _check_version(connection)
            await _check_pooling(connection, dsn, timeout_s)
        except BaseException:
            connection.terminate()
            raise
    except _STRAYED as error:
        raise _pooled() from error
    return connection


def _check_version(connection: Connection) -> None:
    found = connection.get_server_version()
    if found.major < OLDEST_MAJOR:
        raise ServerTooOld(
            f"this is PostgreSQL {found.major}.{found.micro}, and Sexton needs {OLDEST_MAJOR} or later"
        )


async def _check_pooling(connection: Connection, dsn: str, timeout_s: float) -> None:
    session = await connection.fetchval("SELECT pg_backend_pid()")
    if session == connection.get_server_pid():
        return
    # Somebody stands between. A session that is ours alone is given to nobody else while we are connected.
    other = await connect(dsn, MIGRATION_SESSION, timeout_s=timeout_s)
    try:
        if await other.fetchval("SELECT pg_backend_pid()") == session:
            raise _pooled()
    finally:
        other.terminate()


def _pooled() -> PooledByTransaction:
    return PooledByTransaction(
        "a pooler before PostgreSQL gives each transaction another session, and Sexton needs one of its own"
    )
