"""Brings the schema to what this program needs: numbered SQL files, each run once, forward only."""

import asyncio
import logging
import random
from collections.abc import Sequence
from contextlib import suppress
from typing import assert_never

import asyncpg

from sexton_storage.postgres.connections.connection import FAULTS, Connection, Failure, failure_of
from sexton_storage.postgres.schema.fit import Differs, Fits, Gap, Ran, TooOld, judge
from sexton_storage.postgres.schema.locks import StepLocks, measured_locks
from sexton_storage.postgres.schema.patience import LOCK_MS, TRIES, pause_s
from sexton_storage.postgres.schema.steps import Migration, Statement
from sexton_storage.schema_plan import PlannedLock, PlannedStep, SchemaPlan
from sexton_storage.startup import DatabaseNewer, MigrationFailed, NotAllowed, RestoreUnfinished, SchemaBehind
from sexton_storage.terms import RESTORE_MARK

LOCK_KEY = 0x5E870A
"""Advisory lock that one starting server holds while it migrates."""
LOCK_WAIT_S = 600.0
LOCK_POLL_S = 0.1
_TABLE = """
CREATE TABLE IF NOT EXISTS schema_migrations (
    version     integer PRIMARY KEY,
    name        text NOT NULL,
    sha256      text NOT NULL,
    at          timestamptz NOT NULL DEFAULT now(),
    serves_from integer
)
"""
_HAS_MARK = """
SELECT EXISTS (SELECT FROM pg_attribute
                WHERE attrelid = 'schema_migrations'::regclass AND attname = 'serves_from')
"""
_ADD_MARK = "ALTER TABLE schema_migrations ADD COLUMN IF NOT EXISTS serves_from integer"
# Through JSON, for a database that only older releases have migrated lacks the column.
_RAN = """
SELECT version, name, sha256, (to_jsonb(s) ->> 'serves_from')::integer
  FROM schema_migrations s ORDER BY version
"""
_NOTE = "INSERT INTO schema_migrations (version, name, sha256, serves_from) VALUES ($1, $2, $3, $4)"
_IN_THE_WAY = """
SELECT pid, coalesce(nullif(application_name, ''), 'a client'), extract(epoch FROM now() - xact_start)::float8
  FROM pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL
 ORDER BY xact_start LIMIT 1
"""
_INVALID = "SELECT EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass($1) AND NOT indisvalid)"
_ROWS = "SELECT reltuples::bigint FROM pg_class WHERE oid = to_regclass($1)"
log = logging.getLogger("sexton.storage")


async def migrate(
    connection: Connection, migrations: Sequence[Migration], ran: list[str] | None = None
) -> Sequence[str]:
    """Run what has not run yet, each in a transaction of its own unless it says otherwise.

    Gives the names, and adds each to ``ran`` as soon as it is done. Runs in the asyncio thread.

    Raises DatabaseNewer when the schema has left this release behind, NotAllowed when the role may not do it,
    MigrationFailed when a file that ran was changed since, when one fails, or when another server holds the
    lock for too long; and what asyncpg raises when the connection is lost: what was done stays done.
    """
    names = [] if ran is None else ran
    # First only looked at: where nothing is to be done, a role that may create nothing is enough.
    done = await _done(connection)
    if done is not None and not _pending(done, migrations, tells=True):
        return names
    await _lock(connection)
    try:
        await _make_table(connection)
        for migration in _pending(await _done(connection) or [], migrations):
            await _run(connection, migration)
            names.append(migration.name)
        return names
    finally:
        # A session that ends lets go by itself.
        with suppress(*FAULTS):
            await connection.execute(f"SELECT pg_advisory_unlock({LOCK_KEY})")


async def verify(connection: Connection, migrations: Sequence[Migration]) -> Sequence[str]:
    """Look whether this release works on the schema, and change nothing; gives no names, for nothing ran.

    For those who visit a database that a server uses. Raises DatabaseNewer and MigrationFailed.
    """
    done = await _done(connection)
    if done is None:
        raise SchemaBehind("no server has made this database yet")
    if pending := _pending(done, migrations, tells=True):
        raise SchemaBehind(f"the database is of an older release: {pending[0].name} has not run on it")
    return ()


async def plan(connection: Connection, migrations: Sequence[Migration]) -> SchemaPlan:
    """Look what would run, and change nothing. Raises DatabaseNewer and MigrationFailed."""
    done = await _done(connection) or []
    pending = _pending(done, migrations)
    measured = measured_locks()
    return SchemaPlan(
        tuple([await _planned(connection, step, measured.get(step.name)) for step in pending]),
        done[-1].name if done else None,
        max([*(step.needs for step in done), *(step.serves_from for step in pending)], default=None),
    )


