"""Runs leasebench: ``python -m bench.leasebench [ADAPTER ...]``; writes a page and prints where it is."""

import argparse
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import trio

from bench import harness, machine
from bench.cleanup import run_clean
from bench.leasebench.adapter import names
from bench.leasebench.page import written
from bench.leasebench.processes import HolderFailed
from bench.leasebench.referee import Options, Referee, System
from sexton_storage.embedded import EmbeddedSettings, open_embedded_server

ROOMY = {"max_connections": "500"}
"""Five holders of each of the systems that fail together, and each has a pool."""


def arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="leasebench", description="Lease services beside each other.")
    parser.add_argument(
        "adapters", nargs="*", help=f"names ({', '.join(names())}) or paths; all by themselves"
    )
    parser.add_argument("--seconds", type=float, default=4.0, help="of each of the four loops (4)")
    parser.add_argument(
        "--pause", type=float, default=40.0, help="s that holders are stopped or cut off (40)"
    )
    parser.add_argument(
        "--term", type=float, default=6.0, help="s that a lease lasts, where it can be chosen (6)"
    )
    parser.add_argument(
        "--at-once", type=int, default=5, help="systems whose failures are tried together (5)"
    )
    parser.add_argument("--no-rates", action="store_true", help="failures only")
    parser.add_argument("--no-failures", action="store_true", help="rates only")
    parser.add_argument("--quick", action="store_true", help="short loops and pauses; figures to throw away")
    parser.add_argument("--peers", help="the interpreter that the peers are installed for")
    parser.add_argument("--out", type=Path, default=Path("dist/leasebench"), help="folder of the page")
    return parser.parse_args(words)


def options(asked: argparse.Namespace) -> Options:
    chosen = Options(
        product=sys.executable,
        peers=asked.peers,
        seconds=asked.seconds,
        pause_s=asked.pause,
        term_s=asked.term,
        at_once=asked.at_once,
        rates=not asked.no_rates,
        failures=not asked.no_failures,
    )
    return replace(chosen, seconds=0.3, pause_s=4.0, term_s=1.5, tell_s=0.1) if asked.quick else chosen


class Found:
    """What has been found so far, and the page of it, which is written after each part."""

    def __init__(self, chosen: Options, out: Path) -> None:
        self._chosen = chosen
        self._out = out
        self._began = time.monotonic()
        self.machine: dict[str, Any] = {}
        self.systems: dict[str, dict[str, Any]] = {}

    def write(self) -> None:
        found = {
            "machine": self.machine,
            "seconds": self._chosen.seconds,
            "pause_s": self._chosen.pause_s,
            "took_s": time.monotonic() - self._began,
            "systems": self.systems,
        }
        self._out.mkdir(parents=True, exist_ok=True)
        (self._out / "leasebench.json").write_bytes(orjson.dumps(found))
        (self._out / "leasebench.html").write_text(written(found), encoding="utf-8")


async def run(adapters: Sequence[str], chosen: Options, folder: Path, found: Found) -> None:
    """All systems over one PostgreSQL; one that fails says why in its place."""
    async with open_embedded_server(EmbeddedSettings(folder / "database", ROOMY)) as database:
        found.machine = machine.describe_with(database.dsn)
        pid = int((folder / "database" / "postgres" / "postmaster.pid").read_text().split("\n")[0])
        referee = Referee(database.dsn, pid, folder, chosen)
        systems: list[System] = []
        for name in adapters:
            try:
                system = await referee.describe(name)
            except HolderFailed as error:
                found.systems[name] = {"about": {"title": name, "does_not": []}, "failed": str(error)}
                harness.tell(f"{name} cannot be had: {error}")
                continue
            systems.append(system)
            found.systems[name] = {"about": system.about, "rates": None, "failures": None, "failed": None}
        if chosen.rates:
            for system in systems:
                await _kept(found, "rates", system, referee.rates)
        if chosen.failures:
            limit = trio.CapacityLimiter(chosen.at_once)
            async with trio.open_nursery() as nursery:
                for system in systems:
                    nursery.start_soon(_in_turn, limit, found, system, referee)


async def _in_turn(limit: trio.CapacityLimiter, found: Found, system: System, referee: Referee) -> None:
    async with limit:
        harness.tell(f"{system.name}: failures")
        await _kept(found, "failures", system, referee.failures)


async def _kept(
    found: Found, part: str, system: System, play: Callable[[System], Awaitable[dict[str, Any]]]
) -> None:
    """A system that cannot be measured is no reason not to measure the others."""
    result = found.systems[system.name]
    try:
        result[part] = await play(system)
    except (HolderFailed, OSError, trio.TooSlowError, ExceptionGroup) as error:
        result["failed"] = f"{part}: {_first(error)}"
        harness.tell(f"{system.name}: {result['failed']}")
    found.write()


def _first(error: Exception) -> Exception:
    """What began it: an error that passes the proxies' nurseries comes in groups."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


def main(words: Sequence[str]) -> int:
    """0 when all could be measured, 1 when one could not; faults that were found are no error."""
    asked = arguments(words)
    chosen = options(asked)
    found = Found(chosen, asked.out)
    with tempfile.TemporaryDirectory(prefix="leasebench-") as folder:
        trio.run(run, asked.adapters or names(), chosen, Path(folder), found)
    found.write()
    print(asked.out / "leasebench.html")
    return 1 if any(one["failed"] for one in found.systems.values()) else 0


if __name__ == "__main__":
    sys.exit(run_clean(lambda: main(sys.argv[1:])))
