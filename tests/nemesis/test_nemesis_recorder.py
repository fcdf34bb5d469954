"""What clients do and see is written as the checker reads it, and counted for the report."""

import io
import json

from tests.nemesis.checker.history import Entry, answered
from tests.nemesis.recorder import NS_A_SECOND, Recorder


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now_s = 0

    def __call__(self) -> int:
        return self.now_s * NS_A_SECOND


def test_each_operation_has_a_beginning_and_one_end_that_the_checker_can_read() -> None:
    file = io.StringIO()
    recorder = Recorder(file, Clock())

    kept = recorder.begin(1, "send", {"agent": "a", "delivery": "d1"})
    refused = recorder.begin(2, "send", {"agent": "a", "delivery": "d2"})
    recorder.begin(3, "grant", {})
    recorder.ok(kept, {"event": "e1"})
    recorder.fail(refused, 409, "UZ-RUN-005")
    recorder.close()

    entries = [Entry(**json.loads(line)) for line in file.getvalue().splitlines()]

    assert [(entry.op, entry.kind) for entry in entries] == [
        (1, "invoke"),
        (2, "invoke"),
        (3, "invoke"),
        (1, "ok"),
        (2, "fail"),
        (3, "unknown"),
    ]
    assert [done.value for done in answered(entries)] == [{"agent": "a", "delivery": "d1", "event": "e1"}]
    assert recorder.refusals == {"409 UZ-RUN-005": 1, "the run is over": 1}


def test_the_longest_gap_counts_to_the_end_of_the_faults_and_no_further() -> None:
    clock = Clock()
    recorder = Recorder(io.StringIO(), clock)

    for at_s in (2, 5):
        clock.now_s = at_s
        recorder.ok(recorder.begin(1, "send", {}), {})
    clock.now_s = 12
    recorder.stop_gaps()
    clock.now_s = 60
    recorder.ok(recorder.begin(1, "send", {}), {})

    assert recorder.gaps_s == {"send": 7}
    assert recorder.ends["send"] == {"ok": 3}
