"""Every attack on the sandbox fails, whoever the runner is."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from tests.patience import PATIENCE_S
from tests.runner.attacks import ATTACKS, CANARY
from tests.runner.network_attacks import NETWORK_ATTACKS
from tests.worlds.ordinary_user import as_ordinary_user, own_folder

ROOT = Path(__file__).resolve().parents[2]


def carried_out(folder: Path, module: str = "attacks", *, ordinary: bool) -> dict[str, str]:
    """Run all attacks in a process of their own, as one user."""
    words = [sys.executable, "-m", f"tests.runner.{module}", str(folder)]
    with tempfile.TemporaryDirectory() as stage:
        argv = as_ordinary_user(words, Path(stage)) if ordinary else words
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}/runner:{ROOT}", "SEXTON_CANARY": CANARY}
        done = subprocess.run(argv, capture_output=True, cwd=ROOT, env=env, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr.decode()
    found: dict[str, str] = orjson.loads(done.stdout)
    return found


@pytest.fixture(scope="module", params=["as whoever runs the tests", "as an ordinary user"])
def results(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    if request.param == "as an ordinary user":
        if os.geteuid() != 0:
            pytest.skip("whoever runs the tests is an ordinary user already")
        with own_folder() as folder:
            yield carried_out(folder, ordinary=True)
    else:
        with tempfile.TemporaryDirectory() as name:
            yield carried_out(Path(name), ordinary=False)


@pytest.mark.parametrize("name", list(ATTACKS))
def test_the_attack_fails(results: dict[str, str], name: str) -> None:
    assert results[name] in ATTACKS[name].expect


def test_every_attack_was_carried_out(results: dict[str, str]) -> None:
    assert list(results) == list(ATTACKS)


@pytest.mark.parametrize("ordinary", [False, True])
def test_the_attacks_on_the_network_fail(ordinary: bool) -> None:
    if ordinary and os.geteuid() != 0:
        pytest.skip("whoever runs the tests is an ordinary user already")
    with own_folder() if ordinary else tempfile.TemporaryDirectory() as folder:
        results = carried_out(Path(folder), "network_attacks", ordinary=ordinary)
    for name, came in results.items():
        sys.stdout.write(f"{'an ordinary user' if ordinary else 'whoever tests':<17} {name}: {came}\n")

    assert set(NETWORK_ATTACKS) < set(results)
    assert [
        name for name, came in results.items() if came not in {**ATTACKS, **NETWORK_ATTACKS}[name].expect
    ] == []
