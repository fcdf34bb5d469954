"""What clients do and see is written as the checker reads it, by one process or by one that is killed."""

import io
import json

from tests.nemesis.checker.history import Entry, answered
from tests.nemesis.recorder import Recorder


def test_each_operation_has_a_beginning_and_one_end_that_the_checker_can_read() -> None:
    file = io.BytesIO()
    recorder = Recorder(file, lambda: 5, first_op=70)

    kept = recorder.begin(1, "send", {"agent": "a", "delivery": "d1"})
    refused = recorder.begin(2, "send", {"agent": "a", "delivery": "d2"})
    recorder.begin(3, "grant", {})
    recorder.ok(kept, {"event": "e1"})
    recorder.fail(refused, 409, "UZ-RUN-005")
    recorder.close()

    entries = [Entry(**json.loads(line)) for line in file.getvalue().splitlines()]

    assert [(entry.op, entry.kind) for entry in entries] == [
        (71, "invoke"),
        (72, "invoke"),
        (73, "invoke"),
        (71, "ok"),
        (72, "fail"),
        (73, "unknown"),
    ]
    assert [done.value for done in answered(entries)] == [{"agent": "a", "delivery": "d1", "event": "e1"}]
