"""Runs the benchmarks, each in a process of its own, and sets out what they found.

``python -m bench [NAME ...]``: all that are short, or those that are named; one JSON line each, then a
table and a plot. The exit status is 0 also when a budget is missed (the table says so), and 1 when a
benchmark itself failed.
"""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from bench.cleanup import run_clean
from bench.plot import bars, draw
from bench.table import table

ALL = (
    "mailbox",
    "journal",
    "rows",
    "lease_renewal",
    "http_renewal",
    "http_webhook",
    "tls",
    "http2",
    "lease_cycles",
    "ingress_to_lease",
    "two_nodes",
    "dispatch",
    "fairness",
    "startup",
    "egress",
    "pgqueuer",
)
BY_NAME = (
    "memory",
    "peaks",
    "files",
    "soak",
    "day",
    "attacks",
    "workers",
    "refusals",
    "pythons",
    "searches",
    "retention",
    "census",
    "slice_days",
    "upgrade",
    "bulk_replay",
    "console",
    "front_end",
)
"""Those that take their time: they run only when they are named."""
LIMIT_S = 180
"""A benchmark that takes longer hangs."""
LONG_LIMIT_S = 1800
"""The limit of those that take longer."""


def run_one(name: str) -> dict[str, Any] | None:
    """The result; None when the benchmark failed, which it has then explained itself."""
    limit_s = LONG_LIMIT_S if name in BY_NAME else LIMIT_S
    try:
        done = subprocess.run(
            [sys.executable, "-m", f"bench.{name}"], stdout=subprocess.PIPE, timeout=limit_s, check=False
        )
    except subprocess.TimeoutExpired:
        print(f"{name}: not done after {limit_s} s", file=sys.stderr)
        return None
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        print(f"{name}: failed with status {done.returncode}", file=sys.stderr)
        return None
    result: dict[str, Any] = orjson.loads(lines[-1])
    return result


def machine_of(results: Sequence[Mapping[str, Any]]) -> str:
    """One line for all: they ran on the same machine, and some know its database as well."""
    facts: dict[str, Any] = {}
    for result in results:
        facts |= result["machine"]
    database = facts.pop("postgresql", None)
    words = [f"{name} {value}" for name, value in facts.items()]
    if isinstance(database, dict):
        words += [f"PostgreSQL {database['server_version']}"]
        words += [f"{name} {value}" for name, value in database.items() if name != "server_version"]
    return ", ".join(words)


def main(names: Sequence[str]) -> int:
    """Run these, or all; 0 when each of them could be measured."""
    known = (*ALL, *BY_NAME)
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 64
    # Which interpreters are to be compared only the caller knows.
    short = (*ALL, "pythons") if "BENCH_PYTHONS" in os.environ else ALL
    chosen = [name for name in known if (name in names if names else name in short)]
    began = time.monotonic()
    results = []
    texts = []
    times = []
    for name in chosen:
        print(f"{name} …", file=sys.stderr, flush=True)
        asked = time.monotonic()
        result = run_one(name)
        times.append(f"{name} {time.monotonic() - asked:.0f} s")
        if result is not None:
            texts.append(result.pop("text", ""))
            print(orjson.dumps(result).decode(), flush=True)
            results.append(result)
    took = f"{time.monotonic() - began:.0f} s in all: {', '.join(times)}"
    parts = (machine_of(results), *texts, table(results), draw(bars(results)), took)
    print("\n" + "\n\n".join(filter(None, parts)))
    return 0 if len(results) == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(run_clean(lambda: main(sys.argv[1:])))
