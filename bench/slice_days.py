"""What a report costs the database by how many days of slices are kept: one, and as many as seven days need.

A statement that ends leases asks the metering rows of their events, which stand in a partition a day. Two
databases are alike but for the number of these; reports are sent to each in turn, one at a time and many at
once.
"""

import sys
from pathlib import Path
from typing import Any

import trio

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that the file also runs by itself

from bench import harness, machine
from bench.database import open_database
from bench.rows import Room, furnished

AGENTS = harness.size("SLICE_DAYS_AGENTS", 400)
"""Reports of a round."""
MANY_AT_ONCE = 64
ROUNDS = 5
DAYS = 13
"""Seven that are kept, one that ends, and those that are made ahead."""
DAY_MS = 86_400_000

_ONE_DAY = """
DO $$
DECLARE of_table text;
BEGIN
    FOR of_table IN
        SELECT relid::regclass::text FROM pg_partition_tree('metering_slices')
         WHERE isleaf AND relid <> 'metering_slices_rest'::regclass
           AND relid::regclass::text <> sexton_slices_of(current_date)
    LOOP
        EXECUTE format('DROP TABLE %I', of_table);
    END LOOP;
END $$
"""
_MANY_DAYS = """
DO $$
DECLARE of_day date; of_table text;
BEGIN
    FOR back IN -3 .. {last} LOOP
        of_day := current_date - back;
        of_table := sexton_slices_of(of_day);
        CONTINUE WHEN to_regclass(of_table) IS NOT NULL;
        EXECUTE format('CREATE TABLE %I PARTITION OF metering_slices FOR VALUES FROM (%L) TO (%L)', of_table,
                       sexton_first_id(sexton_day_ms(of_day)), sexton_first_id(sexton_day_ms(of_day + 1)));
    END LOOP;
END $$
"""
_COUNT = """
SELECT count(*) FROM pg_partition_tree('metering_slices')
 WHERE isleaf AND relid::regclass::text <> 'metering_slices_rest'
"""


async def measure() -> dict[str, Any]:
    async with open_database() as few, open_database() as many:
        rooms: dict[str, Room] = {}
        for dsn, sql, days in ((few.dsn, _ONE_DAY, 1), (many.dsn, _MANY_DAYS.format(last=DAYS - 4), DAYS)):
            rooms[f"days: {days}"] = await furnished(dsn, AGENTS)
            alike = f"SET TIME ZONE 'UTC'; {sql}"
            await trio.to_thread.run_sync(machine.query, machine.superuser(dsn), alike)
            assert int(machine.query(dsn, _COUNT)) == days
        figures = [
            *await _compared(rooms, 1, "one at a time"),
            *await _compared(rooms, MANY_AT_ONCE, f"{MANY_AT_ONCE} at once"),
        ]
    return harness.report("slice_days", few.about, figures)


async def _compared(rooms: dict[str, Room], at_once: int, words: str) -> list[harness.Figure]:
    def round_of(room: Room) -> harness.Measure:
        async def one() -> float:
            room.at_once = MANY_AT_ONCE
            await room.append()
            await room.claim()
            room.at_once = at_once
            await room.end()
            return room.costs["report"].database_us

        return one

    samples = await harness.alternate({name: round_of(room) for name, room in rooms.items()}, rounds=ROUNDS)
    first, *others = rooms
    return [
        harness.Figure(f"a report, {words}, {first}", harness.Spread.of(samples[first]), "µs"),
        *(
            harness.Figure(
                f"a report, {words}, {name}",
                harness.Spread.of(samples[name]),
                "µs",
                first,
                harness.ratios(samples[name], samples[first]),
            )
            for name in others
        ),
    ]


def run() -> dict[str, Any]:
    return trio.run(measure)


if __name__ == "__main__":
    print(harness.line(run()))
