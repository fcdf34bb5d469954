"""Durable renewals through the journal alone, against pgbench doing the same in one transaction each.

One server, one run, fsync on. Each renewal is a conditional update of its lease, a metering row, a debit of
its tenant and the agent's spend. The journal is kept busy by a fixed number of writers who submit their next
renewal when they hear of the last.
"""

import sys
from pathlib import Path
from time import perf_counter
from typing import Any
from uuid import UUID

import trio

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that the file also runs by itself

from bench import harness
from bench.database import open_database
from bench.leases_by_hand import Leases, next_renewal, tidy
from sexton_storage.postgres import PostgresStorage, open_postgres_storage
from sexton_storage.records.leases import Lease
from sexton_storage.refusals import Lost
from sexton_storage.writes import Renewed

LEASES = 10_000
TENANTS = 100
WRITERS = 1024
"""Two batches' worth: one commits while the other collects."""
CLIENTS = 32
"""The connections of pgbench."""
RUN_S = 4
ROUNDS = 3
DAY_MS = 86_400_000


class Writers:
    """Keeps a number of renewals under way, each writer going round its own share of the leases."""

    def __init__(self, storage: PostgresStorage, leases: list[Lease]) -> None:
        self._storage = storage
        self._leases = leases
        self._next = list(range(min(WRITERS, len(leases))))
        self._under_way = 0
        self._end = 0.0
        self._idle = trio.Event()
        self.renewals = 0
        self.latencies: list[float] = []

    async def round(self) -> float:
        """Renewals a second."""
        before, began = self.renewals, perf_counter()
        self._end, self._idle = began + harness.lasting(RUN_S), trio.Event()
        for writer in range(len(self._next)):
            self._renew(writer)
        await self._idle.wait()
        return (self.renewals - before) / (perf_counter() - began)

    def _renew(self, writer: int) -> None:
        index = self._next[writer]
        self._next[writer] = index + WRITERS if index + WRITERS < len(self._leases) else writer
        lease, now, asked = self._leases[index], self._storage.clock.now_ms(), perf_counter()
        write = next_renewal(lease, now)
        self._under_way += 1

        def done(answer: Renewed | Lost | Exception) -> None:
            assert isinstance(answer, Renewed), answer
            self.renewals += 1
            self.latencies.append(perf_counter() - asked)
            self._leases[index] = write.lease
            self._under_way -= 1
            if perf_counter() < self._end:
                self._renew(writer)
            elif not self._under_way:
                self._idle.set()

        self._storage.journal.submit(write, done)


class ByPgbench:
    """The rival: the same rows by one statement and one transaction for each renewal."""

    def __init__(self, leases: Leases) -> None:
        self._leases = leases
        self.renewals = 0

    async def round(self) -> float:
        count, rate = await trio.to_thread.run_sync(self._run)
        self.renewals += count
        return rate

    def _run(self) -> tuple[int, float]:
        return self._leases.renew_by_pgbench(clients=CLIENTS, seconds=harness.lasting(RUN_S))


async def measure() -> dict[str, Any]:
    async with open_database() as database, open_postgres_storage(database.dsn) as storage:
        return await _measure(storage, database.dsn, database.about)


async def _measure(storage: PostgresStorage, dsn: str, about: dict[str, Any]) -> dict[str, Any]:
    harness.tell(f"{LEASES:,} leases of {TENANTS} tenants, twice")
    ours = Leases(dsn, "a", count=LEASES, tenants=TENANTS)
    theirs = Leases(dsn, "b", count=LEASES, tenants=TENANTS)
    for family in (ours, theirs):
        family.fill(term_ms=DAY_MS)
    tidy(dsn)
    held = await storage.leases.live_of_runner(UUID(ours.runner_id))
    writers, rival = Writers(storage, list(held)), ByPgbench(theirs)
    samples = await harness.alternate({"journal": writers.round, "pgbench": rival.round}, rounds=ROUNDS)
    batches = storage.journal.statistics().hot
    _check(ours, writers.renewals)
    _check(theirs, rival.renewals)
    return harness.report("journal", about, _figures(samples, writers, batches.writes / batches.batches))


def _check(leases: Leases, renewals: int) -> None:
    rows, charged = leases.metered()
    assert rows == renewals, f"{renewals} renewals, {rows} metering rows"
    gone = leases.gone()
    assert charged == gone > 0, f"the rows say {charged}, {gone} nanos are gone"


def _figures(samples: dict[str, list[float]], writers: Writers, batch: float) -> list[harness.Figure]:
    latencies = sorted(writers.latencies)
    return [
        harness.Figure(
            "pgbench, 32 clients, a transaction each", harness.Spread.of(samples["pgbench"]), "renewals/s"
        ),
        harness.Figure(
            "the journal, 1,024 writers",
            harness.Spread.of(samples["journal"]),
            "renewals/s",
            "pgbench",
            harness.ratios(samples["journal"], samples["pgbench"]),
            (harness.at_least_times(4.5),),
        ),
        harness.Figure("latency p50", harness.once(1000 * latencies[len(latencies) // 2]), "ms"),
        harness.Figure("latency p99", harness.once(1000 * latencies[len(latencies) * 99 // 100]), "ms"),
        harness.Figure("writes in a commit, mean", harness.once(batch), "writes"),
    ]


def run() -> dict[str, Any]:
    return trio.run(measure)


if __name__ == "__main__":
    print(harness.line(run()))
