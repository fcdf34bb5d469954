"""What a renewal costs with one, two and three workers, and how often two workers meet over one lease.

The servers stand beside one another, each with its own database, and are put under load in turn. A
connection is one runner's, as it is with runners. Processor time is that of all of a server's processes, its
parent's too.
"""

import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import trio

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that the file also runs by itself

from bench import harness, machine, server
from bench.load import Client, Job, Loaded, open_client
from bench.product import Site, payload, renew, renew_many, send_renewals
from bench.wire import request

COUNTS = (1, 2, 3)
RUNNERS = harness.size("RUNNERS", 16)
BATCH = harness.size("WORKERS_BATCH", 64)
LOADS = {"single": 1, "single each": 1, "batches": BATCH, "batches each": BATCH}
"""Renewals in a request. By ``each``, every worker has as many connections as one alone: what workers cost by
themselves. Without it they share the connections, so each commits less at a time, which costs more."""
RUN_S = 2.0
ROUNDS = harness.size("ROUNDS", 5)
MOST_TIMES = 1.1
"""What a renewal may cost with two workers, beside one."""
MOST_CONFLICTS = 0.1
"""Percent of renewals."""


class Crew:
    """One server of some workers, with a runner for each connection."""

    def __init__(self, client: Client, site: Site, pids: Sequence[int], tokens: Sequence[str]) -> None:
        self._client = client
        self._site = site
        self._pids = pids
        self._tokens = tokens
        self._workers = max(1, len(pids) - 1)
        self._single: list[bytes] = []
        self._batches: list[bytes] = []
        self.runs: dict[str, list[Loaded]] = {name: [] for name in LOADS}

    async def lease(self) -> None:
        """Give the runners their leases; from now on they have to be renewed."""
        site = self._site
        held = [await server.lease_all(self._client, site, token, BATCH) for token in self._tokens]
        # Requests are dealt out in turn, so each connection has those of one runner.
        self._single = [renew(site, lease) for leases in zip(*held, strict=True) for lease in leases]
        self._batches = [renew_many(site, leases) for leases in held]

    async def single(self) -> float:
        return await self._put_on("single", self._single, RUNNERS)

    async def single_each(self) -> float:
        return await self._put_on("single each", self._single, RUNNERS * self._workers)

    async def batches(self) -> float:
        return await self._put_on("batches", self._batches, RUNNERS)

    async def batches_each(self) -> float:
        return await self._put_on("batches each", self._batches, RUNNERS * self._workers)

    async def _put_on(self, name: str, requests: list[bytes], connections: int) -> float:
        """Processor time of a renewal, in µs."""
        parts = LOADS[name]
        before = self._used_s()
        job = Job(self._site.address, send_renewals, (requests, 0), connections, harness.lasting(RUN_S))
        loaded = await self._client.run(job)
        loaded.server_cpu_s = self._used_s() - before
        assert set(loaded.statuses) == {200}, loaded.statuses
        self.runs[name].append(loaded)
        return loaded.server_us / parts

    def _used_s(self) -> float:
        return sum(map(machine.processor_s, self._pids))

    async def counted(self, name: str) -> float:
        """One number of those that the server shows, all its workers together."""
        async with await trio.open_tcp_stream(*self._site.address) as stream:
            await stream.send_all(request("GET", "/metrics", host=self._site.host, connection="close"))
            text = b"".join([part async for part in stream]).decode()
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name))


@asynccontextmanager
async def open_crew(client: Client, workers: int) -> AsyncIterator[tuple[Crew, str]]:
    async with server.open_folder() as process:
        site = await process.start(*server.UNHURRIED, "--workers", str(workers))
        ready = orjson.loads((process.folder / "ready.json").read_bytes())
        await server.fill_purse(client, site)
        agents = await server.make_agents(client, site, RUNNERS * BATCH)
        await server.wake(client, site, server.deliveries_of(site, agents, payload()), 1)
        tokens = await server.make_runners(client, site, RUNNERS, BATCH)
        pids = [ready["pids"]["server"], *ready["pids"].get("workers", ())]
        yield Crew(client, site, pids, tokens), process.database_url()


async def measure() -> dict[str, Any]:
    with open_client() as client:
        async with AsyncExitStack() as stack:
            crews: dict[int, Crew] = {}
            about: dict[str, Any] = {}
            for count in COUNTS:
                harness.tell(f"a server of {count}, {RUNNERS} runners with {BATCH} leases each")
                crews[count], url = await stack.enter_async_context(open_crew(client, count))
                about = about or machine.describe_with(url)
            for crew in crews.values():
                await crew.lease()
            samples = {
                name: await harness.alternate(
                    {str(count): getattr(crew, name.replace(" ", "_")) for count, crew in crews.items()},
                    rounds=ROUNDS,
                )
                for name in LOADS
            }
            conflicts = {}
            for count, crew in crews.items():
                races = await crew.counted('sexton_lease_races_total{write="renew"}')
                renewals = await crew.counted("sexton_lease_renewals_total")
                conflicts[count] = 100 * races / renewals
    return harness.report("workers", about, _figures(samples, crews, conflicts))


def _figures(
    samples: dict[str, dict[str, list[float]]], crews: dict[int, Crew], conflicts: dict[int, float]
) -> list[harness.Figure]:
    figures = []
    for name, by_count in samples.items():
        for count in COUNTS:
            ours = by_count[str(count)]
            ratio = None if count == 1 else harness.ratios(ours, by_count["1"])
            budgets = (harness.at_most_times(MOST_TIMES),) if count == 2 else ()
            words = f"{name}, {count} worker{'s' * (count > 1)}: processor time"
            against = None if ratio is None else "one worker"
            figures.append(
                harness.Figure(words, harness.Spread.of(ours), "µs/renewal", against, ratio, budgets)
            )
    for name, parts in LOADS.items():
        for count, crew in crews.items():
            rates = [run.per_second * parts for run in crew.runs[name][1:]]
            figures.append(harness.Figure(f"{name}, {count}: renewals", harness.Spread.of(rates), "/s"))
    for count, percent in conflicts.items():
        budget = (harness.at_most(MOST_CONFLICTS, "%"),)
        figures.append(harness.Figure(f"conflicts, {count}", harness.once(percent), "%", budgets=budget))
    return figures


def run() -> dict[str, Any]:
    return trio.run(measure)


if __name__ == "__main__":
    print(harness.line(run()))
