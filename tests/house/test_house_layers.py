"""A planted violation of any layer rule is found."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.house.survey import PACKAGES, ROOT, WINGS

# One sin against each contract. A module that exists already is left as it is.
SINS = {
    "storage/sexton_storage/postgres/__init__.py": "",
    "storage/sexton_storage/memory/__init__.py": "",
    "engine/sexton_engine/planted.py": "import sexton_storage",
    "storage/sexton_storage/planted.py": "import pykka",
    "storage/sexton_storage/records/planted.py": "import sexton_storage.memory",
    "storage/sexton_storage/postgres/sql/planted.py": "import sexton_storage.postgres.stores",
    "actors/sexton_actors/planted/__init__.py": "",
    "actors/sexton_actors/planted/helper.py": "import time",
    "actors/sexton_actors/planted/transitions.py": "import sexton_actors.planted.helper",
    "actors/sexton_actors/gate/planted.py": "import sexton_actors.lease.actor",
    "engine/sexton_engine/planted_left.py": "import sexton_engine.planted_right",
    "engine/sexton_engine/planted_right.py": "import sexton_engine.planted_left",
    "engine/sexton_engine/mail/planted.py": "import sexton_engine.supervision",
    "storage/sexton_storage/decisions/planted.py": "import sexton_storage.memory.tables",
    "http/sexton_http/gateway/planted.py": "import sexton_http.routes",
    "http/sexton_http/planted.py": "import asyncio\nimport sexton_storage.memory",
    "runner/sexton_runner/planted.py": "import sexton_actors",
    "cli/sexton_cli/planted.py": "import hypercorn",
}
CONTRACTS = [
    contract["name"]
    for contract in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
]


@pytest.fixture(scope="module")
def verdict(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Lint a copy of the house in which every rule is broken."""
    house = tmp_path_factory.mktemp("house")
    shutil.copy(ROOT / "pyproject.toml", house)
    for wing in WINGS:
        shutil.copytree(ROOT / wing, house / wing, ignore=shutil.ignore_patterns("__pycache__"))
    for name, sin in SINS.items():
        plant(house / name, sin)
    return lint(house)


@pytest.mark.parametrize("contract", CONTRACTS)
def test_a_planted_violation_is_found(verdict: str, contract: str) -> None:
    assert f"{contract} BROKEN" in verdict


def test_every_package_is_under_the_contracts(verdict: str) -> None:
    assert len(CONTRACTS) >= len(PACKAGES)
    assert re.search(rf"Contracts: 0 kept, {len(CONTRACTS)} broken", verdict)


def plant(path: Path, sin: str) -> None:
    if sin or not path.exists():
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'"""Sins."""\n\n{sin}\n')


def lint(house: Path) -> str:
    """Answer with runs of white space as one blank, since the linter wraps long names."""
    roots = os.pathsep.join(str(house / wing) for wing in WINGS)
    program = (
        "import sys; from importlinter.cli import lint_imports_command; sys.exit(lint_imports_command())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "--no-cache", "--no-logo"],
        cwd=house,
        env={**os.environ, "PYTHONPATH": roots, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return " ".join(done.stdout.split())
