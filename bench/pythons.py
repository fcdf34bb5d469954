"""The server's processor time for renewals, and for leases with reports, on several interpreters in turns.

``BENCH_PYTHONS`` names them, with ``:`` between: of environments with other Pythons, or of checkouts of
other releases. Everything else is the same: client, requests, kind of database. The first is what the
others are held against.
"""

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import trio

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that the file also runs by itself

from bench import harness, machine, server
from bench.lease_cycles import AGENTS, RUNNERS, SLOTS, Cycles
from bench.load import Client, Job, open_client
from bench.product import Held, Site, payload, renew, renew_many, send_renewals

NAMED = os.environ.get("BENCH_PYTHONS", server.PYTHON).split(":")
BATCH = 64
RENEWING = 16
"""Runners that renew, with as many leases each as a batch has."""
CONNECTIONS = 32
RUN_S = 2.0
ROUNDS = harness.size("ROUNDS", 5)
CYCLES = "lease + report, one each"
SINGLE = "renewal, one a request"
BATCHES = "renewal, 64 a request"


class Contender:
    """A server on one interpreter, with work to lease and leases to renew; each load answers its µs."""

    def __init__(
        self, client: Client, site: Site, pid: int, cycles: Cycles, *, agents: list[str], tokens: list[str]
    ) -> None:
        self._client = client
        self._site = site
        self._pid = pid
        self._cycles = cycles
        self._deliveries = server.deliveries_of(site, agents, payload())
        self._tokens = tokens
        self._single: list[bytes] = []
        self._batches: list[bytes] = []

    async def lease(self) -> None:
        """Give the runners their leases; from now on they have to be renewed."""
        await server.wake(self._client, self._site, self._deliveries, 1)
        held: list[list[Held]] = [
            await server.lease_all(self._client, self._site, token, BATCH) for token in self._tokens
        ]
        self._single = [renew(self._site, lease) for leases in held for lease in leases]
        self._batches = [renew_many(self._site, leases) for leases in held]

    async def singles(self) -> float:
        return await self._renewals(self._single, 1)

    async def batches(self) -> float:
        return await self._renewals(self._batches, BATCH)

    async def _renewals(self, requests: list[bytes], parts: int) -> float:
        job = Job(self._site.address, send_renewals, (requests, 0), CONNECTIONS, harness.lasting(RUN_S))
        loaded = await self._client.run(job, self._pid)
        assert set(loaded.statuses) == {200}, loaded.statuses
        return loaded.server_us / parts

    async def cycles(self) -> float:
        await self._cycles.singles()
        return self._cycles.processor_us[-1]


def version_of(python: str) -> str:
    words = [python, "-c", "import platform; print(platform.python_version())"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def names_of(versions: list[str]) -> list[str]:
    """What they are called: by their version, and by their place where two have the same.

    >>> names_of(["3.11.7", "3.13.0", "3.11.7"])
    ['Python 3.11.7, first', 'Python 3.13.0', 'Python 3.11.7, third']
    """
    places = ("first", "second", "third", "fourth", "fifth", "sixth")
    return [
        f"Python {version}{f', {places[at]}' if versions.count(version) > 1 else ''}"
        for at, version in enumerate(versions)
    ]


@asynccontextmanager
async def open_contender(client: Client, python: str) -> AsyncIterator[tuple[Contender, str]]:
    async with server.open_folder(python) as process:
        site = await process.start(*server.UNHURRIED)
        await server.fill_purse(client, site)
        agents = await server.make_agents(client, site, AGENTS + RENEWING * BATCH)
        few = await server.make_runners(client, site, RUNNERS, SLOTS)
        many = await server.make_runners(client, site, RENEWING, BATCH)
        cycles = Cycles(client, site, agents[:AGENTS], few, process.pid)
        contender = Contender(client, site, process.pid, cycles, agents=agents[AGENTS:], tokens=many)
        yield contender, process.database_url()


async def measure() -> dict[str, Any]:
    names = names_of([version_of(python) for python in NAMED])
    with open_client() as client:
        async with AsyncExitStack() as stack:
            contenders: dict[str, Contender] = {}
            about: dict[str, Any] = {}
            for name, python in zip(names, NAMED, strict=True):
                harness.tell(f"a server on {name}")
                contenders[name], url = await stack.enter_async_context(open_contender(client, python))
                about = about or machine.describe_with(url)
            samples = {CYCLES: await _turns({name: one.cycles for name, one in contenders.items()})}
            for one in contenders.values():
                await one.lease()
            samples[SINGLE] = await _turns({name: one.singles for name, one in contenders.items()})
            samples[BATCHES] = await _turns({name: one.batches for name, one in contenders.items()})
    return harness.report("pythons", about, figures(samples))


async def _turns(rounds: Mapping[str, harness.Measure]) -> dict[str, list[float]]:
    return await harness.alternate(rounds, rounds=ROUNDS)


def figures(samples: dict[str, dict[str, list[float]]]) -> list[harness.Figure]:
    """A line for each load and interpreter; those behind the first are held against it.

    Where the first has the same Python it is another release, so there is a budget for what changed since.
    """
    told = []
    for load, by_name in samples.items():
        first, *others = by_name
        told.append(harness.Figure(f"{load}: {first}", harness.Spread.of(by_name[first]), "µs"))
        for name in others:
            is_release = name.partition(",")[0] == first.partition(",")[0]
            told.append(
                harness.Figure(
                    f"{load}: {name}",
                    harness.Spread.of(by_name[name]),
                    "µs",
                    first,
                    harness.ratios(by_name[name], by_name[first]),
                    (harness.at_most_times(0.5),) if is_release and load == BATCHES else (),
                )
            )
    return told


def run() -> dict[str, Any]:
    return trio.run(measure)


if __name__ == "__main__":
    print(harness.line(run()))
