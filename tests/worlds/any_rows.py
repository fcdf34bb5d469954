"""Puts a row into any table, as the catalogue of the database describes it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_COLUMNS = """
SELECT a.attname AS name, format_type(a.atttypid, NULL) AS type,
       (SELECT r.relname FROM pg_constraint c JOIN pg_class r ON r.oid = c.confrelid
         WHERE c.contype = 'f' AND c.conrelid = a.attrelid AND c.conkey = ARRAY[a.attnum]
         LIMIT 1) AS parent,
       (SELECT f.attname FROM pg_constraint c
          JOIN pg_attribute f ON f.attrelid = c.confrelid AND f.attnum = c.confkey[1]
         WHERE c.contype = 'f' AND c.conrelid = a.attrelid AND c.conkey = ARRAY[a.attnum]
         LIMIT 1) AS parent_key,
       (SELECT substring(pg_get_constraintdef(c.oid) FROM '= (?:ANY \\(+ARRAY\\[)?''([^'']*)''')
          FROM pg_constraint c
         WHERE c.contype = 'c' AND c.conrelid = a.attrelid AND c.conkey = ARRAY[a.attnum]
         LIMIT 1) AS choice
  FROM pg_attribute a
 WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
   AND a.attidentity = '' AND (a.attnotnull AND NOT a.atthasdef OR a.attname = ANY ($2))
 ORDER BY a.attnum
"""
_PARENTS = """
SELECT DISTINCT p.relname FROM pg_constraint c JOIN pg_class p ON p.oid = c.confrelid
 WHERE c.contype = 'f' AND c.conrelid = to_regclass($1) AND c.confrelid <> c.conrelid
"""
_VALUES = {
    "uuid": "gen_random_uuid()",
    "text": "'t' || {n}",
    "bigint": "{n} + 512",
    "integer": "{n} + 512",
    "smallint": "{n} % 100",
    "boolean": "false",
    "json": "'{{}}'",
    "jsonb": "'{{}}'",
    "bytea": "sha256('{n}')",
    "double precision": "0.5",
    "tsvector": "'word'",
    "timestamp with time zone": "now()",
    "date": "current_date",
    "text[]": "'{{}}'",
    "uuid[]": "'{{}}'",
    "bytea[]": "'{{}}'",
    "bigint[]": "'{{}}'",
    "integer[]": "'{{}}'",
    "inet": "'127.0.0.1'",
}

_BY_NAME = {"blob_id": "(SELECT id FROM blobs LIMIT 1)"}
"""A trigger looks whether it is there, for there is no foreign key."""


@dataclass(frozen=True, slots=True)
class Special:
    """What the catalogue does not tell: more columns to fill, and values that a condition wants."""

    values: dict[str, str]


async def put_row(connection: Any, table: str, number: int, special: dict[str, Special]) -> None:
    """Insert one row, unless its key is taken; what it refers to has rows."""
    wanted = special.get(table, Special({})).values
    columns = await connection.fetch(_COLUMNS, table, list(wanted))
    names = [row["name"] for row in columns]
    values = [_value(row, number, wanted) for row in columns]
    if not names:
        await connection.execute(f"INSERT INTO {table} DEFAULT VALUES")
        return
    quoted = ", ".join(f'"{name}"' for name in names)
    await connection.execute(
        f"INSERT INTO {table} ({quoted}) SELECT {', '.join(values)} ON CONFLICT DO NOTHING"
    )


def _value(column: Any, number: int, wanted: dict[str, str]) -> str:
    if column["name"] in wanted:
        return wanted[column["name"]]
    if column["name"] in _BY_NAME:
        return _BY_NAME[column["name"]]
    if column["parent"] is not None:
        return f"(SELECT {column['parent_key']} FROM {column['parent']} LIMIT 1)"
    if column["choice"] is not None:
        return f"'{column['choice']}'"
    return _VALUES[column["type"]].format(n=number)


async def in_order(connection: Any, tables: Sequence[str]) -> list[str]:
    """Tables after those that they refer to."""
    left = {table: {r[0] for r in await connection.fetch(_PARENTS, table)} for table in tables}
    ordered: list[str] = []
    while left:
        ready = sorted(table for table, parents in left.items() if not parents & left.keys())
        assert ready, f"these refer to each other: {sorted(left)}"
        ordered += ready
        for table in ready:
            del left[table]
    return ordered
