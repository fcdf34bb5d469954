"""All tests; the few that fail are tried once more by themselves, and named, whatever comes of it.

On two cores five processes test at a time, each with browsers, servers and databases. A test that fails only
in that crowd says something about itself, or about a race, and seldom that a promise is broken.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import orjson

PROCESSES: Final = 5
TRIED_AGAIN_AT_MOST: Final = 3
"""More than these have a reason in common."""
PASSED, FAILED = 0, 1
"""pytest's own exit statuses; every other one is about the run itself."""


def main(arguments: list[str], processes: int = PROCESSES) -> int:
    """The exit status of pytest: of the whole run, or of those that were tried again."""
    with tempfile.TemporaryDirectory() as folder:
        status = run_pytest("--numprocesses", str(processes), *arguments, cache=Path(folder))
        failed = failed_tests(Path(folder))
        if status != FAILED or not 0 < len(failed) <= TRIED_AGAIN_AT_MOST:
            return status
        print(f"\n{len(failed)} failed, and will be tried again by themselves.", flush=True)
        status = run_pytest(*failed, cache=Path(folder))
        if status == PASSED:
            print("\nThese failed beside other tests and passed by themselves. Find out why, and mend them:")
            print("\n".join(f"PASSED THE SECOND TIME {test}" for test in failed), flush=True)
        return status


def run_pytest(*arguments: str, cache: Path) -> int:
    command = [sys.executable, "-m", "pytest", "-o", f"cache_dir={cache}", *arguments]
    return subprocess.run(command, check=False).returncode


def failed_tests(cache: Path) -> list[str]:
    """What pytest noted of its last run, by the names that it takes."""
    noted = cache / "v" / "cache" / "lastfailed"
    return sorted(orjson.loads(noted.read_bytes())) if noted.exists() else []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
