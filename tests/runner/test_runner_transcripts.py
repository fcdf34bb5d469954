"""What a run said and did is sent as its transcript: numbered, redacted, bounded, and before the report."""

import base64
from pathlib import Path
from typing import Any

from sexton_runner.redact import Redactor, forms
from sexton_runner.transcript import MAX_QUEUED_BYTES, Transcript
from tests.fakes.control_plane import Fault, Plane, open_plane
from tests.fakes.model_servers import Call, Say, open_model
from tests.worlds.runner import running, settings_for
from tests.worlds.runner_agents import give, reported, runner_with

SECRET = "canary-2f81c0de77"
CODED = base64.b64encode(SECRET.encode()).decode()
REST = CODED.removeprefix(max((f for f in forms(SECRET) if CODED.startswith(f)), key=len))
"""The last characters of the coded secret hold bits of what would follow it, and are not taken out."""
VAULT = {"secrets_map": {"hub": {"token": SECRET}}}
PROGRAM = f"""Do it.
```sh
sexton-step step "call {SECRET}"
echo "out {SECRET}"
echo "err {CODED}" >&2
```
"""


def leaks(plane: Plane) -> list[str]:
    text = str(plane.transcript())
    return [form for form in forms(SECRET) if form in text]


async def test_a_program_s_steps_and_both_its_streams_are_recorded_without_secrets(tmp_path: Path) -> None:
    async with open_plane() as plane, running(settings_for(plane, tmp_path)):
        lease = plane.give(PROGRAM, policy=VAULT)
        await plane.until(plane.reports)

    told = plane.transcript()
    output = {one["stream"]: one["text"] for one in told if one["kind"] == "output"}
    assert output == {"stdout": "out [redacted]\n", "stderr": f"err [redacted]{REST}\n"}

    steps = [one for one in told if one["kind"] == "step"]
    assert [(one["what"], one["name"]) for one in steps] == [
        ("begin", "call [redacted]"),
        ("end", "call [redacted]"),
    ]
    assert told[-1] == {"kind": "end", "outcome": "processed", "failure_reason": None}
    assert leaks(plane) == []
    assert {body.fencing_token for _, body in plane.of("transcript")} == {lease["fencing_token"]}

    names = [name for name, _ in plane.calls if name in {"transcript", "report"}]
    assert names[-1] == "report", "nothing is sent when the lease is over"


async def test_what_a_model_read_said_and_did_is_recorded_without_secrets(tmp_path: Path) -> None:
    say = f"Now {SECRET}, {CODED}."
    async with open_model("anthropic") as model:
        model.script = [
            Say(text=say, calls=[Call("shell", {"command": f"echo {SECRET}; echo {CODED}"})]),
            Say("Done."),
        ]
        async with runner_with(model, tmp_path) as plane:
            give(plane, model, policy={"tools": ["shell"], **VAULT})
            await reported(plane)

    told = plane.transcript()
    kinds = [one["kind"] for one in told]

    assert kinds == ["prompt", "prompt", "model", "tool_call", "tool_result", "model", "end"]
    assert "herons" in told[0]["text"]
    assert told[2]["text"].startswith("Now [redacted], [redacted]")
    assert [call["name"] for call in told[2]["tool_calls"]] == ["shell"]
    assert told[3]["arguments"] == {"command": f"echo [redacted]; echo [redacted]{REST}"}
    assert told[4]["content"].count("[redacted]") == 2
    assert told[5]["text"] == "Done."
    assert leaks(plane) == []


async def test_a_question_and_its_answer_are_recorded_before_the_person_is_asked(tmp_path: Path) -> None:
    ask = "Ask.\n```sh\necho before\nsexton-step approve --action deploy --summary 'Now?'\n```\n"
    async with open_plane() as plane, running(settings_for(plane, tmp_path)):
        plane.give(ask)
        await plane.until(lambda: plane.gates)
        asked = plane.transcript("gate")
        assert [one["status"] for one in asked] == ["asked"]
        assert plane.transcript("output") == [{"kind": "output", "stream": "stdout", "text": "before\n"}]

        plane.resolve(next(iter(plane.gates)), "approved", "Go.", "user:ann")
        await plane.until(plane.reports)

    answer = plane.transcript("gate")[-1]

    assert (answer["status"], answer["by"], answer["detail"]) == ("approved", "user:ann", "Go.")


async def test_an_earlier_control_plane_and_a_refusal_leave_the_run_alone(tmp_path: Path) -> None:
    async with open_plane() as plane, running(settings_for(plane, tmp_path)):
        for number, fault in enumerate((Fault(404, "UZ-REQ-003"), Fault(409, "UZ-RUN-005")), 1):
            plane.faults["transcript"] = [fault]
            plane.give("Go.\n```sh\necho hello\n```\n")
            await plane.until(lambda number=number: len(plane.reports()) == number)  # type: ignore[misc]

    assert [report.outcome for report in plane.reports()] == ["processed", "processed"]


def test_a_full_queue_leaves_numbers_out() -> None:
    transcript = Transcript(Redactor({}), now=lambda: 1.0)
    big: dict[str, Any] = {"arguments": {"x": "y" * 190_000}}
    count = MAX_QUEUED_BYTES // 190_000 + 5
    for _ in range(count):
        transcript.put("tool_call", big)
    sent = []
    while batch := transcript.take():
        sent += batch
    transcript.put("note", {"text": "after"})

    assert len(sent) < count
    assert [one["number"] for one in transcript.take()] == [count + 1]


def test_neighbouring_output_of_one_stream_is_one_entry() -> None:
    transcript = Transcript(Redactor({}), now=lambda: 1.0)
    for stream, text in (("stdout", "a"), ("stdout", "b"), ("stderr", "c"), ("stdout", "d" * 5_000)):
        transcript.put("output", {"stream": stream, "text": text})

    shown = [(one["number"], one["data"]["stream"], len(one["data"]["text"])) for one in transcript.take()]

    assert shown == [(1, "stdout", 2), (2, "stderr", 1), (3, "stdout", 3_400), (4, "stdout", 1_600)]
