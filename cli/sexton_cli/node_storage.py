"""Chooses the database of a node or a command, and tells what keeps it from being used."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from time import time_ns

import structlog
import uuid_utils.compat

from sexton_cli.exits import CONFIG, UNAVAILABLE, StartupFault
from sexton_cli.settings import NodeSettings
from sexton_storage.embedded import EmbeddedServer, EmbeddedSettings, embedded_dsn, open_embedded_server
from sexton_storage.memory import open_memory_storage
from sexton_storage.postgres import (
    PostgresSettings,
    connections_allowed,
    excess_rights,
    migrate_database,
    open_postgres_storage,
    plan_migrations,
)
from sexton_storage.schema_plan import SchemaPlan
from sexton_storage.startup import (
    AlreadyOwned,
    MigrationFailed,
    PooledByTransaction,
    ServerTooOld,
    StartupFailed,
)
from sexton_storage.stores import Storage

EMBEDDED_CONNECTIONS = 60
"""What our own database allows at least."""
NANOS_PER_MS = 1_000_000
VISIT_S = 2.0
"""How long a command waits for the database of a server that should be running."""

Progress = Callable[[str], None]
log = structlog.get_logger()


async def open_storage(
    stack: AsyncExitStack, settings: NodeSettings, progress: Progress, *, checks: bool = True
) -> tuple[EmbeddedServer | None, Storage]:
    """The storage of a node, closed with the stack, and the server of its database if that is our own.

    ``checks``: whether to tell of rights that the database's role should not have. Raises StartupFault.
    """
    with _starting(settings):
        settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        if settings.in_memory:
            return None, await stack.enter_async_context(open_memory_storage(clock=_now_ms))
        database, dsn = await _database(stack, settings, progress)
        opening = open_postgres_storage(
            dsn, settings=_postgres(settings), new_id=uuid_utils.compat.uuid7, migrates=settings.migrate
        )
        storage = await stack.enter_async_context(opening)
        if checks and database is None and (excess := await excess_rights(dsn, settings=_postgres(settings))):
            log.warning("database_role_has_more_than_it_needs", rights=excess)
        return database, storage


async def migrate_schema(settings: NodeSettings, progress: Progress) -> Sequence[str]:
    """Bring the schema up to date, and nothing else; the names of what ran. Raises StartupFault."""
    async with AsyncExitStack() as stack:
        with _starting(settings):
            settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
            _, dsn = await _database(stack, settings, progress)
            return await migrate_database(dsn, settings=_postgres(settings))


async def plan_schema(settings: NodeSettings, progress: Progress) -> SchemaPlan:
    """Look what bringing the schema up to date would do, and do nothing. Raises StartupFault."""
    async with AsyncExitStack() as stack:
        with _starting(settings):
            settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
            _, dsn = await _database(stack, settings, progress)
            return await plan_migrations(dsn, settings=_postgres(settings))


async def room_for_connections(settings: NodeSettings, dsn: str) -> int:
    """How many connections the database of a node allows. Raises StartupFault."""
    with _starting(settings):
        return await connections_allowed(dsn, settings=_postgres(settings))


def _now_ms() -> int:
    return time_ns() // NANOS_PER_MS


def _postgres(settings: NodeSettings) -> PostgresSettings:
    found = PostgresSettings(connect_s=settings.database_wait_s)
    return found if settings.database_pool is None else replace(found, pool_size=settings.database_pool)


@contextmanager
def _starting(settings: NodeSettings) -> Iterator[None]:
    """Tell the operator what keeps the database from being used, and what to do about it."""
    try:
        yield
    except MigrationFailed as fault:
        way_out = fault.way_out or "Start the release that wrote this database, or restore a backup"
        raise StartupFault("UZ-STARTUP-005", str(fault), way_out, CONFIG) from fault
    except (ServerTooOld, PooledByTransaction) as fault:
        raise StartupFault("UZ-STARTUP-003", str(fault), fault.way_out, CONFIG) from fault
    except AlreadyOwned as fault:
        way_out = "Stop that server first, or choose another folder with --data"
        raise StartupFault("UZ-STARTUP-003", str(fault), way_out, UNAVAILABLE) from fault
    except StartupFailed as fault:
        way_out = "See the logs in the data folder" if settings.database_url is None else "Check DATABASE_URL"
        raise StartupFault("UZ-STARTUP-003", str(fault), way_out, UNAVAILABLE) from fault
    except OSError as fault:
        what = f"{settings.data}: {fault.strerror}"
        raise StartupFault("UZ-STARTUP-002", what, "Choose another folder with --data", CONFIG) from fault


@asynccontextmanager
async def visit_storage(data: Path, database_url: str | None) -> AsyncIterator[Storage]:
    """The storage of a server that runs, for a command beside it. Raises StartupFault."""
    settings = PostgresSettings(connect_s=VISIT_S, signals=False)
    dsn = embedded_dsn(data) if database_url is None else database_url
    opening = open_postgres_storage(dsn, settings=settings, new_id=uuid_utils.compat.uuid7, migrates=False)
    async with AsyncExitStack() as stack:
        try:
            storage = await stack.enter_async_context(opening)
        except MigrationFailed as fault:
            raise StartupFault(
                "UZ-STARTUP-005", str(fault), "Use the server's own release", CONFIG
            ) from fault
        except StartupFailed as fault:
            way_out = "Start the server ('sexton up'), or give its folder with --data"
            raise StartupFault("UZ-STARTUP-003", str(fault), way_out, UNAVAILABLE) from fault
        yield storage


async def database_excess(database_url: str) -> Sequence[str]:
    """What the role of this address may do that a server does not need. Raises StartupFailed."""
    return await excess_rights(database_url, settings=PostgresSettings(connect_s=VISIT_S))


async def _database(
    stack: AsyncExitStack, settings: NodeSettings, progress: Progress
) -> tuple[EmbeddedServer | None, str]:
    if settings.database_url is not None:
        progress("connecting to the database")
        return None, settings.database_url
    server = {"max_connections": str(max(EMBEDDED_CONNECTIONS, settings.connections_needed))}
    ours = EmbeddedSettings(settings.data, server, wal_archive=settings.wal_archive)
    embedded = open_embedded_server(ours, progress=progress)
    database = await stack.enter_async_context(embedded)
    return database, database.dsn
