"""Durable renewals through the lease actors, against pgbench doing the same in one transaction each.

One server, one run, fsync on. Each renewal is a conditional update of its lease, a metering row, a debit of
its tenant and the agent's spend; ours goes through a supervised actor with a bounded mailbox, an ask with a
deadline, and a timer that is set again.
"""

import sys
from collections.abc import Awaitable, Callable
from itertools import cycle, islice
from pathlib import Path
from random import SystemRandom
from time import perf_counter, process_time
from typing import Any, cast
from uuid import UUID, uuid4

import trio

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that the file also runs by itself

from bench import harness
from bench.database import open_database
from bench.leases_by_hand import Leases, tidy
from sexton_actors.catalogue import Catalogue
from sexton_actors.protocol.lease import Renew, Renewal
from sexton_actors.secrets import Secrets
from sexton_actors.tree import tree
from sexton_actors.world import World
from sexton_cli.collector import spare_the_collector
from sexton_engine import ActorSystem, open_system
from sexton_storage.postgres import PostgresStorage, open_postgres_storage
from sexton_storage.stores import Storage

LEASES = 10_000
TENANTS = 100
ASKERS = 256
BATCH = 64
BATCH_ASKERS = 16
CLIENTS = 32
"""The connections of pgbench."""
RUN_S = 4
ROUNDS = 3
TERM_MS = 25_000
"""The first term of the leases: less than a renewal gives, so that each moves its deadline and timer."""
DAY_MS = 86_400_000
WOKEN_AT_ONCE = 1000
"""Leases that are made and woken together, so that none ends before its turn on a slow machine."""


class NoSealer:
    """There is nothing secret in a renewal."""

    def seal(self, plaintext: bytes, identity: bytes) -> bytes:
        raise NotImplementedError

    def open(self, sealed: bytes, identity: bytes) -> bytes:
        raise NotImplementedError


class Askers:
    """Askers that renew leases through their actors, each going round its own share of them."""

    def __init__(self, system: ActorSystem, leases: Leases) -> None:
        self._system = system
        self._ids = [UUID(text) for text in leases.ids()]
        self._runner_id = UUID(leases.runner_id)
        self._tokens = dict.fromkeys(self._ids, 0)
        self._rounds = [cycle(self._ids[number::ASKERS]) for number in range(ASKERS)]
        self.renewals = 0
        self._shares = [cycle(self._ids[number::BATCH_ASKERS]) for number in range(BATCH_ASKERS)]
        self.latencies: list[float] = []
        self.processor_us: dict[str, list[float]] = {"singles": [], "batches": []}
        """Processor time of this process for one renewal: with the client's part, without the database's."""

    async def wake(self, numbers: range) -> None:
        """Renew each of these once: its actor is activated, loads its lease, and sets its deadline."""
        ids = [self._ids[number] for number in numbers]
        async with trio.open_nursery() as nursery:
            for number in range(ASKERS):
                nursery.start_soon(self._ask_each, ids[number::ASKERS])

    async def _ask_each(self, ids: list[UUID]) -> None:
        for lease_id in ids:
            await self._renew(lease_id)

    async def round(self) -> float:
        """Renewals a second, one by one."""
        return await self._measured("singles", ASKERS, self._ask_until)

    async def round_of_batches(self) -> float:
        """Renewals a second, asked many at once."""
        return await self._measured("batches", BATCH_ASKERS, self._ask_batches_until)

    async def _measured(self, what: str, askers: int, ask: Callable[[int, float], Awaitable[None]]) -> float:
        before, began, spent = self.renewals, perf_counter(), process_time()
        async with trio.open_nursery() as nursery:
            for number in range(askers):
                nursery.start_soon(ask, number, began + harness.lasting(RUN_S))
        count = self.renewals - before
        self.processor_us[what].append(1e6 * (process_time() - spent) / count)
        return count / (perf_counter() - began)

    async def _ask_until(self, number: int, end: float) -> None:
        # It goes on where its last round ended, so that no lease waits longer for its turn than the others.
        while (asked := perf_counter()) < end:
            await self._renew(next(self._rounds[number]))
            self.latencies.append(perf_counter() - asked)

    async def _ask_batches_until(self, number: int, end: float) -> None:
        while perf_counter() < end:
            asks = [(lease_id, self._message(lease_id)) for lease_id in islice(self._shares[number], BATCH)]
            for reply in await self._system.ask_all("lease", asks):
                assert isinstance(reply, Renewal), reply
                self.renewals += 1

    async def _renew(self, lease_id: UUID) -> None:
        reply = await self._system.ask("lease", lease_id, self._message(lease_id))
        assert isinstance(reply, Renewal), reply
        self.renewals += 1

    def _message(self, lease_id: UUID) -> Renew:
        self._tokens[lease_id] += 1
        used = self._tokens[lease_id]
        return Renew(self._runner_id, input_tokens=7 * used, cached_input_tokens=0, output_tokens=3 * used)


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
    # Nobody renews the rival's leases while we are measured, and they must not be taken back meanwhile.
    theirs.fill(term_ms=DAY_MS)
    tidy(dsn)
    async with open_system(tree(_world(storage))) as system:
        askers, rival = Askers(system, ours), ByPgbench(theirs)
        for at in range(0, LEASES, WOKEN_AT_ONCE):
            ours.fill(term_ms=TERM_MS, first=at + 1, last=at + WOKEN_AT_ONCE)
            await askers.wake(range(at, at + WOKEN_AT_ONCE))
        spare_the_collector()  # as a server does when it is up
        askers.latencies.clear()
        rounds = {"actors": askers.round, "batches": askers.round_of_batches, "pgbench": rival.round}
        samples = await harness.alternate(rounds, rounds=ROUNDS)
    batches = storage.journal.statistics().hot
    _check(ours, askers.renewals)
    _check(theirs, rival.renewals)
    return harness.report("lease_renewal", about, _figures(samples, askers, batches.writes / batches.batches))


