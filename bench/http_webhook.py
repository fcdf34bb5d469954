"""Signed webhooks that are durable when they are answered, against a handler that does nothing.

A webhook that is counted had its signature verified over the raw bytes, was found to be no repeat, and its
event was committed before the 202.
"""

import sys
from pathlib import Path
from statistics import median
from typing import Any

import trio

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that the file also runs by itself

from bench import harness, machine, server
from bench.empty import open_empty_server
from bench.load import Job, Loaded, open_client
from bench.load_figures import open_figures
from bench.product import payload, send_webhooks

AGENTS = 64
CONNECTIONS = 32
RUN_S = 3.0
ROUNDS = 3
SHARE = 0.5
"""The open loop's rate as a share of the closed loop's; its latencies count from when each was due."""
OPEN_S = 5.0


async def measure() -> dict[str, Any]:
    runs: list[Loaded] = []
    with open_client() as client, open_empty_server() as rival:
        async with server.open_folder() as process:
            site = await process.start(*server.UNHURRIED)
            about = machine.describe_with(process.database_url())
            agents = await server.make_agents(client, site, AGENTS)
            deliveries = server.deliveries_of(site, agents, payload())

            async def webhooks(rate: float = 0) -> float:
                run_s = OPEN_S if rate else harness.lasting(RUN_S)
                job = Job(site.address, send_webhooks, (deliveries, rate), CONNECTIONS, run_s)
                loaded = await client.run(job, process.pid)
                runs.append(loaded)
                return loaded.per_second

            contenders = {"webhooks": webhooks, "empty": lambda: rival.round(client)}
            samples = await harness.alternate(contenders, rounds=ROUNDS)
            rate = SHARE * median(samples["webhooks"])
            harness.tell(f"{rate:,.0f} webhooks a second, sent when they are due")
            await webhooks(rate)
            harness.tell("reading the history")
            kept = [item["event_id"] for item in await server.history(client, site)]
    accepted = [event_id for run in runs for notes in run.notes for event_id in notes]
    assert len(set(accepted)) == len(accepted), "one event id was given twice"
    assert sorted(kept) == sorted(accepted), f"{len(accepted)} webhooks accepted, {len(kept)} events kept"
    return harness.report("http_webhook", about, _figures(samples, runs[:-1], runs[-1]))


def _figures(samples: dict[str, list[float]], runs: list[Loaded], due: Loaded) -> list[harness.Figure]:
    return [
        harness.Figure("empty handler", harness.Spread.of(samples["empty"]), "requests/s"),
        harness.Figure(
            "github webhooks, 32 connections",
            harness.Spread.of(samples["webhooks"]),
            "webhooks/s",
            "empty handler",
            harness.ratios(samples["webhooks"], samples["empty"]),
            (harness.at_least_times(2),),
        ),
        harness.Figure(
            "server's processor time", harness.Spread.of([run.server_us for run in runs]), "µs/webhook"
        ),
        *(
            harness.Figure(
                f"latency {label}", harness.Spread.of([run.latency_ms(share) for run in runs]), "ms"
            )
            for label, share in (("p50", 0.5), ("p99", 0.99))
        ),
        *open_figures(due, "webhooks/s"),
    ]


def run() -> dict[str, Any]:
    return trio.run(measure)


if __name__ == "__main__":
    print(harness.line(run()))
