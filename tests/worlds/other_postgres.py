"""Has the tests of storage run on another release of PostgreSQL than the one that Sexton brings."""

import os
from pathlib import Path

from sexton_storage.embedded import programs
from sexton_storage.embedded.programs import Programs

TEST_BINDIR = "SEXTON_TEST_PG_BINDIR"
"""The folder of that release's programs; `make test-postgres` names one after the other."""


def take_other_postgres() -> None:
    """Where the environment names other programs, let them be found as if a package had brought them."""
    if named := os.environ.get(TEST_BINDIR):
        programs._WHEELS = (("pytest", named),)


def check_release(data: Path) -> None:
    """Raises AssertionError where the tests' database is of another release than was named."""
    if named := os.environ.get(TEST_BINDIR):
        runs = (data / "PG_VERSION").read_text(encoding="utf-8").strip()
        assert runs == Programs(Path(named)).major_version(), f"the tests run on PostgreSQL {runs}"
