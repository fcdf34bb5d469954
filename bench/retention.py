"""What the disk holds, day by day, of a month of renewals: days with shifted ids, compacted as they age.

A day is written by SQL, as the journal leaves it: runs with their slices, at a steady rate of renewals for
24 hours, made smaller by ``RETENTION_SCALE``. The database's clock goes on: the days lie in the past, and
what is kept is measured from the newest. After each day the compaction of a server runs until nothing is
due. Tells of each day the bytes of the slices, of the runs, and of the database without the runs, and at the
end by how much the disk moved once the first day had been compacted. No sum of money may change.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import asyncpg
import trio

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that the file also runs by itself

from bench import harness
from bench.database import open_database
from sexton_storage.portal import open_portal
from sexton_storage.postgres import PostgresStorage, open_postgres_storage

DAYS = int(os.environ.get("RETENTION_DAYS", "30"))
A_SECOND = int(os.environ.get("RETENTION_RATE", "1000"))
SCALE = int(os.environ.get("RETENTION_SCALE", "1000"))
"""By how much a day is made smaller: of 86,400,000 renewals a thousandth is 86,400."""
KEEP_DAYS = 7
SLICES = 30
"""Slices of a run: five minutes of renewals."""
DAY_MS = 86_400_000
ROWS = A_SECOND * 86_400 // SCALE
FLAT = 0.05

_MAKE_DAY = """
CREATE TABLE metering_slices_{name} (LIKE metering_slices INCLUDING ALL);
ALTER TABLE metering_slices ATTACH PARTITION metering_slices_{name}
  FOR VALUES FROM (sexton_first_id({start})) TO (sexton_first_id({end}));
"""
_FILL = """
INSERT INTO metering_slices (event_id, attempt, slice_seq, zombie_id, workspace_id, tenant_id, d_input_tokens,
    d_cached_tokens, d_output_tokens, run_ms, run_fee_nanos, token_cost_nanos, charged_nanos, created_at,
    d_cache_write_tokens)
SELECT (lpad(to_hex($1::bigint + n * 86400000 / $2), 12, '0') || '7' || lpad(to_hex(n), 3, '0') || 'b'
        || substr(md5(n::text), 1, 15))::uuid, 1, s, md5('a' || n % 1000)::uuid, md5('w' || n % 10)::uuid,
       md5('t' || n % 3)::uuid, n % 977, n % 91, n % 313, 10000, 1000000, n * 13 % 99991,
       1000000 + n * 13 % 99991, $1::bigint + n * 86400000 / $2 + s * 10000, 0
  FROM generate_series(0, $2::bigint - 1) n, generate_series(1, $3) s
"""
_MONEY = "SELECT coalesce(sum(charged_nanos), 0)::text, count(DISTINCT (event_id, attempt)) FROM metering"
_SIZES = """
SELECT (SELECT coalesce(sum(pg_total_relation_size(relid)), 0) FROM pg_partition_tree('metering_slices')),
       pg_total_relation_size('metering_runs'), pg_database_size(current_database())
"""
_TODAY = "SELECT sexton_now_ms() / 86400000"


async def measure() -> dict[str, Any]:
    async with (
        open_database() as database,
        open_postgres_storage(database.dsn) as storage,
        open_portal() as portal,
    ):
        connection = await portal.run(lambda: asyncpg.connect(database.dsn))
        try:
            figures = await _month(storage, portal, connection)
        finally:
            await portal.run(connection.close)
    return harness.report("retention", database.about, figures)


async def _month(storage: PostgresStorage, portal: Any, connection: Any) -> list[harness.Figure]:
    async def ask(query: str, *args: Any) -> Sequence[Any]:
        row: Sequence[Any] = await portal.run(lambda: connection.fetchrow(query, *args))
        return row

    assert DAYS > KEEP_DAYS, "no day would be compacted"
    today = (await ask(_TODAY))[0]
    runs = ROWS // SLICES
    written = 0
    held: list[int] = []
    harness.tell(
        f"{runs * SLICES} slices a day, a {SCALE}th of {A_SECOND} renewals a second; {KEEP_DAYS} days kept"
    )
    rows = 0.0
    for number in range(DAYS):
        start = (today - DAYS - KEEP_DAYS + number) * DAY_MS
        name = (await ask("SELECT to_char(to_timestamp($1 / 1000.0) AT TIME ZONE 'UTC', 'YYYYMMDD')", start))[
            0
        ]
        make = _MAKE_DAY.format(name=name, start=start, end=start + DAY_MS)
        await portal.run(lambda make=make: connection.execute(make))
        began = perf_counter()
        await portal.run(lambda s=start: connection.execute(_FILL, s, runs, SLICES))
        filled = perf_counter() - began
        written += runs * SLICES
        before = tuple(await ask(_MONEY))
        keep_ms = (today * DAY_MS) - (start + DAY_MS) + KEEP_DAYS * DAY_MS
        began = perf_counter()
        while done := await storage.metering.compact(keep_ms=keep_ms, limit=5_000):
            if not done.more:
                break
        took = perf_counter() - began
        assert tuple(await ask(_MONEY)) == before, "a sum of money has changed"
        slices, rows, whole = await ask(_SIZES)
        if number >= KEEP_DAYS:
            held.append(whole - rows)
        harness.tell(
            f"day {number + 1:>2}: slices {slices / 2**20:8.1f} MiB, runs {rows / 2**20:7.1f} MiB,"
            f" all but runs {(whole - rows) / 2**20:8.1f} MiB; written {filled:.1f} s, compacted {took:.1f} s"
        )
    money, attempts = await ask(_MONEY)
    harness.tell(
        f"{written} slices for {attempts} attempts; {money} nanos, the same before and after each day"
    )
    flat = harness.at_most_times(1 + FLAT)
    moved = [size / held[0] for size in held]
    return [
        harness.Figure("slices written", harness.once(written), "rows"),
        harness.Figure("runs at the end", harness.once(rows / 2**20), "MiB"),
        harness.Figure(
            "all but the runs, greatest",
            harness.once(max(held) / 2**20),
            "MiB",
            "when the first day was compacted",
            harness.Spread(max(moved), min(moved), max(moved)),
            (flat,),
        ),
    ]


def run() -> dict[str, Any]:
    return trio.run(measure)


if __name__ == "__main__":
    print(harness.line(run()))