async def _planned(connection: Connection, step: Migration, seen: StepLocks | None) -> PlannedStep:
    found = StepLocks() if seen is None else seen
    tables = dict.fromkeys(found.goes_through, "ACCESS SHARE") | found.locks
    locks = [
        PlannedLock(table, mode, await _rows(connection, table), table in found.goes_through)
        for table, mode in sorted(tables.items())
    ]
    return PlannedStep(
        step.name,
        step.in_transaction,
        step.serves_from,
        found.creates,
        tuple(locks),
        measured=seen is not None,
    )


async def _rows(connection: Connection, table: str) -> int:
    rows = await connection.fetchval(_ROWS, table)
    # A table that a step before this one makes.
    return -1 if rows is None else int(rows)


async def _done(connection: Connection) -> list[Ran] | None:
    """What ran on this database, in order; None when nothing ever did."""
    if await connection.fetchval("SELECT to_regclass($1)", RESTORE_MARK) is not None:
        raise RestoreUnfinished("a restore into this database has not ended")
    if await connection.fetchval("SELECT to_regclass('schema_migrations')") is None:
        return None
    try:
        return [Ran(*row) for row in map(tuple, await connection.fetch(_RAN))]
    except asyncpg.InsufficientPrivilegeError as error:
        raise NotAllowed(f"the role may not read which migrations ran: {error}") from error


def _pending(
    done: Sequence[Ran], migrations: Sequence[Migration], *, tells: bool = False
) -> Sequence[Migration]:
    match judge(done, migrations):
        case Fits(pending, ahead):
            if tells and ahead is not None:
                log.warning("the schema is of a newer release, and %s serves this one too", ahead)
            return pending
        case TooOld(newest, needs, knows):
            raise DatabaseNewer(
                f"the database has {newest}, which serves releases from {needs:04} on;"
                f" this release knows up to {knows:04}"
            )
        case Differs(name):
            raise MigrationFailed(f"{name} ran on this database in another form than the one of this release")
        case Gap(name, newest):
            raise MigrationFailed(f"a newer release ran {newest} on this database, and {name} never ran")
        case strange:
            assert_never(strange)


async def _make_table(connection: Connection) -> None:
    try:
        await connection.execute(_TABLE)
        # Asked first: adding it would lock the table even where it is there.
        if not await connection.fetchval(_HAS_MARK):
            await connection.execute(_ADD_MARK)
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


async def _run(connection: Connection, migration: Migration) -> None:
    try:
        if migration.in_transaction:
            await _run_in_transaction(connection, migration)
        else:
            await _run_in_parts(connection, migration)
    except asyncpg.InsufficientPrivilegeError as error:
        raise NotAllowed(f"the role may not run {migration.name}: {error}") from error
    except FAULTS as error:
        if failure_of(error, connection) is Failure.LOST:
            raise
        raise MigrationFailed(f"{migration.name}: {error}") from error


async def _run_in_transaction(connection: Connection, migration: Migration) -> None:
    last: Exception | None = None
    for attempt in range(TRIES):
        try:
            async with connection.transaction():
                await connection.execute(f"SET LOCAL lock_timeout = {LOCK_MS}")
                await connection.execute(migration.sql)
                await _note(connection, migration)
        except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError) as error:
            if not attempt:
                log.warning("%s waits for a table: %s", migration.name, await _in_the_way(connection))
            last = error
        else:
            return
        await asyncio.sleep(pause_s(attempt, random.random()))  # noqa: S311 - it keeps no secret
    raise MigrationFailed(
        f"{migration.name} did not get a table that it has to lock, in {TRIES} tries:"
        f" {await _in_the_way(connection)}"
    ) from last


async def _in_the_way(connection: Connection) -> str:
    """Who has had a transaction open for longest."""
    found = await connection.fetchrow(_IN_THE_WAY)
    if found is None:
        return "who held it is gone again"
    return f"{found[1]} (pid {found[0]}) has had a transaction open for {found[2]:.0f} s"


async def _run_in_parts(connection: Connection, migration: Migration) -> None:
    # Nothing here locks others out, so it waits for as long as it takes. A step that was cut off begins
    # again: each statement finds what it did.
    for statement in migration.statements:
        if statement.index is not None:
            await _drop_invalid(connection, statement.index[0])
        await _run_part(connection, statement)
    await _note(connection, migration)


async def _drop_invalid(connection: Connection, index: str) -> None:
    """Drop what a build that was cut off, or failed, has left: IF NOT EXISTS would take it for the index."""
    if await connection.fetchval(_INVALID, index):
        await connection.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {index}")


async def _run_part(connection: Connection, statement: Statement) -> None:
    while True:
        tag = await connection.execute(statement.sql)
        if not statement.repeats or tag.split()[-1] == "0":
            return


async def _note(connection: Connection, migration: Migration) -> None:
    await connection.execute(
        _NOTE, migration.version, migration.name, migration.sha256, migration.serves_from
    )
