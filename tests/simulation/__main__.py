"""Lives through seeds: ``python -m tests.simulation --seeds 100``, or one of them again with ``--seed 7``."""

import argparse
import sys
import time
from pathlib import Path

from tests.simulation.product.life import lasting, live


def _fault(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def main(words: list[str]) -> int:
    """Print a line for each seed, which ends in the SHA-256 of its trace; 1 when a promise was broken."""
    parser = argparse.ArgumentParser(prog="simulate", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10, help="how many, from --first on")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, help="only this one")
    parser.add_argument("--minutes", type=float, default=10.0, help="simulated time of each, 2 or more")
    parser.add_argument("--trace", help="a file for the trace of the last one")
    chosen = parser.parse_args(words)
    seeds = range(chosen.first, chosen.first + chosen.seeds) if chosen.seed is None else [chosen.seed]
    size = lasting(chosen.minutes)
    broken, began, simulated_s = 0, time.process_time(), 0.0
    for seed in seeds:
        try:
            life = live(seed, size, told=chosen.trace is not None)
        except Exception as error:  # noqa: BLE001 - whatever a seed comes to is told, and the next one tried
            broken += 1
            fault = _fault(error)
            sys.stdout.write(f"seed {seed}: BROKEN {type(fault).__name__}: {fault}\n")
        else:
            simulated_s += life.seconds
            sys.stdout.write(f"seed {seed}: {life.value}, {life.seconds / 60:.1f} min, {life.sha256}\n")
            if chosen.trace is not None:
                Path(chosen.trace).write_text("\n".join(life.lines), encoding="utf-8")
        sys.stdout.flush()
    spent_s = time.process_time() - began
    sys.stdout.write(
        f"{len(seeds)} seeds, {broken} broken, {simulated_s / 3600:.1f} simulated hours in {spent_s:.0f} s"
        f" of processor time: {3600 * len(seeds) / spent_s:.0f} seeds per core-hour\n"
    )
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
