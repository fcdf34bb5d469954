"""What the count of queue and fleet costs the database, which each node takes every five seconds.

Events are added by SQL to a queue of many agents, which name labels; each part of the count is asked for many
times over one connection, and its processor time is that of the database's own process.
"""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Final

import asyncpg
import trio

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that the file also runs by itself

from bench import harness, machine
from bench.agents_by_hand import Agents
from bench.database import open_database
from bench.house import open_house
from bench.leases_by_hand import tidy
from sexton_actors.periodic.census import CENSUS_INTERVAL_S
from sexton_storage.portal import Portal, open_portal
from sexton_storage.postgres.stores.events import BACKLOG
from sexton_storage.postgres.stores.fleet import COUNTS, DEMAND
from sexton_storage.records.fleet import COUNT_CAP, DEMAND_CAP, LOOKED_AT

AGENTS = harness.size("CENSUS_AGENTS", 10_000)
SIZES = (100, 10_000, harness.size("CENSUS_EVENTS", 100_000))
"""Events that wait."""
ASKED: Final = 20
FAMILY: Final = "c"
LABELS: Final = """
UPDATE zombies
   SET required_tags = (ARRAY['{gpu}', '{eu}', '{gpu,eu}', '{}'])[1 + abs(hashtext(id::text)) % 4]::text[]
"""
PARTS: Final[dict[str, tuple[str, Sequence[Any]]]] = {
    "demand by label": (DEMAND, (DEMAND_CAP,)),
    "counts": (COUNTS, (COUNT_CAP, LOOKED_AT)),
    "backlog by agent": (BACKLOG, ()),
}


async def measure() -> dict[str, Any]:
    figures: list[harness.Figure] = []
    async with open_database() as database, open_portal() as portal:
        agents = await _furnished(database.dsn)
        waiting = 0
        for size in SIZES:
            harness.tell(f"{size:,} events that wait")
            await trio.to_thread.run_sync(_fill, agents, waiting, size)
            waiting = size
            await trio.to_thread.run_sync(tidy, database.dsn)
            figures += await _asked(database.dsn, portal, size)
    return harness.report("census", database.about, figures)


async def _furnished(dsn: str) -> Agents:
    async with open_house(dsn) as house:
        first = await house.install(await house.tenant("bench"), "first")
    agents = Agents(dsn, FAMILY, first=str(first))
    await trio.to_thread.run_sync(agents.install, AGENTS)
    await trio.to_thread.run_sync(machine.query, dsn, LABELS)
    return agents


def _fill(agents: Agents, there: int, size: int) -> None:
    many = min(AGENTS, size - there)
    agents.queue(many, each=(size - there) // many, offset=there)


async def _asked(dsn: str, portal: Portal, size: int) -> list[harness.Figure]:
    connection = await portal.run(lambda: asyncpg.connect(dsn))
    pid = connection.get_server_pid()
    figures, whole = [], 0.0
    try:
        for name, (query, values) in PARTS.items():
            took, used = [], []
            for _ in range(ASKED):
                busy, began = _busy_ms(pid), perf_counter()
                await portal.run(partial(connection.fetch, query, *values))
                took.append(1000 * (perf_counter() - began))
                used.append(_busy_ms(pid) - busy)
            spent = median(used)
            whole += spent
            figures += [
                harness.Figure(f"{name}, {size:,} wait: time", harness.Spread.of(took), "ms"),
                harness.Figure(f"{name}, {size:,} wait: processor time", harness.Spread.of(used), "ms"),
            ]
    finally:
        await portal.run(connection.close)
    share = whole / (1000 * CENSUS_INTERVAL_S)
    return [*figures, harness.Figure(f"all, {size:,} wait, of one core", harness.once(100 * share), "%")]


def _busy_ms(pid: int) -> float:
    return float(Path(f"/proc/{pid}/schedstat").read_text(encoding="utf-8").split()[0]) / 1e6


def run() -> dict[str, Any]:
    return trio.run(measure)


if __name__ == "__main__":
    print(harness.line(run()))
