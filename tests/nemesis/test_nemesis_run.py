"""A short nemesis over real processes: nothing is broken, and what is broken in its history is found."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.nemesis.__main__ import run
from tests.nemesis.checker.history import OK, Entry, read
from tests.nemesis.checker.rules import check
from tests.nemesis.life import Size
from tests.thorough import THOROUGH

RUN_S = 90.0
Row = dict[str, Any]


def told(history: Path, f: str) -> Iterator[Row]:
    """What such an operation was answered, each time."""
    return (entry.value for entry in read(history) if (entry.f, entry.kind) == (f, OK))


def without(history: Path, name: str, is_lost: Callable[[Row], bool]) -> Iterator[Entry]:
    """The same history, had the last read not found such a row."""
    for entry in read(history):
        if (entry.f, entry.kind) == (f"read-{name}", OK):
            rows = [row for row in entry.value["rows"] if not is_lost(row)]
            yield entry._replace(value={"rows": rows})
        else:
            yield entry


@pytest.mark.skipif(not THOROUGH, reason="in make test-thorough: it takes three minutes")
def test_real_faults_break_no_rule_and_what_is_lost_would_be_found(tmp_path: Path) -> None:
    status = run(Size(RUN_S, seed=5, events_per_s=20, agents=200), tmp_path)

    about = json.loads((tmp_path / "report.json").read_text())
    history = tmp_path / "history.jsonl"
    sent = next(told(history, "send"))["event"]
    # The first batch that renewed anything, and whatever it was for.
    renewed = next(iter(next(one["slices"] for one in told(history, "renew-batch") if one["slices"])))
    event = next(
        lease["event"]
        for one in told(history, "grant")
        for lease in one["leases"]
        if lease["lease"] == renewed
    )
    lost_event = check(without(history, "events", lambda row: row["event"] == sent))
    lost_slices = check(without(history, "metering", lambda row: row["event"] == event))

    assert (status, sum(about["violations"].values())) == (0, 0)
    assert about["accepted"] > 0
    assert about["renewals"] > 0
    assert about["command_runs"] > 0
    assert len(about["faults"]) >= 5
    assert "each_accepted_once" in lost_event
    assert "every_cent_once" in lost_slices
    assert (tmp_path / "elle.edn").stat().st_size > 0
