"""Metering rows become one for each attempt, and no sum changes, whoever writes, dies or comes at once."""

import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest
import trio

from sexton_storage.errors import SumsDiffer
from sexton_storage.portal import open_portal
from sexton_storage.postgres import PostgresStorage
from sexton_storage.records.events import EventStatus
from sexton_storage.records.leases import Lease
from sexton_storage.records.metering import Compacted
from sexton_storage.writes import EventEnd
from tests.patience import PATIENCE_S
from tests.worlds.storage import HOUR_MS, StorageWorld

DONE = EventEnd(EventStatus.PROCESSED)
ALL_DAYS = -24 * HOUR_MS
"""To keep that long keeps nothing: today, too, ended so long ago."""
RENEWALS = 3
DAYS = "SELECT relid::text FROM pg_partition_tree('metering_slices') WHERE isleaf ORDER BY 1"
SUMS = """
SELECT tenant_id, count(DISTINCT (event_id, attempt)) AS attempts, sum(charged_nanos) AS charged,
       sum(run_fee_nanos) AS fees, sum(token_cost_nanos) AS costs, sum(d_input_tokens) AS input,
       sum(d_cached_tokens) AS cached, sum(d_output_tokens) AS output, sum(run_ms) AS ms
  FROM metering GROUP BY tenant_id ORDER BY tenant_id
"""
COUNTS = "SELECT (SELECT count(*) FROM metering_slices), (SELECT count(*) FROM metering_runs)"
CHANGES_A_SUM = """
CREATE FUNCTION takes_a_nano() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    new.charged_nanos := new.charged_nanos - 1;
    new.run_fee_nanos := new.run_fee_nanos + 1;
    RETURN new;
END $$;
CREATE TRIGGER takes_a_nano BEFORE INSERT ON metering_runs FOR EACH ROW EXECUTE FUNCTION takes_a_nano();
"""
# What an older release has, beside this one: it writes into the table that was.
OLDER = """
INSERT INTO metering
       (event_id, attempt, slice_seq, zombie_id, workspace_id, tenant_id, d_input_tokens, d_cached_tokens,
        d_output_tokens, run_ms, run_fee_nanos, token_cost_nanos, charged_nanos, created_at,
        d_cache_write_tokens)
SELECT event_id, attempt, slice_seq + 100, zombie_id, workspace_id, tenant_id, 1, 1, 1, 1, 1, 1, 2,
       created_at, 0
  FROM metering
"""
OF_BEFORE = """
WITH moved AS (DELETE FROM metering_slices RETURNING *) INSERT INTO metering_runs SELECT * FROM moved
"""
# An id whose first bits are no time of these days.
TO_THE_REST = "UPDATE metering_slices SET event_id = md5(event_id::text)::uuid"
END_COMPACTION = """
SELECT count(pg_terminate_backend(a.pid)) FROM pg_stat_activity a
 WHERE a.query LIKE '%sexton_compact_slices%' AND a.pid <> pg_backend_pid()
   AND EXISTS (SELECT FROM pg_locks l WHERE l.pid = a.pid AND NOT l.granted)
"""


async def on(dsn: str, work: Callable[[asyncpg.Connection], Awaitable[Any]]) -> Any:
    async def connected() -> Any:
        connection = await asyncpg.connect(dsn)
        try:
            return await work(connection)
        finally:
            await connection.close()

    async with open_portal() as portal:
        return await portal.run(connected)


async def sums(dsn: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in await on(dsn, lambda c: c.fetch(SUMS))]


async def counts(dsn: str) -> tuple[int, int]:
    slices, runs = await on(dsn, lambda c: c.fetchrow(COUNTS))
    return slices, runs


async def run(world: StorageWorld, *, ends: bool = True) -> Lease:
    lease = await world.lease()
    for turn in range(RENEWALS):
        lease, _ = await world.renew(lease, 1_000 + turn)
    if ends:
        await world.end(lease, DONE, nanos=7)
    return lease


async def test_a_day_becomes_a_row_for_each_attempt_and_its_partition_goes(
    postgres_storage: PostgresStorage, postgres_dsn: str
) -> None:
    world = await StorageWorld(postgres_storage).found()
    other = await world.beside(2_500)
    leases = [await run(one) for one in (world, world, other)]
    before, days = await sums(postgres_dsn), await on(postgres_dsn, lambda c: c.fetch(DAYS))
    metering = postgres_storage.metering

    assert await metering.compact(keep_ms=48 * HOUR_MS, limit=10) is None

    done = [await metering.compact(keep_ms=ALL_DAYS, limit=10) for _ in days]

    assert [(one.slices, one.runs) for one in done if one is not None and one.slices] == [(12, 3)]
    assert await sums(postgres_dsn) == before
    assert await counts(postgres_dsn) == (0, 3)

    (row,) = await metering.list(world.tenant_id, leases[0].event_id)
    assert (row.slice_seq, row.charged_nanos) == (RENEWALS + 1, 3 * 1_000 + 3 + 7)

    left = {row[0] for row in await on(postgres_dsn, lambda c: c.fetch(DAYS))}
    assert len(left) == len(days) - 2, "yesterday's and today's are gone"

    assert await metering.make_ready(2) == 2

    await run(world)

    assert await counts(postgres_dsn) == (RENEWALS + 1, 3)


