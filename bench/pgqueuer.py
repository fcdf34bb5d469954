"""Events claimed, renewed and reported without HTTP, beside pgqueuer's jobs on one PostgreSQL.

pgqueuer fences, renews and meters nothing: it is what the bookkeeping of a queue costs at least. It stands
in an environment of its own, which ``make bench`` sets up where the package index can be reached.
"""

import os
import sys
from pathlib import Path
from typing import Any

import trio

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that the file also runs by itself

from bench import harness
from bench.database import open_database
from bench.peers.arena import JOBS, Arena

PYTHON = os.environ.get("BENCH_PEERS_PYTHON", ".venv-peers/bin/python")
"""The interpreter that has pgqueuer."""
ROUNDS = 3


async def measure() -> dict[str, Any]:
    async with open_database() as database:
        arena = Arena(database.dsn, PYTHON)
        contenders = {"sexton": arena.ours, "pgqueuer": arena.peer("pgqueuer_jobs.py", JOBS)}
        samples = await harness.alternate(contenders, rounds=ROUNDS)
    return harness.report("pgqueuer", database.about, _figures(samples))


def _figures(samples: dict[str, list[float]]) -> list[harness.Figure]:
    ours, theirs = samples["sexton"], samples["pgqueuer"]
    return [
        harness.Figure("pgqueuer, batches of 100", harness.Spread.of(theirs), "jobs/s"),
        harness.Figure(
            "claim, renew, report without HTTP",
            harness.Spread.of(ours),
            "jobs/s",
            "pgqueuer",
            harness.ratios(ours, theirs),
            (harness.at_least_times(0.35),),
        ),
    ]


def run() -> dict[str, Any]:
    if not Path(PYTHON).exists():
        sys.exit(f"there is no {PYTHON}: `make .venv-peers/.locked` sets the peers up")
    return trio.run(measure)


if __name__ == "__main__":
    print(harness.line(run()))
