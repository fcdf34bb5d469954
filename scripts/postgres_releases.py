"""Runs the tests of storage on other releases of PostgreSQL than the one that Sexton brings.

``python -m scripts.postgres_releases FOLDER... [-- WORDS]``: each folder has the programs of one release, or
is a ``node_modules`` with several. Words go to pytest. Prints what became of the tests on each release; the
status is 1 where one failed. Some packages of PostgreSQL have no tools beside the server: tests that need
those are left out there, and are counted.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
BINDIR: Final = "SEXTON_TEST_PG_BINDIR"
TESTS: Final = ("tests/conformance", "tests/storage")
NEED_TOOLS: Final = (
    "tests/storage/test_storage_backup_kills.py",
    "tests/storage/test_storage_backups.py",
    "tests/storage/test_storage_row_backups.py",
    "tests/storage/test_storage_standby.py",
)
"""What calls ``pg_basebackup``, ``pg_dump`` or others of that kind."""
TOOL: Final = "pg_basebackup"
OWN_PROGRAMS: Final = (
    "tests/storage/test_storage_embedded.py::test_a_server_whose_owner_was_killed_is_stopped_and_succeeded",
    "tests/storage/test_storage_embedded.py::test_whatever_the_pid_file_says_the_server_starts",
    "tests/storage/test_storage_roles.py::test_whoever_may_reach_the_socket_and_is_not_the_folders_owner_is_not_let_in",
)
"""Tests that start programs of their own, on the release that Sexton brings; they are passed over."""


def main(words: Sequence[str]) -> int:
    """Run all releases, one after the other."""
    places, _, more = " ".join(words).partition(" -- ")
    folders = [folder for place in places.split() for folder in programs_in(Path(place).resolve())]
    if not folders:
        print(
            "no release of PostgreSQL was found: `make test-postgres` needs npm, or BINDIRS", file=sys.stderr
        )
        return 1
    told = []
    for folder in folders:
        status, line = tested(folder, more.split())
        told.append((status, line))
        print(line, flush=True)
    print("\n".join(["", *(line for _, line in told)]))
    return 1 if any(status for status, _ in told) else 0


def programs_in(place: Path) -> Iterator[Path]:
    """The folders of programs in a folder; those of ``node_modules`` get the links that npm has left out."""
    if (place / "postgres").is_file():
        yield place
    for release in sorted(place.glob("postgres-*/native")):
        for link in json.loads((release / "pg-symlinks.json").read_text(encoding="utf-8")):
            source, target = (release.parent / link[end] for end in ("source", "target"))
            if not target.exists():
                target.symlink_to(source.relative_to(target.parent))
        yield release / "bin"


def tested(folder: Path, words: Sequence[str]) -> tuple[int, str]:
    """How the tests ended, and a line that says so."""
    told = subprocess.run([folder / "postgres", "-V"], check=True, capture_output=True, text=True).stdout
    release = told.strip().removeprefix("postgres (PostgreSQL) ")
    without = [] if (folder / TOOL).is_file() else NEED_TOOLS
    ignored = [*(f"--ignore={name}" for name in without), *(f"--deselect={name}" for name in OWN_PROGRAMS)]
    command = [sys.executable, "-m", "pytest", "-q", *TESTS, *ignored, *words]
    print(f"PostgreSQL {release}: {' '.join(command[3:])}", flush=True)
    environment = {**os.environ, BINDIR: str(folder)}
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    lines = done.stdout.strip().splitlines()
    if done.returncode:
        print(done.stdout)
    ended = re.sub(r"^=+ | =+$", "", lines[-1]) if lines else f"status {done.returncode}"
    left_out = f"; without {TOOL}, so {len(without)} files were left out" if without else ""
    return done.returncode, f"PostgreSQL {release}: {ended}{left_out}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
