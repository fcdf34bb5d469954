"""Whatever a run does too much of, the lease of its neighbour is renewed as if it were alone."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.patience import PATIENCE_S
from tests.runner.floods import CONNECTIONS, FLOODS, MANY_CONNECTIONS, table
from tests.worlds.ordinary_user import as_ordinary_user, own_folder

ROOT = Path(__file__).resolve().parents[2]
CHANGE_S = 1.0


def carried_out(folder: Path, *, ordinary: bool) -> dict[str, Any]:
    """Run all floods beside one victim in a process of their own, as one user."""
    names = [name for name in FLOODS if FLOODS[name].by_user or not ordinary]
    words = [sys.executable, "-m", "tests.runner.floods", str(folder), *names]
    with tempfile.TemporaryDirectory() as stage:
        argv = as_ordinary_user(words, Path(stage)) if ordinary else words
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}/runner:{ROOT}"}
        done = subprocess.run(argv, capture_output=True, cwd=ROOT, env=env, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr.decode()
    found: dict[str, Any] = orjson.loads(done.stdout)
    return found


@pytest.fixture(scope="module", params=["as whoever runs the tests", "as an ordinary user"])
def results(request: pytest.FixtureRequest) -> dict[str, Any]:
    if request.param == "as an ordinary user":
        if os.geteuid() != 0:
            pytest.skip("whoever runs the tests is an ordinary user already")
        with own_folder() as folder:
            found = carried_out(folder, ordinary=True)
    else:
        with tempfile.TemporaryDirectory() as name:
            found = carried_out(Path(name), ordinary=False)
    sys.stdout.write(f"\nSlack of a lease of 30 s, {request.param}:\n{table(found['floods'])}\n")
    return found


def test_a_flood_leaves_its_neighbour_its_slack_and_ends_by_a_clear_label(results: dict[str, Any]) -> None:
    alone, others = results["floods"]["alone"], {**results["floods"]}
    del others["alone"]

    assert set(others) >= {name for name in FLOODS if FLOODS[name].by_user}
    # A machine that wakes us late as well wakes everybody late: that is no fault of the runner's.
    assert {
        name: row for name, row in others.items() if alone["slack"] - row["slack"] > CHANGE_S + row["lag"]
    } == {}
    assert {name: row for name, row in others.items() if row["label"] not in FLOODS[name].ends} == {}
    assert {
        name: row
        for name, row in others.items()
        if row["label"] not in (None, "timeout_kill") and FLOODS[name].says not in row["text"]
    } == {}


def test_what_came_out_of_the_floods_of_output_is_redacted(results: dict[str, Any]) -> None:
    for name in {"output to redact", "errors to redact"} & {*results["floods"]}:
        assert "[redacted]" in results["floods"][name]["text"]


def test_the_neighbour_of_all_these_floods_ended_well_at_its_first_attempt(results: dict[str, Any]) -> None:
    assert results["victim"] == ["processed"]
    assert results["lost"] == []


def test_of_too_many_asks_none_or_few_came_to_a_person(results: dict[str, Any]) -> None:
    assert results["asked"] <= 1 + 32


def test_of_too_many_connections_each_was_told(results: dict[str, Any]) -> None:
    row = results["floods"][MANY_CONNECTIONS]

    assert 0 < row["refused"] <= CONNECTIONS
    # The program counted the same, as far as it came: nothing but the bound kept a connection from it.
    assert row["refused"] >= row["tried"].get("refused", 0)
    assert row["tried"].get("taken", 0) == 0
