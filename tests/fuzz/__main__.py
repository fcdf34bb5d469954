"""Fuzzes what reads strangers' bytes, guided by coverage: ``python -m tests.fuzz PYTHON_WITH_ATHERIS``.

With ``--keep`` the inputs that reach something new are kept in ``tests/fuzz/corpus``.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

from tests.fuzz.corpus import MOST_BYTES, keep, kept

ROOT: Final = Path(__file__).parents[2]
CHILD: Final = ROOT / "tests" / "fuzz" / "child.py"
CRASHES: Final = ROOT / ".cache" / "fuzz"
NAMES: Final = sorted(path.stem for path in (ROOT / "tests" / "fuzz" / "corpus").glob("*.txt"))
MOST_LENGTH: Final = 2_048
"""Bytes of an input, at most."""
HANGS_S: Final = 30
"""An input that takes longer is a fault, as is one for which a gigabyte of memory is taken."""
LAST_LINES: Final = 20
"""What is shown of a process that ended for no known reason."""
_DONE: Final = re.compile(r"#(\d+)\s+\w+\s+cov: (\d+) ft: (\d+)")
_SITE: Final = "import atheris, sysconfig; print(sysconfig.get_path('platlib'))"


class Run(NamedTuple):
    """What came of one target."""

    name: str
    executions: int
    seconds: int
    edges: int
    features: int
    crash: bytes | None
    ended: int
    """The status with which its process ended."""
    said: str

    @property
    def failed(self) -> bool:
        return self.crash is not None or self.ended != 0


def site_of(python: str) -> str | None:
    """Where the fuzzer is installed; None where it is not."""
    if not Path(python).exists():
        return None
    found = subprocess.run([python, "-c", _SITE], capture_output=True, text=True, check=False)
    return found.stdout.strip() if found.returncode == 0 else None


def fuzz(site: str, name: str, seconds: int, *, keeps: bool) -> Run:
    """Run one target for some time, from what is kept of it."""
    with tempfile.TemporaryDirectory() as folder:
        corpus, least = Path(folder, "corpus"), Path(folder, "least")
        corpus.mkdir()
        least.mkdir()
        for number, data in enumerate(kept(name)):
            (corpus / str(number)).write_bytes(data)
        limits = [f"-max_len={MOST_LENGTH}", f"-timeout={HANGS_S}", "-rss_limit_mb=1024"]
        crash = Path(folder, "crash")
        began = time.monotonic()
        ended, said = _child(
            site, name, *limits, f"-max_total_time={seconds}", f"-exact_artifact_path={crash}", str(corpus)
        )
        numbers = [tuple(map(int, found)) for found in _DONE.findall(said)] or [(0, 0, 0)]
        executions, edges, features = numbers[-1]
        took = round(time.monotonic() - began)
        found = crash.read_bytes() if crash.exists() else None
        if keeps and not (found or ended):
            _child(site, name, "-merge=1", *limits, str(least), str(corpus))
            _keep_some(name, [path.read_bytes() for path in least.iterdir()])
        return Run(name, executions, took, edges, features, found, ended, said)


def _child(site: str, name: str, *options: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, str(CHILD), site, name, *options],
        capture_output=True,
        text=True,
        check=False,
        errors="replace",
    )
    return done.returncode, done.stdout + done.stderr


def _keep_some(name: str, found: list[bytes]) -> None:
    """As many as have room, besides those that are kept: the shortest, for they are easiest to read."""
    left = MOST_BYTES // len(NAMES) - 500
    chosen = kept(name)
    left -= sum(len(repr(one)) + 1 for one in chosen)
    for data in sorted(found, key=len):
        left -= len(repr(data)) + 1
        if left < 0:
            break
        chosen.append(data)
    keep(name, chosen)


def _report(run: Run) -> None:
    sys.stdout.write(
        f"{run.name:<14} {run.executions:>10} inputs {run.seconds:>6} s"
        f" {run.edges:>6} edges {run.features:>6} features\n"
    )
    if run.crash is not None:
        CRASHES.mkdir(parents=True, exist_ok=True)
        (CRASHES / run.name).write_bytes(run.crash)
        trace = run.said[run.said.find("Traceback") :].partition("\n\n")[0]
        sys.stdout.write(f"A FAULT of {run.name}, kept in {CRASHES / run.name}:\n{run.crash!r}\n{trace}\n")
    elif run.failed:
        # Of an input that takes too long only this is left, and where the program was then.
        lines, found = run.said.splitlines(), run.said.find("=== Timeout")
        told = lines[-LAST_LINES:] if found < 0 else run.said[found:].splitlines()[:LAST_LINES]
        sys.stdout.write(
            "\n".join([f"{run.name} ended with status {run.ended}, and left no input:", *told, ""])
        )
    sys.stdout.flush()


def main(words: list[str]) -> int:
    """1 when a fault was found."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("python", help="that of the environment in which atheris is")
    parser.add_argument("targets", nargs="*", help="which to fuzz (default: all)")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--keep", action="store_true", help="keep what reaches something new")
    chosen = parser.parse_args(words)
    site = site_of(chosen.python)
    if site is None:
        sys.stdout.write(
            "atheris could not be installed for this Python. Hypothesis tries inputs without coverage.\n"
        )
        program = [sys.executable, "-m", "pytest", "-q", str(CHILD.parent)]
        return subprocess.run(program, env={**os.environ, "SEXTON_THOROUGH": "1"}, check=False).returncode
    faults = 0
    with ThreadPoolExecutor(chosen.processes) as pool:
        jobs = [
            pool.submit(fuzz, site, name, chosen.seconds, keeps=chosen.keep)
            for name in chosen.targets or NAMES
        ]
        for job in jobs:
            _report(job.result())
            faults += job.result().failed
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
