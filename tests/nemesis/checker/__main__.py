"""Judges a history that was kept: ``python -m tests.nemesis.checker history.jsonl [--edn FOLDER]``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.nemesis.checker import edn
from tests.nemesis.checker.history import NotAHistory, read
from tests.nemesis.checker.rules import RULES, check

SHOWN = 5


def main() -> int:
    """0: every rule holds; 1: one is broken; 2: it is no history."""
    parser = argparse.ArgumentParser(prog="python -m tests.nemesis.checker", description=__doc__)
    parser.add_argument("history", type=Path)
    parser.add_argument("--edn", type=Path, help="folder for the histories as Elle and Knossos read them")
    options = parser.parse_args()
    try:
        broken = check(read(options.history))
    except NotAHistory as error:
        sys.stderr.write(f"{options.history} cannot be judged: {error}\n")
        return 2
    for rule in RULES:
        sentences = broken.get(rule.__name__, [])
        sys.stdout.write(f"{rule.__name__}: {len(sentences)} violations\n")
        sys.stdout.writelines(f"  {sentence}\n" for sentence in sentences[:SHOWN])
    if options.edn is not None:
        options.edn.mkdir(parents=True, exist_ok=True)
        for name, lines in (("elle", edn.elle), ("knossos", edn.knossos)):
            # Read again for each, so that no history is in memory as a whole.
            with (options.edn / f"{name}.edn").open("w", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in lines(read(options.history)))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
