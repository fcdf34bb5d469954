"""Lives through seeds: ``python -m tests.simulation --seeds 100``, or one of them again with ``--seed 7``.

``--shrink`` cuts a seed that breaks a promise down to what it takes, and tells it; ``--replay`` lives through
what was kept so.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.simulation.drill.faults import fault_named
from tests.simulation.drill.planting import planted
from tests.simulation.product.life import Heard, Size, lasting, live, unix_s
from tests.simulation.product.pace import DENSE, PACES
from tests.simulation.regression import FOLDER, keep, read
from tests.simulation.shrink import fault_of, shrink


class Line(NamedTuple):
    """What is printed of a seed, and what it adds to the sums."""

    seed: int
    said: str
    is_broken: bool
    simulated_s: float
    spent_s: float
    counts: Counter[str]
    """What was done: events, leases, gates, bulk jobs, erasures."""
    faults: Counter[str]
    """How many of each kind came."""


def _live(seed: int, size: Size, trace: str | None) -> Line:
    began, heard = time.process_time(), Heard()
    try:
        life = live(seed, size, told=trace is not None, heard=heard)
    except Exception as error:  # noqa: BLE001 - whatever a seed comes to is told, and the next one tried
        fault = fault_of(error)
        said, is_broken = f"BROKEN {type(fault).__name__}: {fault}", True
    else:
        said, is_broken = f"{life.value}, {life.seconds / 60:.1f} min, {life.sha256}", False
        if trace is not None:
            Path(trace).write_text("\n".join(life.lines), encoding="utf-8")
    counts: Counter[str] = Counter()
    if heard.record is not None:
        tables = heard.record.tables
        counts.update(events=len(tables.events), leases=len(tables.leases), gates=len(tables.gates))
        counts.update(jobs=len(tables.jobs), erasures=len(tables.erasures))
    spent_s = time.process_time() - began
    return Line(seed, said, is_broken, heard.ended_s, spent_s, counts, Counter(heard.counts))


def _lines(seeds: Sequence[int], size: Size, trace: str | None, processes: int) -> Iterator[Line]:
    one = partial(_live, size=size, trace=trace)
    if processes == 1 or len(seeds) == 1:
        yield from map(one, seeds)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(one, seeds)


class Sums:
    """What all seeds came to."""

    def __init__(self) -> None:
        self.seeds = self.broken = 0
        self.spent_s = self.simulated_s = 0.0
        self.counts: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()

    def add(self, line: Line) -> None:
        self.seeds += 1
        self.broken += line.is_broken
        self.spent_s += line.spent_s
        self.simulated_s += line.simulated_s
        self.counts += line.counts
        self.faults += line.faults

    def lines(self) -> Iterator[str]:
        """Two lines; how much simulated time a night brings is extrapolated from what was spent."""
        hours, core_hours = self.simulated_s / 3600, self.spent_s / 3600
        yield (
            f"{self.seeds} seeds, {self.broken} broken, {hours:.1f} simulated hours in {self.spent_s:.0f} s"
            f" of processor time: {self.seeds / core_hours:.0f} seeds and {hours / core_hours:.0f}"
            " simulated hours per core-hour"
        )
        done = ", ".join(f"{count} {name}" for name, count in self.counts.items())
        faults = ", ".join(f"{name} {count}" for name, count in sorted(self.faults.items()))
        yield f"{done}; {self.faults.total()} faults: {faults}"


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _shrink(seed: int, size: Size, fault: str | None) -> int:
    """Cut one seed down; 1 when it breaks a promise, as those do that this is asked of."""
    with nullcontext() if fault is None else planted(fault_named(fault)):
        shrunk = shrink(seed, size, progress=_say)
    if shrunk is None:
        _say(f"seed {seed} breaks no promise")
        return 0
    name = f"{fault or 'seed'}-{seed}.json"
    kept = keep(shrunk, seed, size, FOLDER / name, fault)
    _say("\n".join(kept.story))
    _say(f"kept: make simulate ARGS='--replay {FOLDER.relative_to(Path.cwd()) / name}'")
    return 1


def _replay(path: Path) -> int:
    """Live through a kept one with what was planted, or with the product as it is; 1 when it is broken."""
    regression = read(path)
    failure = regression.live(with_fault=True)
    if failure is None:
        _say("no promise is broken")
        return 0
    _say("\n".join(regression.story) if failure.judge == regression.judge else failure.said)
    return 1


def main(words: list[str]) -> int:
    """Print a line for each seed, which ends in the SHA-256 of its trace; 1 when a promise was broken."""
    parser = argparse.ArgumentParser(prog="simulate", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10, help="how many, from --first on")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, help="only this one")
    parser.add_argument("--minutes", type=float, default=10.0, help="simulated time of each, 2 or more")
    parser.add_argument("--pace", choices=sorted(PACES), default=DENSE.name, help="how much happens")
    parser.add_argument("--begins", type=unix_s, help="what calendars show at the beginning, in UTC")
    parser.add_argument(
        "--no-bulk-work",
        action="store_true",
        help="no bulk jobs, erasures, follow-ups, proposals, prices, rules at the door, cut-off runners "
        "and no balance that runs out",
    )
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--spend", type=float, help="minutes of processor time after which no more seeds begin"
    )
    parser.add_argument("--trace", help="a file for the trace of the last one")
    parser.add_argument(
        "--shrink", action="store_true", help="cut --seed down to what it takes, and keep that"
    )
    parser.add_argument("--fault", help="with --shrink: a fault of the drill that is planted")
    parser.add_argument("--replay", type=Path, help="live through a kept one again")
    chosen = parser.parse_args(words)
    size = lasting(chosen.minutes, chosen.pace, chosen.begins, bulk_work=not chosen.no_bulk_work)
    if chosen.replay is not None:
        return _replay(chosen.replay)
    if chosen.shrink:
        return _shrink(chosen.first if chosen.seed is None else chosen.seed, size, chosen.fault)
    seeds = range(chosen.first, chosen.first + chosen.seeds) if chosen.seed is None else [chosen.seed]
    sums = Sums()
    for line in _lines(seeds, size, chosen.trace, chosen.processes):
        sums.add(line)
        _say(f"seed {line.seed}: {line.said}")
        if chosen.spend is not None and sums.spent_s >= chosen.spend * 60:
            break
    for said in sums.lines():
        _say(said)
    return 1 if sums.broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
