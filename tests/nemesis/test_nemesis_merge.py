"""The histories of many processes become one, which is counted as it is written."""

import io
import json
from pathlib import Path

import pytest

from tests.nemesis.checker.history import Entry, answered
from tests.nemesis.merge import NS_A_SECOND, Tally, merge_histories
from tests.nemesis.recorder import Recorder


class Process:
    """One life of clients, which does what it does at the second that it is told."""

    def __init__(self, file: Path, life: int) -> None:
        self.file = file
        self.now_s = 0
        self._out = file.open("wb", buffering=0)
        self.recorder = Recorder(self._out, lambda: self.now_s * NS_A_SECOND, first_op=100 * life)

    def sends(self, at_s: int, event: str) -> None:
        self.now_s = at_s
        self.recorder.ok(self.recorder.begin(1, "send", {"delivery": event}), {"event": event})

    def is_killed(self, torn: bytes = b"") -> None:
        """``torn``: the beginning of a line that it could not write to its end."""
        self._out.write(torn)
        self._out.close()


@pytest.fixture
def first(tmp_path: Path) -> Process:
    return Process(tmp_path / "life-1.jsonl", 1)


@pytest.fixture
def second(tmp_path: Path) -> Process:
    return Process(tmp_path / "life-2.jsonl", 2)


def merged(tally: Tally, *processes: Process) -> list[Entry]:
    into = io.BytesIO()
    for process in processes:
        process.is_killed()
    merge_histories([process.file for process in processes], into, tally)
    return [Entry(**json.loads(line)) for line in into.getvalue().splitlines()]


def test_lines_of_all_processes_come_in_the_order_of_time(first: Process, second: Process) -> None:
    first.sends(1, "a")
    second.sends(2, "b")
    first.sends(3, "c")

    entries = merged(Tally(0, 0), first, second)

    assert [one.value["event"] for one in answered(entries)] == ["a", "b", "c"]


def test_what_a_killed_process_was_about_ends_as_unknown_at_the_end(first: Process, second: Process) -> None:
    first.recorder.begin(1, "send", {"delivery": "never answered"})
    first.is_killed(torn=b'{"op":101,"kind":"ok","time_ns":9')
    second.sends(2, "b")
    tally = Tally(0, 0)
    into = io.BytesIO()

    second.is_killed()
    merge_histories([first.file, second.file], into, tally)

    last = Entry(**json.loads(into.getvalue().splitlines()[-1]))

    assert (last.op, last.kind, last.time_ns) == (101, "unknown", 2 * NS_A_SECOND)
    assert tally.ends["send"] == {"ok": 1, "unknown": 1}
    assert tally.refusals == {"its client was killed": 1}


def test_events_are_counted_once_and_renewals_one_by_one(first: Process) -> None:
    tally = Tally(0, 0)
    for event in ("a", "a", "b"):
        first.sends(1, event)
    batch = {"slices": {"l1": [1, 5], "l2": [1, 5]}, "refused": {"l3": 409}}
    first.recorder.ok(first.recorder.begin(1, "renew-batch", {"asked": 3}), batch)

    merged(tally, first)

    assert (tally.events, tally.renewals, tally.refused_renewals) == (2, 2, {"409": 1})


def test_the_longest_gap_counts_to_the_end_of_the_faults_and_no_further(
    first: Process, second: Process
) -> None:
    tally = Tally(1 * NS_A_SECOND, 12 * NS_A_SECOND)
    first.sends(0, "before")
    second.sends(2, "a")
    first.sends(5, "b")
    second.sends(60, "in the quiet end")

    merged(tally, first, second)

    assert tally.gaps_s == {"send": 7}
    assert tally.ends["send"] == {"ok": 4}
