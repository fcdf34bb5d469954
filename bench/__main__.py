"""Runs the benchmarks, each in a process of its own, and sets out what they found.

``python -m bench [NAME ...]``: one JSON line each, then a table. The exit status is 0 also when a budget is
missed (the table says so), and 1 when a benchmark itself failed.
"""

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from bench.table import table

ALL = (
    "mailbox",
    "journal",
    "lease_renewal",
    "http_renewal",
    "http_webhook",
    "lease_cycles",
    "ingress_to_lease",
    "startup",
)
LIMIT_S = 180
"""A benchmark that takes longer hangs."""


def run_one(name: str) -> dict[str, Any] | None:
    """Its result; None when it failed, which it has then explained itself."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", f"bench.{name}"], stdout=subprocess.PIPE, timeout=LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        print(f"{name}: not done after {LIMIT_S} s", file=sys.stderr)
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
    unknown = [name for name in names if name not in ALL]
    if unknown:
        print(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(ALL)}", file=sys.stderr)
        return 64
    chosen = [name for name in ALL if not names or name in names]
    began = time.monotonic()
    results = []
    for name in chosen:
        print(f"{name} …", file=sys.stderr, flush=True)
        if (result := run_one(name)) is not None:
            print(orjson.dumps(result).decode(), flush=True)
            results.append(result)
    print(f"\n{machine_of(results)}\n\n{table(results)}\n\n{time.monotonic() - began:.0f} s")
    return 0 if len(results) == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
