"""Runs the peers beside Sexton, on one PostgreSQL and in one run: jobs a second from the queue to done.

The peers stand in an environment of their own (``make bench-peers`` makes it), and each contender gets an
empty database for every round. Enqueuing is done before the clock begins, on all sides.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from typing import Any

import asyncpg
import orjson
import trio

from bench import harness, machine
from bench.database import open_database
from bench.peers.ours import cycles
from bench.table import table

JOBS = 4000
FEW = 1000
"""For those that do some hundreds a second: a round should not take minutes."""
ROUNDS = 3
PROGRAMS = Path(__file__).parent / "programs"
PEERS = {
    "pgqueuer, batches of 100": ("pgqueuer_jobs.py", JOBS),
    "procrastinate, 100 at a time": ("procrastinate_jobs.py", FEW),
    "DBOS, workflows of one step, 64 at a time": ("dbos_jobs.py", FEW),
}


async def measure(python: str) -> dict[str, Any]:
    async with open_database() as database:
        arena = Arena(database.dsn, python)
        contenders: dict[str, Callable[[], Awaitable[float]]] = {"sexton": arena.ours}
        for name, (program, jobs) in PEERS.items():
            contenders[name] = arena.peer(program, jobs)
        samples = await harness.alternate(contenders, rounds=ROUNDS)
    ours = samples.pop("sexton")
    figures = [harness.Figure("sexton: claim, renew, report", harness.Spread.of(ours), "jobs/s")]
    for name, theirs in samples.items():
        spread, ratios = harness.Spread.of(theirs), harness.ratios(theirs, ours)
        figures.append(harness.Figure(name, spread, "jobs/s", "sexton", ratios))
    return harness.report("peers", database.about, figures)


class Arena:
    """One PostgreSQL with an empty database for whoever asks."""

    def __init__(self, dsn: str, python: str) -> None:
        self._dsn = dsn
        self._python = python
        self._numbers = count(1)

    async def _database(self) -> str:
        name = f"round_{next(self._numbers)}"
        maintenance = machine.superuser(self._dsn).replace("/sexton?", "/postgres?")
        await trio.to_thread.run_sync(_execute, maintenance, f"CREATE DATABASE {name} OWNER sexton")
        return self._dsn.replace("/sexton?", f"/{name}?")

    async def ours(self) -> float:
        return await cycles(await self._database(), JOBS)

    def peer(self, program: str, jobs: int) -> Callable[[], Awaitable[float]]:
        async def measured() -> float:
            command = [self._python, str(PROGRAMS / program), await self._database(), str(jobs)]
            done = await trio.run_process(command, capture_stdout=True)
            answer = orjson.loads(done.stdout.splitlines()[-1])
            return float(answer["jobs"] / answer["seconds"])

        return measured


def _execute(dsn: str, command: str) -> None:
    asyncio.run(_run(dsn, command))


async def _run(dsn: str, command: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(command)
    finally:
        await connection.close()


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: python -m bench.peers PYTHON, of the environment in which the peers are")
    result = trio.run(measure, sys.argv[1])
    print(harness.line(result))
    print(f"\n{table([result])}")


if __name__ == "__main__":
    main()
