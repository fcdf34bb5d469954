"""Whole cycles over HTTP: a runner leases an event and reports it, against a handler that does nothing.

A cycle is two requests and two commits: the claim with its new fencing token, and the report with its last
metering row, its debit and the event's end. With many slots a runner takes and reports sixteen at once: two
requests and two commits for all of them.
"""

import sys
from pathlib import Path
from typing import Any

import trio

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that the file also runs by itself

from bench import harness, machine, server
from bench.empty import open_empty_server
from bench.load import Client, Job, Loaded, open_client
from bench.product import Site, payload, run_batches, run_cycles

AGENTS = 100
RUNNERS = 8
SLOTS = 4
"""The slots of each runner; each is a connection that leases, reports, and leases again."""
AT_ONCE = 16
"""What a runner with many slots leases by one poll, and reports by one request."""
MANY_AGENTS = 256
"""More than all runners lease at once, so that each poll can be filled."""
BATCH = "/v1/runners/me/reports:batch"
RUN_S = 3.0
WARM_S = 0.5
ROUNDS = 3
WAIT_MS = 1000
PREFILLED = 60
"""Events an agent before each round; a round that uses them up fails, rather than measure an idle server."""
MANY_PREFILLED = 72
"""The same where there are many agents."""


class Cycles:
    """A server with work, and the runners that do it."""

    def __init__(
        self,
        client: Client,
        site: Site,
        agents: list[str],
        tokens: list[str],
        server_pid: int,
        *,
        prefilled: int = PREFILLED,
    ) -> None:
        self._client = client
        self._pid = server_pid
        self._site = site
        self._tokens = tokens
        self._agents = len(agents)
        self._prefilled = prefilled
        self._deliveries = server.deliveries_of(site, agents, payload())
        self.filled: list[str] = []
        self.reported: list[str] = []
        self.processor_us: list[float] = []
        """Processor time of the server for one cycle, a figure for each round."""
        self._times = 0

    async def singles(self) -> float:
        """Fill up, then measure; answers cycles/s. Each slot is a connection."""
        await self._fill()
        arguments, run_s = (self._site, self._tokens, WAIT_MS), harness.lasting(RUN_S)
        job = Job(self._site.address, run_cycles, arguments, RUNNERS * SLOTS, run_s, WARM_S)
        return await self._measured(job)

    async def batches(self) -> float:
        """The same; each runner is a connection that leases many, reports them, and leases again."""
        await self._fill()
        arguments, run_s = (self._site, self._tokens, AT_ONCE, WAIT_MS), harness.lasting(RUN_S)
        job = Job(self._site.address, run_batches, arguments, len(self._tokens), run_s, WARM_S)
        return await self._measured(job)

    async def _fill(self) -> None:
        self._times += 1
        for number in range(self._prefilled * self._times):
            if len(self.filled) - len(self.reported) >= self._prefilled * self._agents:
                break
            ids = [f"fill-{id(self)}-{self._times}-{number}-{i}" for i in range(self._agents)]
            requests = [d.with_id(name) for d, name in zip(self._deliveries, ids, strict=True)]
            answers = await self._client.call_all(self._site.address, requests, connections=32)
            self.filled += [answer["event_id"] for answer in answers]

    async def _measured(self, job: Job) -> float:
        counted = self._note(await self._client.run(job, self._pid))
        assert len(self.reported) < len(self.filled), "the work ran out"
        return counted / harness.lasting(RUN_S)

    def _note(self, loaded: Loaded) -> int:
        """Cycles whose report was answered within the run."""
        assert set(loaded.statuses) == {200}, loaded.statuses
        self.reported += [event_id for event_id, _ in loaded.notes]
        self.processor_us.append(1e6 * loaded.server_cpu_s / len(loaded.notes))
        return sum(1 for _, counted in loaded.notes if counted)


async def measure() -> dict[str, Any]:
    with open_client() as client, open_empty_server() as rival:
        async with server.open_folder() as process:
            site = await process.start(*server.UNHURRIED)
            about = machine.describe_with(process.database_url())
            before = await server.fill_purse(client, site)
            agents = await server.make_agents(client, site, MANY_AGENTS)
            few = await server.make_runners(client, site, RUNNERS, SLOTS)
            many = await server.make_runners(client, site, RUNNERS, AT_ONCE)
            cycles = Cycles(client, site, agents[:AGENTS], few, process.pid)
            batches = Cycles(client, site, agents, many, process.pid, prefilled=MANY_PREFILLED)

            contenders = {"cycles": cycles.singles, "empty": lambda: rival.round(client)}
            samples = await harness.alternate(contenders, rounds=ROUNDS)
            figures = _figures(samples, cycles.processor_us[1:])
            if await _takes_batches(client, site):
                contenders = {"cycles": batches.batches, "empty": lambda: rival.round(client)}
                samples = await harness.alternate(contenders, rounds=ROUNDS)
                figures += _batch_figures(samples, batches.processor_us[1:])
            await _check(client, site, [cycles, batches], before)
    return harness.report("lease_cycles", about, figures)


async def _takes_batches(client: Client, site: Site) -> bool:
    """An older server may be measured too."""
    described = await client.call(site.address, site.get("/openapi.json"))
    return BATCH in described["paths"]


async def _check(client: Client, site: Site, all_cycles: list[Cycles], before: int) -> None:
    reported = [event_id for cycles in all_cycles for event_id in cycles.reported]
    assert len(set(reported)) == len(reported), "one event was leased twice"
    harness.tell("reading the history")
    events = await server.history(client, site)
    processed = {event["event_id"] for event in events if event["status"] == "processed"}
    assert processed == set(reported), f"{len(reported)} reports, {len(processed)} events processed"
    charged = sum(event["charged_nanos"] for event in events)
    gone = before - await server.balance(client, site)
    assert charged == gone, f"the events say {charged}, {gone} nanos are gone"


def _figures(samples: dict[str, list[float]], processor_us: list[float]) -> list[harness.Figure]:
    return [
        harness.Figure("empty handler", harness.Spread.of(samples["empty"]), "requests/s"),
        harness.Figure(
            "lease + report, 8 runners, 100 agents",
            harness.Spread.of(samples["cycles"]),
            "cycles/s",
            "empty handler",
            harness.ratios(samples["cycles"], samples["empty"]),
            (harness.at_least_times(0.8), harness.at_least(1000, "cycles/s")),
        ),
        harness.Figure("server's processor time", harness.Spread.of(processor_us), "µs/cycle"),
    ]


def _batch_figures(samples: dict[str, list[float]], processor_us: list[float]) -> list[harness.Figure]:
    return [
        harness.Figure(
            "lease + report in 16s, 8 runners, 256 agents",
            harness.Spread.of(samples["cycles"]),
            "cycles/s",
            "empty handler",
            harness.ratios(samples["cycles"], samples["empty"]),
            (harness.at_least_times(2.5),),
        ),
        harness.Figure("server's processor time in 16s", harness.Spread.of(processor_us), "µs/cycle"),
    ]


def run() -> dict[str, Any]:
    return trio.run(measure)


if __name__ == "__main__":
    print(harness.line(run()))
