"""Runs the peers beside Sexton, on one PostgreSQL and in one run: jobs a second from the queue to done.

The peers stand in an environment of their own (``make bench-peers`` makes it), and each contender gets an
empty database for every round. Enqueuing is done before the clock begins, on all sides.
"""

import sys
from collections.abc import Awaitable, Callable
from typing import Any

import trio

from bench import harness
from bench.database import open_database
from bench.peers.arena import JOBS, Arena
from bench.table import table

FEW = 1000
"""For those that do some hundreds a second: a round should not take minutes."""
ROUNDS = 3
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


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: python -m bench.peers PYTHON, of the environment in which the peers are")
    result = trio.run(measure, sys.argv[1])
    print(harness.line(result))
    print(f"\n{table([result])}")


if __name__ == "__main__":
    main()
