"""A value of a batch's row cannot come to stand under another column's name."""

import asyncio
from collections.abc import Callable, Mapping
from itertools import permutations
from typing import Any, NamedTuple
from uuid import UUID

import pytest

from sexton_storage.postgres.connections.dial import connect_lane
from sexton_storage.postgres.sql.columns import Columns, Int4, record_reader


class Inner(NamedTuple):
    expires_at: int
    metered_at: int


class Outer(NamedTuple):
    id: UUID
    inner: Inner | None
    note: str | None
    json: Mapping[str, Any]


class Both(NamedTuple):
    expires_at: int
    metered_at: int


def attempts(outer: Outer) -> Int4:
    return 3 if outer.inner is None else 4


def both(outer: Outer) -> Both | None:
    return None if outer.inner is None else Both(outer.inner.expires_at + 10, outer.inner.metered_at + 10)


Declared = str | Callable[[Outer], Any]
ROWS = [Outer(UUID(int=1), Inner(100, 200), "one", {}), Outer(UUID(int=2), None, None, {})]


def test_columns_that_change_places_keep_their_values(postgres_dsn: str) -> None:
    """Two numbers of one type are swapped in the declaration: the statement reads the same."""

    async def read() -> list[list[dict[str, Any]]]:
        connection = await connect_lane(postgres_dsn)
        try:
            found = []
            declared: list[Declared] = ["inner.expires_at", "inner.metered_at", attempts]
            for order in permutations(declared):
                columns = Columns(Outer, *order, "id", "note", both)
                rows = await connection.fetch(
                    f"SELECT * FROM {columns.numbered_rows} ORDER BY ord", *columns.arrays(ROWS)
                )
                found.append([dict(row) for row in rows])
            return found
        finally:
            await connection.close()

    first, *others = asyncio.run(read())

    assert first == [
        {
            "inner_expires_at": 100,
            "inner_metered_at": 200,
            "attempts": 4,
            "id": UUID(int=1),
            "note": "one",
            "both_expires_at": 110,
            "both_metered_at": 210,
            "ord": 1,
        },
        {
            "inner_expires_at": None,
            "inner_metered_at": None,
            "attempts": 3,
            "id": UUID(int=2),
            "note": None,
            "both_expires_at": None,
            "both_metered_at": None,
            "ord": 2,
        },
    ]
    assert others == [first] * 5


@pytest.mark.parametrize("standard", ["on", "off"])
def test_constants_in_a_script_are_read_as_the_arguments_are(postgres_dsn: str, standard: str) -> None:
    notes = [
        "it's",
        'a "word"',
        "\\",
        "\\'; SELECT 1; --",
        "{a,b}",
        "two\nlines",
        "",
        "null",
        "žluťoučký",
        None,
    ]
    rows = [Outer(UUID(int=n), None, note, {}) for n, note in enumerate(notes)]
    columns = Columns(Outer, "id", "note", attempts)

    async def read() -> list[Any]:
        connection = await connect_lane(postgres_dsn)
        try:
            await connection.execute(f"SET standard_conforming_strings = {standard}")
            await connection.execute(f"""
                CREATE TEMPORARY TABLE kept (id uuid, note text, attempts int);
                PREPARE keep ({", ".join(columns.argument_types)}) AS
                INSERT INTO kept SELECT * FROM {columns.rows};
                EXECUTE keep ({columns.constants(rows)})
            """)
            return list(await connection.fetch("SELECT * FROM kept ORDER BY id"))
        finally:
            await connection.close()

    kept = asyncio.run(read())

    assert [tuple(row) for row in kept] == [(row.id, row.note, 3) for row in rows]


def test_a_row_is_read_by_the_names_of_the_record() -> None:
    read = record_reader(Inner)

    assert read({"metered_at": 2, "expires_at": 1}) == read({"expires_at": 1, "metered_at": 2}) == Inner(1, 2)


@pytest.mark.parametrize("wrong", ["inner.expired_at", "outer.id", "json"])
def test_a_column_without_a_field_or_a_type_is_refused_when_it_is_declared(wrong: str) -> None:
    with pytest.raises(TypeError):
        Columns(Outer, "id", wrong)


def test_two_columns_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="one name"):
        Columns(Outer, "id", "note", "id")
