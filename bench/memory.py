"""Memory of one node with 100,000 live leases and 1,000,000 installed agents, and its start-up with them.

The memory is that of the server's process, as the kernel counts it; the database is other processes, whose
memory is mostly the cache it was given. A lease counts when its actor is awake with its deadline set, which
takes a renewal over HTTP. The start is measured in turns with one on an empty folder's database.
"""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import trio

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that the file also runs by itself

from bench import harness, machine, server
from bench.agents_by_hand import Agents
from bench.leases_by_hand import tidy
from bench.load import Client, open_client
from bench.product import Held, Site, enrol, mint_enrolment, renew_many

AGENTS = harness.size("AGENTS", 1_000_000)
LEASES = harness.size("LEASES", 100_000)
BATCH = 512
CONNECTIONS = 8
ROUNDS = 3
TERM_MS = 3_600_000
"""Beyond the end of the benchmark: what is measured is their weight, not their renewals."""
GIB = 2**30
FAMILY = "c"


class Node:
    """A server on a folder that it knows, started and stopped in turns."""

    def __init__(self, process: server.Server) -> None:
        self.process = process
        self.rested: list[float] = []
        """The server's memory just after each start, in MiB."""

    async def started(self) -> float:
        """Seconds until it is ready; then it is stopped again."""
        began = perf_counter()
        await self.process.start(*server.UNHURRIED)
        took = perf_counter() - began
        self.rested.append(machine.resident_bytes(self.process.pid) / 2**20)
        await self.process.stop()
        return took


async def measure() -> dict[str, Any]:
    with open_client() as client:
        async with server.open_folder() as empty, server.open_folder() as full:
            await empty.start()
            about = machine.describe_with(empty.database_url())
            await empty.stop()
            leases = await _fill(client, full)
            bare, laden = Node(empty), Node(full)
            contenders: dict[str, Callable[[], Awaitable[float]]] = {
                "empty": bare.started,
                "full": laden.started,
            }
            samples = await harness.alternate(contenders, rounds=ROUNDS, warm_up=0)
            site = await full.start()
            awake = await _wake(client, site, full, leases)
    starts = (samples["empty"], samples["full"])
    return harness.report("memory", about, [*_starts(*starts), *_weights(bare, laden, awake)])


async def _fill(client: Client, process: server.Server) -> list[Held]:
    """Agents, and leases of a real runner on the first of them; the server is stopped afterwards."""
    site = await process.start(*server.UNHURRIED)
    [first] = await server.make_agents(client, site, 1)
    minted = await client.call(site.address, mint_enrolment(site))
    runner = await client.call(site.address, enrol(site, minted["token"], "bench", 256))
    agents = Agents(process.database_url(), FAMILY, first=first)
    harness.tell(f"{AGENTS:,} agents, {LEASES:,} of them under a lease")
    await trio.to_thread.run_sync(agents.enrich)
    await trio.to_thread.run_sync(agents.install, AGENTS)
    await trio.to_thread.run_sync(lambda: agents.lease(LEASES, runner["runner_id"], term_ms=TERM_MS))
    await trio.to_thread.run_sync(tidy, process.database_url())
    await process.stop()
    return agents.held(LEASES, runner["runner_token"])


async def _wake(client: Client, site: Site, process: server.Server, leases: list[Held]) -> dict[str, float]:
    """Renew each lease twice; the memory after each, the most there was, and what was found to be true."""
    pid, before = process.pid, await server.fill_purse(client, site)
    calls = [renew_many(site, leases[at : at + BATCH]) for at in range(0, LEASES, BATCH)]
    weights = {}
    for label in ("awake", "renewed"):
        harness.tell(f"renewing {LEASES:,} leases")
        for answer in await client.call_all(site.address, calls, connections=CONNECTIONS):
            assert all(result["ok"] for result in answer["results"]), answer["results"][:3]
        weights[label] = machine.resident_bytes(pid) / GIB
    weights["most"] = machine.resident_bytes(pid, "VmHWM") / GIB
    tree = await client.call(site.address, site.admin("/v1/fleet/supervisor"))
    live = actors_of(tree["tree"], "lease")
    assert live == LEASES, f"{live} of {LEASES} lease actors are awake"
    rows, charged = Agents(process.database_url(), FAMILY, first="").metered()
    assert rows == 2 * LEASES, f"{2 * LEASES} renewals, {rows} metering rows"
    gone = before - await server.balance(client, site)
    assert charged == gone > 0, f"the rows say {charged}, {gone} nanos are gone"
    return weights


def actors_of(node: dict[str, Any], kind: str) -> int:
    """How many actors of a kind the supervision tree says are awake."""
    here = int(node["live"]) if (node["role"], node["name"]) == ("family", kind) else 0
    return here + sum(actors_of(child, kind) for child in node["children"])


def _starts(empty: list[float], full: list[float]) -> list[harness.Figure]:
    return [
        harness.Figure("start, empty database", harness.Spread.of(empty), "s"),
        harness.Figure(
            f"start, {AGENTS:,} agents and {LEASES:,} leases",
            harness.Spread.of(full),
            "s",
            "empty",
            harness.ratios(full, empty),
        ),
    ]


def _weights(bare: Node, laden: Node, awake: dict[str, float]) -> list[harness.Figure]:
    return [
        harness.Figure("server started, empty database", harness.Spread.of(bare.rested), "MiB"),
        harness.Figure(f"server started, {AGENTS:,} agents", harness.Spread.of(laden.rested), "MiB"),
        harness.Figure(f"{LEASES:,} lease actors awake", harness.once(awake["awake"]), "GiB"),
        harness.Figure("each renewed once more", harness.once(awake["renewed"]), "GiB"),
        harness.Figure(
            "the most there was", harness.once(awake["most"]), "GiB", budgets=(harness.at_most(2, "GiB"),)
        ),
        harness.Figure(
            "a lease's part of it",
            harness.once((awake["awake"] * GIB - laden.rested[-1] * 2**20) / LEASES / 1024),
            "KiB",
        ),
    ]


def run() -> dict[str, Any]:
    return trio.run(measure)


if __name__ == "__main__":
    print(harness.line(run()))