async def test_a_sum_that_would_change_is_refused_and_nothing_is_lost(
    postgres_storage: PostgresStorage, postgres_dsn: str
) -> None:
    world = await StorageWorld(postgres_storage).found()
    await run(world)
    before = await sums(postgres_dsn), await counts(postgres_dsn)
    await on(postgres_dsn, lambda c: c.execute(CHANGES_A_SUM))
    await postgres_storage.metering.compact(keep_ms=ALL_DAYS, limit=10)  # Yesterday's, which is empty.

    with pytest.raises(SumsDiffer, match="would change"):
        await postgres_storage.metering.compact(keep_ms=ALL_DAYS, limit=10)

    assert (await sums(postgres_dsn), await counts(postgres_dsn)) == before


async def test_runs_that_go_on_keep_their_slices_and_others_do_not_wait(
    postgres_storage: PostgresStorage, postgres_dsn: str
) -> None:
    world = await StorageWorld(postgres_storage).found()
    live = await run(world, ends=False)
    await run(world)
    rows = await counts(postgres_dsn)

    done = [await postgres_storage.metering.compact(keep_ms=ALL_DAYS, limit=10) for _ in range(6)]
    assert not any(one.slices for one in done if one is not None)
    assert await counts(postgres_dsn) == rows

    await world.renew(live)

    assert (await counts(postgres_dsn))[0] == rows[0] + 1


async def test_whoever_is_killed_leaves_all_as_it_was(
    postgres_storage: PostgresStorage, postgres_dsn: str
) -> None:
    world = await StorageWorld(postgres_storage).found()
    await run(world)
    metering = postgres_storage.metering
    await metering.compact(keep_ms=ALL_DAYS, limit=10)  # Yesterday's, which is empty.
    before = await sums(postgres_dsn)
    ended: list[Compacted | None] = []

    async def compact() -> None:
        ended.append(await metering.compact(keep_ms=ALL_DAYS, limit=10))

    async with open_portal() as portal:
        reader = await portal.run(lambda: asyncpg.connect(postgres_dsn))
        # Who looks at others in a transaction sees them as they were at the first look.
        killer = await portal.run(lambda: asyncpg.connect(postgres_dsn))
        # A reader of the whole table: whoever would drop a part of it has to wait.
        await portal.run(lambda: reader.execute("BEGIN; SELECT FROM metering_slices"))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(compact)
            with trio.fail_after(PATIENCE_S):
                while not await portal.run(lambda: killer.fetchval(END_COMPACTION)):
                    pass
            left = await portal.run(lambda: reader.fetchrow(COUNTS))
            await portal.run(reader.close)
            await portal.run(killer.close)

    assert tuple(left) == (RENEWALS + 1, 0)
    # The store ran it again, once nobody was in the way.
    assert [one.runs for one in ended if one is not None] == [1]
    assert await sums(postgres_dsn) == before
    assert await counts(postgres_dsn) == (0, 1)


@pytest.mark.parametrize("where", [OLDER, OF_BEFORE, TO_THE_REST], ids=["older", "before", "rest"])
async def test_two_nodes_at_once_compact_what_is_in_no_partition(
    postgres_storage: PostgresStorage, postgres_dsn: str, where: str
) -> None:
    world = await StorageWorld(postgres_storage).found()
    for _ in range(3):
        await run(world)
    await on(postgres_dsn, lambda c: c.execute(where))
    before = await sums(postgres_dsn)

    async def node() -> None:
        # Of those that come at once one has nothing to do, so each comes more often than there is work.
        for _ in range(10):
            await postgres_storage.metering.compact(keep_ms=ALL_DAYS, limit=2)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(node)
        nursery.start_soon(node)

    assert await sums(postgres_dsn) == before
    assert await counts(postgres_dsn) == (0, 3)


async def test_the_money_of_an_event_is_looked_for_in_the_one_partition_of_its_day(
    postgres_storage: PostgresStorage, quick_dsn: str
) -> None:
    world = await StorageWorld(postgres_storage).found()
    lease = await world.lease()
    asked = f"""
    EXPLAIN (ANALYZE, FORMAT json)
    SELECT (SELECT sum(m.charged_nanos) FROM metering m WHERE m.event_id = e.id)
      FROM events e WHERE e.id = '{lease.event_id}'
    """
    todo, read = [json.loads(await on(quick_dsn, lambda c: c.fetchval(asked)))[0]["Plan"]], []
    while todo:
        node = todo.pop()
        todo += node.get("Plans", ())
        if node.get("Relation Name", "").startswith("metering") and node["Actual Loops"]:
            read.append(node["Relation Name"])
    its_day = datetime.fromtimestamp((lease.event_id.int >> 80) / 1000, UTC)

    assert sorted(read) == ["metering_runs", f"metering_slices_{its_day:%Y%m%d}"]
