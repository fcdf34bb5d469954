"""Changes the rules in one place at a time, and sees whether a test notices: ``python -m tests.mutation``.

``--write`` keeps the table as a page of the documentation.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

from tests.mutation.page import Result, unexplained, write_page
from tests.mutation.survivors import explained
from tests.mutation.trials import Trials, Tried

ROOT: Final = Path(__file__).parents[2]
KEPT: Final = ROOT / ".cache" / "mutants"
TESTS: Final = (
    "tests/actors/test_actors_*.py",
    "tests/actors/test_*_states.py",
    "tests/actors/test_lease_*.py",
    "tests/actors/test_transitions_*.py",
    "tests/conformance/test_*.py",
    "tests/storage/test_decisions_*.py",
    "tests/storage/test_storage_members.py",
)
BUDGET_S: Final = 3.0
REWRITTEN: Final = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"


def modules() -> list[str]:
    """All whose functions decide what a record becomes."""
    actors, storage = ROOT / "actors", ROOT / "storage"
    paths = [
        *actors.glob("sexton_actors/*/transitions.py"),
        *actors.glob("sexton_actors/*/transitions/*.py"),
        *storage.glob("sexton_storage/decisions/*.py"),
    ]
    names = (path.relative_to(ROOT).with_suffix("").parts[1:] for path in paths if path.stem != "__init__")
    return sorted(".".join(parts) for parts in names)


def try_all(
    chosen: Sequence[str], tests: Sequence[str], processes: int, budget_s: float, *, again: bool = False
) -> list[Result]:
    """Try all mutants of these modules; tell of each that survives, and of each module when it is through."""
    results: list[Result] = []
    before = {result.module: result for result in _kept(chosen)} if again else {}
    only = {name: {words for _, words in before[name].survivors} for name in chosen} if again else None

    def tell(module: str, tried: Sequence[Tried]) -> None:
        result = Result.of(module, tried)
        if again:
            # What was killed once stays killed, however many tests there are besides.
            result = result._replace(mutants=before[module].mutants)
        results.append(result)
        for line, name in result.survivors:
            _say(f"survives: {module}:{line} {name}")
        _say(f"{module:<56} {result.mutants:>5} {len(result.survivors):>5} survive")
        KEPT.mkdir(parents=True, exist_ok=True)
        (KEPT / f"{module}.json").write_text(json.dumps(result), encoding="utf-8")

    trials = Trials(chosen, processes, budget_s, tell, only)
    options = [
        "-q",
        "--no-header",
        "--capture=no",
        "-p",
        "no:cacheprovider",
        "--assert=plain",
        "-W",
        REWRITTEN,
    ]
    files = [str(path) for pattern in tests for path in sorted(ROOT.glob(pattern))]
    status = pytest.main([*options, *files, *map(_file_of, chosen)], plugins=[trials])
    if status not in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}:
        raise SystemExit(int(status))
    _say(f"asked {trials.tests} tests")
    return results


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _file_of(module: str) -> str:
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise SystemExit(f"error: there is no module {module}.")
    return spec.origin


def _kept(names: Sequence[str]) -> list[Result]:
    """What the last runs found, of each of these modules."""
    found = []
    for name in names:
        path = KEPT / f"{name}.json"
        if not path.exists():
            raise SystemExit(f"error: {name} has not been tried yet. Run `make mutants ARGS={name}` first.")
        module, count, survivors = json.loads(path.read_text(encoding="utf-8"))
        found.append(Result(module, count, tuple((line, words) for line, words in survivors)))
    return found


def main(words: list[str]) -> int:
    """1 when a survivor is not explained."""
    parser = argparse.ArgumentParser(prog="mutation", description=__doc__)
    parser.add_argument("modules", nargs="*", help="modules or patterns, such as *.lease.* (default: all)")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=BUDGET_S, help="how long a mutant's tests may take")
    parser.add_argument("--tests", nargs="+", default=TESTS, help="patterns of the files of tests")
    parser.add_argument("--again", action="store_true", help="only what survived the last run")
    parser.add_argument("--write", type=Path, help="the page to write, from the last run of each module")
    chosen = parser.parse_args(words)
    names = [name for word in chosen.modules or ["*"] for name in fnmatch.filter(modules(), word) or [word]]
    results = try_all(names, chosen.tests, chosen.processes, chosen.seconds, again=chosen.again)
    reasons = explained()
    left = unexplained(results, reasons)
    for one in left:
        _say(f"not explained: {one}")
    if chosen.write is not None and not left:
        write_page(chosen.write, _kept(modules()), reasons)
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