def _world(storage: PostgresStorage) -> World:
    random = SystemRandom()
    return World(
        storage=cast("Storage", storage),
        secrets=Secrets(storage.credentials, NoSealer(), storage.clock),
        catalogue=Catalogue("2026-01-01", []),
        new_id=uuid4,
        new_token=lambda count: random.randbytes(count).hex(),
    )


def _check(leases: Leases, renewals: int) -> None:
    rows, charged = leases.metered()
    assert rows == renewals, f"{renewals} renewals, {rows} metering rows"
    gone = leases.gone()
    assert charged == gone > 0, f"the rows say {charged}, {gone} nanos are gone"


def _figures(samples: dict[str, list[float]], askers: Askers, batch: float) -> list[harness.Figure]:
    latencies = sorted(askers.latencies)
    return [
        harness.Figure(
            "pgbench, 32 clients, a transaction each", harness.Spread.of(samples["pgbench"]), "renewals/s"
        ),
        harness.Figure(
            "lease actors, 256 askers",
            harness.Spread.of(samples["actors"]),
            "renewals/s",
            "pgbench",
            harness.ratios(samples["actors"], samples["pgbench"]),
            (harness.at_least_times(3.5),),
        ),
        harness.Figure(
            f"batches of {BATCH}, {BATCH_ASKERS} askers",
            harness.Spread.of(samples["batches"]),
            "renewals/s",
            "pgbench",
            harness.ratios(samples["batches"], samples["pgbench"]),
            (),
        ),
        harness.Figure("processor time", harness.Spread.of(askers.processor_us["singles"][1:]), "µs/renewal"),
        harness.Figure(
            "batches: processor time", harness.Spread.of(askers.processor_us["batches"][1:]), "µs/renewal"
        ),
        harness.Figure("latency p50", harness.once(1000 * latencies[len(latencies) // 2]), "ms"),
        harness.Figure("latency p99", harness.once(1000 * latencies[len(latencies) * 99 // 100]), "ms"),
        harness.Figure("writes in a commit, mean", harness.once(batch), "writes"),
    ]


def run() -> dict[str, Any]:
    return trio.run(measure)


if __name__ == "__main__":
    print(harness.line(run()))
