"""Real processes under real faults: ``python -m tests.nemesis --minutes 30 [--seed 7] [--folder FOLDER]``.

Ends with 0 when the checker found no violation, and with 1 when it found one.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import trio

from tests.nemesis.life import Size, live
from tests.nemesis.report import figures, text
from tests.nemesis.schedule import Kind

FOLDER: Final = Path(".cache/nemesis")
LEAST_MINUTES: Final = 0.5
MOST_MINUTES: Final = 240.0
_COUNT: Final = re.compile(r"^(\w+): (\d+) violations$", re.MULTILINE)


def main() -> int:
    """Run it, have it judged, print the report."""
    parser = argparse.ArgumentParser(prog="python -m tests.nemesis", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="how long faults come")
    parser.add_argument("--seed", type=int, default=1, help="which faults come, and when")
    parser.add_argument("--events", type=float, default=Size.events_per_s, help="events a second, at most")
    parser.add_argument(
        "--renew", type=float, default=Size.renew_s, help="seconds between renewals of a lease"
    )
    parser.add_argument(
        "--only", type=Kind, nargs="+", default=tuple(Kind), help="these kinds of faults alone"
    )
    parser.add_argument("--folder", type=Path, default=FOLDER, help="for the history, logs and report")
    options = parser.parse_args()
    minutes = min(max(options.minutes, LEAST_MINUTES), MOST_MINUTES)
    folder = options.folder / f"seed-{options.seed}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    size = Size(
        minutes * 60,
        options.seed,
        events_per_s=options.events,
        renew_s=options.renew,
        kinds=tuple(options.only),
    )
    return run(size, folder.resolve())


def run(size: Size, folder: Path) -> int:
    """One run into that folder; the exit status."""
    began = time.monotonic()

    def tell(line: str) -> None:
        sys.stdout.write(f"{time.monotonic() - began:7.1f} s  {line}\n")
        sys.stdout.flush()

    told = trio.run(live, size, folder, tell)
    tell("the checker reads the history")
    # In a process of its own: it shares nothing with what it judges.
    words = [sys.executable, "-m", "tests.nemesis.checker", str(folder / "history.jsonl")]
    judged = subprocess.run(
        [*words, "--edn", str(folder)], capture_output=True, text=True, check=False, cwd=Path.cwd()
    )
    (folder / "verdict.txt").write_text(judged.stdout + judged.stderr)
    verdict = {rule: int(count) for rule, count in _COUNT.findall(judged.stdout)}
    about = figures(size, told, verdict)
    (folder / "report.json").write_text(json.dumps(about, indent=2) + "\n")
    sys.stdout.write(f"{judged.stdout}{judged.stderr}\n{text(about)}\n{folder}\n")
    return judged.returncode


if __name__ == "__main__":
    sys.exit(main())
