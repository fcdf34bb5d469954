"""Walks one database through every schema, with rows in each table, and notes what each step locks.

``python -m tests.worlds.schema_walk`` writes ``locks.json`` again.
"""

import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import asyncpg
import msgspec
import trio

from sexton_storage.embedded import EmbeddedSettings, open_embedded_server
from sexton_storage.postgres.schema.locks import FILE, StepLocks
from sexton_storage.postgres.schema.steps import Migration, shipped_migrations
from tests.worlds.any_rows import Special, in_order, put_row

SPECIAL = {
    "blobs": Special({"state": "'kept'", "size": "7", "received": "7"}),
    "config_versions": Special({"status": "'ACTIVE'"}),
    "proposals": Special({"decided_at": "NULL"}),
    "mcp_servers": Special({"url": "'https://mcp.example.com'", "command": "''"}),
}
"""Conditions over several columns."""
_WEAKEST_FIRST = (
    "RowExclusiveLock",
    "ShareUpdateExclusiveLock",
    "ShareLock",
    "ShareRowExclusiveLock",
    "ExclusiveLock",
    "AccessExclusiveLock",
)
_SPELLED = {
    "RowExclusiveLock": "ROW EXCLUSIVE",
    "ShareUpdateExclusiveLock": "SHARE UPDATE EXCLUSIVE",
    "ShareLock": "SHARE",
    "ShareRowExclusiveLock": "SHARE ROW EXCLUSIVE",
    "ExclusiveLock": "EXCLUSIVE",
    "AccessExclusiveLock": "ACCESS EXCLUSIVE",
}
# A partition is told by the name of its table: theirs have dates.
_TABLES = """
SELECT c.oid, coalesce(parent.relname, c.relname) AS name, c.relfilenode,
       NOT c.relispartition AS takes_rows,
       (SELECT count(*) FROM pg_attribute a
         WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS width
  FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
  LEFT JOIN pg_class parent ON parent.oid = i.inhparent
 WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
"""
_LOCKS = "SELECT relation, mode FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'relation'"
_TOUCHED = """
SELECT relid, seq_tup_read + n_tup_ins + n_tup_upd + n_tup_del AS rows
  FROM pg_stat_xact_user_tables WHERE relid = ANY ($1)
"""


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    file: int
    takes_rows: bool
    width: int


@dataclass(slots=True)
class Walk:
    """What was seen on the way."""

    steps: dict[str, StepLocks] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    """How many rows were put into each table."""


async def _tables(connection: Any) -> dict[int, Table]:
    return {r[0]: Table(*tuple(r)[1:]) for r in await connection.fetch(_TABLES)}


async def apply_step(connection: Any, step: Migration) -> StepLocks:
    """Run a step as ``migrate`` does, in the transaction that is open, and tell what it did to others."""
    before = await _tables(connection)
    counted = dict(await _pairs(connection, list(before)))
    await connection.execute(step.sql)
    after = await _tables(connection)
    locks: dict[str, str] = {}
    for oid, mode in await connection.fetch(_LOCKS):
        if oid in before and mode in _WEAKEST_FIRST:
            name = before[oid].name
            locks[name] = max(locks.get(name, mode), mode, key=_WEAKEST_FIRST.index)
    through = {
        before[oid].name for oid, n in await _pairs(connection, list(before)) if n > counted.get(oid, 0)
    }
    through |= {t.name for oid, t in before.items() if oid in after and after[oid].file != t.file}
    known = {table.name for table in before.values()} - {"schema_migrations"}
    return StepLocks(
        creates=tuple(sorted({t.name for oid, t in after.items() if oid not in before} - known)),
        locks={name: _SPELLED[mode] for name, mode in sorted(locks.items()) if name in known},
        goes_through=tuple(sorted(through & known)),
    )


async def _pairs(connection: Any, oids: Sequence[int]) -> list[tuple[int, int]]:
    return [(r[0], r[1]) for r in await connection.fetch(_TOUCHED, oids)]


def parts_of(step: Migration) -> StepLocks:
    """What a step outside a transaction does: its statements may be only those that lock nobody out."""
    tables = sorted({statement.index[1] for statement in step.statements if statement.index})
    return StepLocks(locks=dict.fromkeys(tables, "SHARE UPDATE EXCLUSIVE"), goes_through=tuple(tables))


async def walk(dsn: str, migrations: Sequence[Migration]) -> Walk:
    """Run all steps on an empty database; after each, every table that is new or another has one row more."""
    seen = Walk()
    connection = await asyncpg.connect(dsn)
    try:
        widths: dict[str, int] = {}
        for number, step in enumerate(migrations, start=1):
            if step.in_transaction:
                async with connection.transaction():
                    seen.steps[step.name] = await apply_step(connection, step)
            else:
                seen.steps[step.name] = parts_of(step)
                for statement in step.statements:
                    await connection.execute(statement.sql)
            tables = {t.name: t.width for t in (await _tables(connection)).values() if t.takes_rows}
            changed = [name for name, width in tables.items() if widths.get(name) != width]
            for name in await in_order(connection, changed):
                await put_row(connection, name, number, SPECIAL)
                seen.rows[name] = seen.rows.get(name, 0) + 1
            widths = tables
    finally:
        await connection.close()
    return seen


def spelled(steps: dict[str, StepLocks]) -> bytes:
    """A line a step."""
    lines = [b"  %s: %s" % (msgspec.json.encode(name), msgspec.json.encode(s)) for name, s in steps.items()]
    return b"{\n" + b",\n".join(lines) + b"\n}\n"


EMPTY = "DROP SCHEMA public CASCADE; CREATE SCHEMA public"


async def begin_empty(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(EMPTY)
    finally:
        await connection.close()


async def _write() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with open_embedded_server(
            EmbeddedSettings(Path(folder), server={"fsync": "off", "autovacuum": "off"})
        ) as server:
            seen = await trio.to_thread.run_sync(lambda: asyncio.run(walk(server.dsn, shipped_migrations())))
    file = resources.files("sexton_storage.migrations") / FILE
    await trio.Path(str(file)).write_bytes(spelled(seen.steps))


if __name__ == "__main__":
    trio.run(_write)
