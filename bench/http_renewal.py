"""Renewals over HTTP, one by one and in batches, against a handler that does nothing.

Every renewal that is counted has a metering row and a debit that are committed; the empty handler has neither
nor authentication, nor a body.
"""

import sys
from pathlib import Path
from statistics import median
from typing import Any

import trio

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that the file also runs by itself

from bench import harness, machine, server
from bench.empty import Rival, open_empty_server
from bench.load import Client, Job, Loaded, open_client
from bench.load_figures import open_figures
from bench.product import Held, Site, payload, renew, renew_many, send_renewals

LEASES = 2048
SLOTS = 256
"""The slots of a runner, each with its own leases; a batch belongs to one runner."""
BATCH = 64
CONNECTIONS = 32
BATCH_CONNECTIONS = LEASES // BATCH
"""As many as there are of single renewals: while some wait for a commit, others are at work."""
RUN_S = 3.0
ROUNDS = 3
SHARE = 0.5
"""The open loop's rate as a share of the closed loop's; its latencies count from when each was due."""
OPEN_S = 5.0


class Renewals:
    """One server with leases to renew, and what was asked of it so far."""

    def __init__(self, client: Client, site: Site, pid: int, leases: list[Held]) -> None:
        self._client = client
        self._pid = pid
        self._site = site
        self._single = [renew(site, lease) for lease in leases]
        self._batches = [renew_many(site, leases[at : at + BATCH]) for at in range(0, len(leases), BATCH)]
        self.granted = 0
        self.runs: dict[str, list[Loaded]] = {"single": [], "batches": [], "open": []}

    async def single(self) -> float:
        loaded = await self._put_on("single", self._single, CONNECTIONS)
        return loaded.per_second

    async def batches(self) -> float:
        loaded = await self._put_on("batches", self._batches, BATCH_CONNECTIONS)
        return loaded.per_second * BATCH

    async def open_loop(self) -> Loaded:
        """One a request again, sent at fixed times, at a share of the closed loop's rate."""
        rate = SHARE * median(run.per_second for run in self.runs["single"])
        harness.tell(f"{rate:,.0f} renewals a second, sent when they are due")
        return await self._put_on("open", self._single, CONNECTIONS, rate)

    async def _put_on(self, name: str, requests: list[bytes], connections: int, rate: float = 0) -> Loaded:
        run_s = OPEN_S if rate else harness.lasting(RUN_S)
        job = Job(self._site.address, send_renewals, (requests, rate), connections, run_s)
        loaded = await self._client.run(job, self._pid)
        assert set(loaded.statuses) == {200}, loaded.statuses
        self.granted += sum(granted[0] for granted in loaded.notes)
        self.runs[name].append(loaded)
        return loaded


async def measure() -> dict[str, Any]:
    with open_client() as client, open_empty_server() as rival:
        async with server.open_folder() as process:
            site = await process.start(*server.UNHURRIED)
            about = machine.describe_with(process.database_url())
            harness.tell(f"{LEASES} agents, woken and leased")
            before = await server.fill_purse(client, site)
            leases = await _leases(client, site)
            renewals = Renewals(client, site, process.pid, leases)
            contenders = {
                "single": renewals.single,
                "batches": renewals.batches,
                "empty": lambda: rival.round(client),
            }
            samples = await harness.alternate(contenders, rounds=ROUNDS)
            await renewals.open_loop()
            await _check(client, site, renewals, leases, before)
    return harness.report("http_renewal", about, _figures(samples, renewals, rival))


async def _leases(client: Client, site: Site) -> list[Held]:
    agents = await server.make_agents(client, site, LEASES)
    await server.wake(client, site, server.deliveries_of(site, agents, payload()), 1)
    tokens = await server.make_runners(client, site, LEASES // SLOTS, SLOTS)
    return [lease for token in tokens for lease in await server.lease_all(client, site, token, SLOTS)]


async def _check(client: Client, site: Site, renewals: Renewals, leases: list[Held], before: int) -> None:
    rows, charged = await server.metering(client, site, [lease.event_id for lease in leases])
    gone = before - await server.balance(client, site)
    assert rows == renewals.granted, f"{renewals.granted} renewals granted, {rows} metering rows"
    assert charged == gone > 0, f"the rows say {charged}, {gone} nanos are gone"


def _figures(samples: dict[str, list[float]], renewals: Renewals, rival: Rival) -> list[harness.Figure]:
    runs = renewals.runs
    return [
        harness.Figure("empty handler", harness.Spread.of(samples["empty"]), "requests/s"),
        harness.Figure(
            "one a request, 32 connections",
            harness.Spread.of(samples["single"]),
            "renewals/s",
            "empty handler",
            harness.ratios(samples["single"], samples["empty"]),
            (harness.at_least_times(4),),
        ),
        harness.Figure(
            "batches of 64, 32 connections",
            harness.Spread.of(samples["batches"]),
            "renewals/s",
            "empty handler",
            harness.ratios(samples["batches"], samples["empty"]),
            (harness.at_least_times(24),),
        ),
        *(
            harness.Figure(f"{name}: latency {label}", _latency(runs[name], share), "ms")
            for name in ("single", "batches")
            for label, share in (("p50", 0.5), ("p99", 0.99))
        ),
        *open_figures(runs["open"][0], "renewals/s"),
        harness.Figure("empty: server's processor time", _each(rival.runs, 1), "µs/request"),
        harness.Figure("single: server's processor time", _each(runs["single"], 1), "µs/renewal"),
        harness.Figure("batches: server's processor time", _each(runs["batches"], BATCH), "µs/renewal"),
        harness.Figure(
            "client's processor time",
            harness.Spread.of([run.client_us for run in (*rival.runs, *runs["single"])]),
            "µs/request",
        ),
    ]


def _latency(runs: list[Loaded], share: float) -> harness.Spread:
    return harness.Spread.of([run.latency_ms(share) for run in runs])


def _each(runs: list[Loaded], parts: int) -> harness.Spread:
    return harness.Spread.of([run.server_us / parts for run in runs])


def run() -> dict[str, Any]:
    return trio.run(measure)


if __name__ == "__main__":
    print(harness.line(run()))
