"""How long ``sexton up`` takes until it is ready, on an empty folder and on one that it knows.

From the start of the process to the moment its ready file is there; then the server answers at once. It
includes Python's own start, the embedded database, migrations, and the first tenant.
"""

import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import trio

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that the file also runs by itself

from bench import harness, machine, server
from bench.load import Client, open_client

FIRST = 2
"""Empty folders."""
LATER = 3
"""Starts on a folder that has a database."""


async def _start(client: Client, process: server.Server) -> float:
    began = perf_counter()
    site = await process.start()
    took = perf_counter() - began
    healthy = await client.call(site.address, site.get("/healthz"))
    assert healthy["status"] == "ok", healthy
    return took


async def measure() -> dict[str, Any]:
    first: list[float] = []
    later: list[float] = []
    about: dict[str, Any] = {}
    with open_client() as client:
        for _ in range(FIRST):
            async with server.open_folder() as process:
                first.append(await _start(client, process))
                about = machine.describe_with(process.database_url())
                await process.stop()
                while len(later) < LATER * len(first) / FIRST:
                    later.append(await _start(client, process))
                    await process.stop()
    return harness.report(
        "startup",
        about,
        [
            harness.Figure(
                "first start, empty folder",
                harness.Spread.of(first),
                "s",
                budgets=(harness.at_most(10, "s"),),
            ),
            harness.Figure("later start", harness.Spread.of(later), "s", budgets=(harness.at_most(3, "s"),)),
        ],
    )


def run() -> dict[str, Any]:
    return trio.run(measure)


if __name__ == "__main__":
    print(harness.line(run()))
