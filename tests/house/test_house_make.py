"""Every target of make sets up all it needs, and no more, from a bare clone."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.house.survey import ROOT


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what make looks at and nothing built."""
    # These tests may run under `make test` themselves, and a make hands its options down.
    for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "ARGS"):
        monkeypatch.delenv(name, raising=False)
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    return tmp_path


@pytest.mark.parametrize(
    "target", ["demo", "up", "test", "check", "bench", "leasebench", "docs", "lint", "lock", "fmt"]
)
def test_a_target_begins_by_making_an_environment_from_the_locks(clone: Path, target: str) -> None:
    plan = plan_of(clone, target)

    assert plan.startswith("scripts/make-venv .venv\n")
    assert (
        "--require-hashes -r requirements/build.lock -r requirements/runtime.lock -r requirements/models.lock"
        in plan
    )
    assert plan.count("--no-index --no-deps --no-build-isolation --editable .") == 1


@pytest.mark.parametrize("target", ["demo", "up"])
def test_who_only_runs_it_waits_for_no_development_tools(clone: Path, target: str) -> None:
    assert "dev.lock" not in plan_of(clone, target)


@pytest.mark.parametrize("target", ["test", "test-thorough", "bench", "leasebench"])
def test_tests_are_blind_to_the_database_of_the_caller(
    clone: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://localhost/precious")
    monkeypatch.setenv("PGHOST", "localhost")

    last = plan_of(clone, target).splitlines()[-1]

    assert "-u DATABASE_URL" in last
    assert "-u PGHOST" in last


def test_the_check_is_all_checks(clone: Path) -> None:
    plan = plan_of(clone, "check")

    for tool in (
        "ruff check",
        "ruff format --check",
        "mypy",
        "basedpyright",
        "lint-imports",
        "mkdocs build --strict",
        "python -m clients.maker",
    ):
        assert f".venv/bin/{tool}" in plan

    assert "check_wheel.py" in plan
    assert "-m scripts.suite" in plan


def plan_of(clone: Path, target: str) -> str:
    done = subprocess.run(
        ["make", "--dry-run", target], cwd=clone, check=True, capture_output=True, text=True
    )
    return done.stdout
