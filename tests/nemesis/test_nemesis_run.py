"""A short nemesis over real processes: nothing is broken, and what is broken in its history is found."""

import json
from pathlib import Path

import pytest

from tests.nemesis.__main__ import run
from tests.nemesis.checker.history import Entry, read
from tests.nemesis.checker.rules import check
from tests.nemesis.life import Size
from tests.thorough import THOROUGH

RUN_S = 90.0


def without_one_event(entries: list[Entry]) -> list[Entry]:
    """The same history, had an event that was acknowledged been lost."""
    lost = next(entry.value["event"] for entry in entries if entry.f == "send" and entry.kind == "ok")
    last = next(entry for entry in entries if entry.f == "read-events" and entry.kind == "ok")
    rows = [row for row in last.value["rows"] if row["event"] != lost]
    return [entry._replace(value={"rows": rows}) if entry is last else entry for entry in entries]


@pytest.mark.skipif(not THOROUGH, reason="in make test-thorough: it takes three minutes")
def test_real_faults_break_no_rule_and_a_lost_event_would_be_found(tmp_path: Path) -> None:
    status = run(Size(RUN_S, seed=5, events_per_s=20, agents=100), tmp_path)

    about = json.loads((tmp_path / "report.json").read_text())
    entries = list(read(tmp_path / "history.jsonl"))
    planted = check(without_one_event(entries))

    assert (status, sum(about["violations"].values())) == (0, 0)
    assert about["accepted"] > 0
    assert about["renewals"] > 0
    assert about["command_runs"] > 0
    assert len(about["faults"]) >= 5
    assert "each_accepted_once" in planted
    assert (tmp_path / "elle.edn").stat().st_size > 0
