"""Plants each fault, and tells which judge notices it at which seed: ``python -m tests.simulation.drill``.

``--write`` keeps the table as a page of the documentation.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from tests.simulation.drill import faults_of_time
from tests.simulation.drill.faults import FAULTS
from tests.simulation.drill.mutants import CHANGES_NOTHING, EVERY, MUTANTS
from tests.simulation.drill.page import write_page
from tests.simulation.drill.planting import MOST_SEEDS, Fault, found
from tests.simulation.product.life import Size, lasting, unix_s
from tests.simulation.product.pace import DENSE, PACES

ALL = (*FAULTS, *MUTANTS)
Row = tuple[str, str, tuple[int, str] | None]


def _look(name: str, size: Size, seeds: int) -> Row:
    if name in CHANGES_NOTHING:
        seeds = 0
    fault: Fault = next(one for one in (*ALL, *faults_of_time.FAULTS) if one.name == name)
    return fault.name, fault.says, found(fault, size, seeds)


def rows(names: Sequence[str], size: Size, seeds: int, processes: int) -> Iterator[Row]:
    """Each fault with the seed and the judge, in the order of the names."""
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(partial(_look, size=size, seeds=seeds), names)


def main(words: list[str]) -> int:
    """1 when a fault was not noticed."""
    parser = argparse.ArgumentParser(prog="drill", description=__doc__)
    parser.add_argument("names", nargs="*", help="faults; all, if none is named")
    parser.add_argument("--seeds", type=int, default=MOST_SEEDS)
    parser.add_argument("--every", type=int, default=EVERY, help="try one mutant by rule in this number")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--pace", choices=sorted(PACES), default=DENSE.name)
    parser.add_argument("--begins", type=unix_s, help="what calendars show at the beginning, in UTC")
    parser.add_argument("--no-bulk-work", action="store_true", help="as in python -m tests.simulation")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--write", type=Path, help="the page to write")
    chosen = parser.parse_args(words)
    dense = (*FAULTS, *MUTANTS[:: chosen.every])
    all_of_pace = dense if chosen.pace == DENSE.name else faults_of_time.FAULTS
    names = chosen.names or [fault.name for fault in all_of_pace]
    size = lasting(chosen.minutes, chosen.pace, chosen.begins, bulk_work=not chosen.no_bulk_work)
    seen: list[Row] = []
    for name, says, noticed in rows(names, size, chosen.seeds, chosen.processes):
        seen.append((name, says, noticed))
        told = f"seed {noticed[0]}: {noticed[1]}" if noticed is not None else "NOT NOTICED"
        if name in CHANGES_NOTHING:
            told = f"changes nothing: {CHANGES_NOTHING[name]}"
        sys.stdout.write(f"{name:<24} {told}\n")
        sys.stdout.flush()
    if chosen.write is not None:
        write_page(chosen.write, seen, chosen.minutes, chosen.seeds, chosen.every)
    return 1 if any(noticed is None and name not in CHANGES_NOTHING for name, _, noticed in seen) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
