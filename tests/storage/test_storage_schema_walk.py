"""Every schema there ever was, with rows in it, becomes this release's; and no step keeps servers waiting."""

import asyncio
from collections.abc import Iterator
from typing import Any

import asyncpg
import pytest

from sexton_storage.postgres.schema.locks import StepLocks, holds_up, measured_locks
from sexton_storage.postgres.schema.steps import Migration, shipped_migrations
from tests.worlds.schema_walk import Walk, apply_step, begin_empty, spelled, walk

JUDGED_FROM = 57
"""What came before ran on all installations when this rule was made."""
MAY_HOLD_UP: dict[str, str] = {}
"""Steps that hold servers up while they go through a table's rows, each with why that table stays small."""
IN_PARTS = ("create index concurrently if not exists", "drop index concurrently if exists")
"""What a step outside a transaction may do, for it is begun again; beside it constraints are validated and
rows filled in pages."""
HELD_UP = {
    "an index": "create index late on events (event_type)",
    "a type": "alter table events alter column created_at type numeric",
    "a condition": "alter table events add constraint is_long check (length(actor) > 0)",
    "a column that is filled": "alter table events add column filled int default 1;"
    " alter table events alter column filled set not null",
    "a default that differs by row": "alter table events add column made uuid default gen_random_uuid()",
    "an update in a program": "alter table tenants add column b int;"
    " do $$ begin update events set actor = actor; end $$",
    "a key of another table": "alter table events add foreign key (tenant_id) references tenants not valid;"
    " update events set actor = actor",
}
NOT_HELD_UP = {
    "a new table": "create table fresh (id uuid primary key, tenant_id uuid references tenants)",
    "a column": "alter table events add column made int not null default 7",
    "a condition for later": "alter table events add constraint is_long check (length(actor) > 0) not valid",
    "rows": "update tenants set plan_tier = plan_tier",
}


@pytest.fixture(scope="module")
def walked(module_dsn: str) -> tuple[str, Walk]:
    async def work() -> Walk:
        await begin_empty(module_dsn)
        return await walk(module_dsn, shipped_migrations())

    return module_dsn, asyncio.run(work())


@pytest.fixture
def seen(walked: tuple[str, Walk]) -> Walk:
    return walked[1]


def _tried(dsn: str, sql: str) -> StepLocks:
    """What a step would do to others here; nothing is left of it."""

    async def work() -> StepLocks:
        connection: Any = await asyncpg.connect(dsn)
        try:
            transaction = connection.transaction()
            await transaction.start()
            found = await apply_step(connection, Migration(9001, "9001_tried.sql", sql))
            await transaction.rollback()
            return found
        finally:
            await connection.close()

    return asyncio.run(work())


def test_rows_of_each_schema_come_through_all_later_steps_and_are_read(walked: tuple[str, Walk]) -> None:
    dsn, seen = walked

    async def unread() -> Iterator[str]:
        connection: Any = await asyncpg.connect(dsn)
        try:
            tables = [
                r[0]
                for r in await connection.fetch(
                    "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"
                    " AND relkind IN ('r', 'p', 'v') AND NOT relispartition"
                )
            ]
            return iter([name for name in tables if not await connection.fetch(f"SELECT * FROM {name}")])
        finally:
            await connection.close()

    assert list(asyncio.run(unread())) == []
    assert len(seen.steps) == len(shipped_migrations())


def test_what_each_step_locks_is_kept_beside_the_files(seen: Walk) -> None:
    again = "python -m tests.worlds.schema_walk"

    assert seen.steps == measured_locks(), f"a step is new, or locks something else: run '{again}'"
    assert spelled(seen.steps).isascii()


def test_no_step_keeps_servers_waiting_for_as_long_as_a_table_is_large(seen: Walk) -> None:
    found = {name: step for name, step in seen.steps.items() if int(name[:4]) >= JUDGED_FROM}

    assert [name for name, step in found.items() if holds_up(step)] == sorted(MAY_HOLD_UP), (
        f"{found}: see docs/reference/migrations.md for what to do instead"
    )


def test_each_step_says_which_releases_it_still_serves() -> None:
    steps = [step for step in shipped_migrations() if step.version >= JUDGED_FROM]

    assert [step.name for step in steps if "-- serves-from:" not in step.sql] == []
    assert all(step.serves_from <= step.version for step in shipped_migrations())


def test_a_step_outside_a_transaction_does_only_what_can_be_done_again() -> None:
    in_parts = [step for step in shipped_migrations() if not step.in_transaction]
    statements = [
        (" ".join(part.sql.lower().split()), part.repeats) for s in in_parts for part in s.statements
    ]

    assert [
        sql
        for sql, repeats in statements
        if not repeats and not sql.startswith(IN_PARTS) and " validate constraint " not in sql
    ] == []


@pytest.mark.parametrize("what", HELD_UP)
def test_a_step_that_would_hold_servers_up_is_found(walked: tuple[str, Walk], what: str) -> None:
    assert holds_up(_tried(walked[0], HELD_UP[what])), what


@pytest.mark.parametrize("what", NOT_HELD_UP)
def test_a_step_that_holds_nobody_up_is_let_pass(walked: tuple[str, Walk], what: str) -> None:
    assert not holds_up(_tried(walked[0], NOT_HELD_UP[what])), what
