"""What each tool does for a model, in the real sandbox and over real HTTP."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import trio

from sexton_runner.tool_settings import ToolSettings
from sexton_runner.tools.base import Parked
from tests.worlds.runner import PACE, eventually, gone, processes_with
from tests.worlds.toolbox import ALL_TOOLS, Bench, open_bench

MARKER = "31536000.777"
SECRETS = {"github": {"token": "ghs_canary_0123456789"}}


async def test_programs_share_a_folder_that_lives_for_the_run(tmp_path: Path) -> None:
    async with open_bench(tmp_path) as bench:
        await bench.call("shell", command="echo first > notes; pwd")
        told = await bench.call("python", code="print(open('notes').read())")
        assert "first" in told

        listed = await bench.call("shell", command="ls; cat $SEXTON_RUN/event.json")

    assert "notes" in listed
    assert '"event_type":"workflow_run.completed"' in listed


async def test_a_program_that_fails_tells_its_status_and_its_errors(tmp_path: Path) -> None:
    async with open_bench(tmp_path) as bench:
        result = await bench.box.call("shell", {"command": "echo out; echo bad >&2; exit 3"}, "c1")

    assert not result.ok
    assert result.content == "[exit status 3]\nout\n[standard error]\nbad"
    assert result.facts["exit_status"] == 3


async def test_a_program_that_takes_too_long_is_stopped_with_all_it_started(tmp_path: Path) -> None:
    async with open_bench(tmp_path) as bench:
        command = f"echo begun; setsid sleep {MARKER} & sleep {MARKER}"
        result = await bench.box.call("shell", {"command": command, "timeout_s": 1}, "c1")
        await gone(MARKER)

        assert "took too long" in result.content
        assert "begun" in result.content
        assert "still" in await bench.call("shell", command="echo still here")


SERVE = f"""
import http.server, os  # {MARKER}
open("page", "w").write("hello")
if os.fork() == 0:
    http.server.HTTPServer(("127.0.0.1", 8123), http.server.SimpleHTTPRequestHandler).serve_forever()
print("started")
"""
ASK = """
import time, urllib.request
for _ in range(200):
    try: print(urllib.request.urlopen("http://127.0.0.1:8123/page").read().decode()); break
    except OSError: time.sleep(0.05)
"""


async def test_what_a_call_leaves_running_serves_later_calls_until_the_run_ends(tmp_path: Path) -> None:
    async with open_bench(tmp_path) as bench:
        began = await bench.call("python", code=SERVE)
        assert began.startswith("[exit status 0]\nstarted\n[left running: ")
        assert "/tmp/processes/1.log]" in began

        assert "hello" in await bench.call("python", code=ASK)
        assert "GET /page" in await bench.call("shell", command="cat /tmp/processes/1.log")

        # One that is stopped takes what it started with it, and not what is an earlier one's.
        late = f"setsid sleep {MARKER}1 & (setsid sleep {MARKER}2 &); sleep {MARKER}3"
        result = await bench.box.call("shell", {"command": late, "timeout_s": 1}, "c1")
        assert "took too long" in result.content

        await gone(f"sleep\0{MARKER}")
        assert "hello" in await bench.call("python", code=ASK)

        # One that writes for ever neither stops the others nor fills the disk.
        # Said before it begins: what is printed after it may be too late to be shown.
        flood = await bench.call("shell", command="echo flooding; yes 'a line that never ends' &")
        assert "flooding" in flood

        sizes = "sleep 1; cat /tmp/processes/* | wc -c; kill %1 2>/dev/null; pkill yes; echo"
        size = int((await bench.call("shell", command=sizes)).split()[3])
        assert 65536 < size < 5 << 20

    await gone(MARKER)


async def test_what_goes_on_counts_in_the_bounds_of_its_run(tmp_path: Path) -> None:
    async with open_bench(tmp_path) as bench:
        many = "for n in $(seq 30); do sleep 600 & done; echo begun"
        assert "begun" in await bench.call("shell", command=many)

        result = await bench.box.call("shell", {"command": many}, "c1")

        assert not result.ok
        assert "fork" in result.content


async def test_a_call_that_is_cancelled_leaves_no_process(tmp_path: Path) -> None:
    async with open_bench(tmp_path) as bench, trio.open_nursery() as nursery:
        nursery.start_soon(bench.box.call, "shell", {"command": f"sleep {MARKER}"}, "c1")
        await eventually(lambda: processes_with(MARKER))
        nursery.cancel_scope.cancel()
    await gone(MARKER)


async def test_a_sandbox_that_was_ended_is_replaced_by_an_empty_one(tmp_path: Path) -> None:
    async with open_bench(tmp_path) as bench:
        await bench.call("shell", command="echo x > kept")
        result = await bench.box.call("shell", {"command": "kill -9 $PPID; sleep 9"}, "c1")

        assert "was ended" in result.content
        assert "kept" not in await bench.call("shell", command="ls")


async def test_what_a_program_prints_without_end_is_stopped_and_short(tmp_path: Path) -> None:
    async with open_bench(tmp_path) as bench:
        result = await bench.box.call("shell", {"command": "yes 'word after word'"}, "c1")

    assert "printed too much" in result.content
    assert len(result.content) < 20_000


async def test_a_tool_that_is_not_attached_is_told_from_one_that_is_not_there(tmp_path: Path) -> None:
    async with open_bench(tmp_path, policy={"tools": ["shell", "no_such_tool"]}) as bench:
        assert (await bench.box.call("python", {"code": "1"}, "c1")).content.startswith("UZ-TOOL-004")
        assert (await bench.box.call("pyhton", {"code": "1"}, "c2")).content.startswith("UZ-TOOL-005")

        await bench.run.shown()
        text = "".join(frame["text"] for frame in bench.plane.frames("chunk"))
        ends = [frame["ok"] for frame in bench.plane.frames("tool_call_completed")]

    assert "UZ-TOOL-005: this runner has no tool no_such_tool" in text
    assert "UZ-TOOL-004: the tool python" in text
    assert ends == [False, False]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("shell", {}),
        ("shell", {"command": 7}),
        ("shell", {"command": ""}),
        ("shell", {"command": "x", "timeout_s": 0}),
        ("shell", {"command": "x", "also": 1}),
        ("http_request", {"url": "http://x", "method": "BREW"}),
        ("http_request", {"url": "http://x", "headers": {"a": 1}}),
        ("request_integration", {"service": "No Such", "reason": "r"}),
        ("memory_store", {"key": "k" * 256, "content": "c"}),
        ("propose_improvement", {"title": "t"}),
        ("schedule_follow_up", {"message": "m", "delay_s": 59}),
        (
            "shell",
            {
                "command": "x",
                "deep": [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]],
            },
        ),
    ],
)
async def test_arguments_that_do_not_fit_are_told_and_nothing_is_done(
    tmp_path: Path, name: str, arguments: dict[str, Any]
) -> None:
    async with open_bench(tmp_path) as bench:
        result = await bench.box.call(name, arguments, "c1")

    assert not result.ok
    assert result.content.startswith("the arguments do not fit")


async def test_every_call_is_in_the_stream_without_its_secrets(tmp_path: Path) -> None:
    async with open_bench(tmp_path, policy={"secrets_map": SECRETS}) as bench:
        await bench.call("shell", command="echo ghs_canary_0123456789")
        await bench.run.shown()
        frames = bench.plane.frames()

    assert [frame["kind"] for frame in frames] == ["tool_call_started", "tool_call_completed"]
    assert frames[0]["args_redacted"] == {"command": "echo [redacted]"}
    assert frames[1]["ok"] is True


async def test_memory_is_kept_and_found_again(tmp_path: Path) -> None:
    async with open_bench(tmp_path, policy={"secrets_map": SECRETS}) as bench:
        await bench.call("memory_store", key="deploys", content="main is ghs_canary_0123456789 frozen")
        told = await bench.call("memory_recall", query="frozen")
        await bench.call("memory_recall")

    assert bench.plane.memory["deploys"]["content"] == "main is [redacted] frozen"
    assert "## deploys" in told
    assert "main is [redacted] frozen" in told


async def test_a_service_is_asked_for_and_used_once_it_is_granted(tmp_path: Path) -> None:
    async with open_bench(tmp_path) as bench:
        ask = {"service": "chat", "reason": "to post"}
        first = await bench.box.call("request_integration", ask, "c1")
        second = await bench.box.call("request_integration", ask, "c2")
        bench.plane.grants["chat"] = {"token": "xoxb-canary-123"}
        third = await bench.call("request_integration", **ask)
        printed = await bench.call("shell", command="echo xoxb-canary-123")
        offered = bench.box.tools["http_request"].description

    assert first.content.startswith("UZ-GRANT-001")
    assert second.content.startswith("UZ-GRANT-002")
    assert len(bench.plane.of("ask_integration")) == 1
    assert third == "granted; use ${secrets.chat.token}"
    assert "xoxb" not in printed
    assert "${secrets.chat.token}" in offered or "chat" in third


async def test_a_service_that_was_denied_is_asked_for_anew(tmp_path: Path) -> None:
    async with open_bench(tmp_path) as bench:
        bench.plane.grants["chat"] = "UZ-GRANT-003"
        result = await bench.box.call("request_integration", {"service": "chat", "reason": "r"}, "c1")

    assert result.content.startswith("UZ-GRANT-003")
    assert len(bench.plane.of("ask_integration")) == 1


async def test_proposals_are_collected_for_the_report_and_bounded(tmp_path: Path) -> None:
    async with open_bench(tmp_path) as bench:
        last = empty = await bench.box.call("propose_improvement", {"title": "t", "rationale": "r"}, "c0")
        for number in range(9):
            arguments = {"title": f"t{number}", "rationale": "r", "source_markdown": "---\n"}
            last = await bench.box.call("propose_improvement", arguments, f"c{number}")

        assert [one["title"] for one in bench.box.proposals] == [f"t{number}" for number in range(8)]

    assert not empty.ok
    assert not last.ok


RULE = {"rules": [{"tool": "shell", "action": "*", "behavior": "approve", "condition": "command != 'ls'"}]}


async def resolved(bench: Bench, status: str, detail: str = "") -> None:
    await bench.plane.until(lambda: bench.plane.gates)
    for gate_id in bench.plane.gates:
        bench.plane.resolve(gate_id, status, detail)


async def answer(bench: Bench, status: str, name: str, arguments: dict[str, Any]) -> Any:
    """Call a tool and resolve the gate that it waits at."""
    results: list[Any] = []

    async def call() -> None:
        results.append(await bench.box.call(name, arguments, "c1"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(call)
        await resolved(bench, status, "as you like")
    return results[0]


@pytest.mark.parametrize(
    ("status", "ok"), [("approved", True), ("denied", False), ("timed_out", False), ("auto_killed", False)]
)
async def test_a_call_that_a_rule_matches_waits_for_a_person(tmp_path: Path, status: str, ok: bool) -> None:
    async with open_bench(tmp_path, policy={"gates": RULE, "secrets_map": SECRETS}) as bench:
        command = "echo done ghs_canary_0123456789 > f; cat f"
        result = await answer(bench, status, "shell", {"command": command})
        done = (await bench.box.call("shell", {"command": "ls"}, "c2")).content

        assert bench.box.refusal == (None if ok else status)
    (ask,) = bench.plane.of("open_gate")

    assert (ask.tool_name, ask.action_name, ask.gate_kind) == ("shell", "run", "tool_call")
    assert ask.evidence == {"command": "echo done [redacted] > f; cat f"}
    assert result.ok is ok
    assert "as you like" in result.content
    assert ("f" in done.split("\n")) is ok


FORBIDDEN = "a rule of this agent forbids it (auto_kill); nobody was asked, and the agent is paused"


@pytest.mark.parametrize(
    ("status", "by", "detail", "told"),
    [
        ("auto_killed", "system:auto_kill", "A rule forbids it.", FORBIDDEN),
        ("denied", "user:1", "Not on a Friday.", "a person was asked and said no: Not on a Friday."),
        ("denied", "system:run_ended", "", "ended before anybody answered"),
        ("timed_out", "system:timeout", "", "a person was asked and did not answer in time"),
    ],
)
async def test_the_model_is_told_who_refused_its_call(
    tmp_path: Path, status: str, by: str, detail: str, told: str
) -> None:
    async with open_bench(tmp_path, policy={"gates": RULE}) as bench:
        results: list[Any] = []

        async def call() -> None:
            results.append(await bench.box.call("shell", {"command": "true"}, "c1"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await bench.plane.until(lambda: bench.plane.gates)
            bench.plane.resolve(next(iter(bench.plane.gates)), status, detail, by=by)
    (result,) = results

    assert not result.ok
    assert result.content.startswith("not done: ")
    assert told in result.content


async def test_a_call_that_a_rule_refuses_is_not_done_and_nobody_is_asked(tmp_path: Path) -> None:
    refused = {"tool": "shell", "action": "*", "behavior": "deny", "condition": r"command matches '\brm\b'"}
    asked = {"tool": "shell", "action": "*", "behavior": "approve"}
    async with open_bench(tmp_path, policy={"gates": {"rules": [refused, asked]}}) as bench:
        result = await bench.box.call("shell", {"command": "touch rm"}, "c1")
        assert bench.box.refusal is None

        allowed = await answer(bench, "approved", "shell", {"command": "ls"})
    assert not result.ok
    assert "a rule of this agent refuses it (deny); nobody was asked" in result.content
    assert result.facts == {"gate": "denied", "by": "system:deny"}
    assert allowed.ok
    assert "rm" not in allowed.content.split()

    (ask,) = bench.plane.of("open_gate")
    assert ask.evidence == {"command": "ls"}


async def test_a_call_that_no_rule_matches_asks_nobody(tmp_path: Path) -> None:
    async with open_bench(tmp_path, policy={"gates": RULE}) as bench:
        await bench.call("shell", command="ls")
        await bench.call("python", code="print(1)")
    assert bench.plane.gates == {}


async def test_a_tool_that_a_rule_may_match_is_called_alone(tmp_path: Path) -> None:
    rules = {"rules": [{"tool": "memory_*", "action": "*", "behavior": "approve"}]}
    async with open_bench(tmp_path, policy={"gates": rules}) as bench:
        safe = {name for name, tool in bench.box.tools.items() if tool.parallel_safe}

    assert safe == {"http_request", "read_file"}


@pytest.mark.parametrize(("status", "ok"), [("approved", True), ("denied", False)])
async def test_the_model_can_ask_for_approval_itself(tmp_path: Path, status: str, ok: bool) -> None:
    arguments = {"action": "post", "summary": "Post it?", "evidence": {"n": 1}, "blast_radius": "one channel"}
    async with open_bench(tmp_path) as bench:
        result = await answer(bench, status, "request_approval", arguments)
    (ask,) = bench.plane.of("open_gate")

    assert (ask.tool_name, ask.action_name, ask.proposed_action) == ("request_approval", "post", "Post it?")
    assert (ask.evidence, ask.blast_radius) == ({"n": 1}, "one channel")
    assert result.ok is ok


async def test_a_call_that_waits_long_asks_to_be_parked_and_is_answered_when_it_comes_again(
    tmp_path: Path,
) -> None:
    quick = dataclasses.replace(PACE, park_after_s=0.05, gate_wait_s=0.02)
    command = {"command": "echo at last"}
    event = {"event_id": "018f0000-0000-7000-8000-00000000000a"}
    async with open_bench(tmp_path / "a", policy={"gates": RULE}, timing=quick, event=event) as bench:
        with pytest.raises(Parked) as parked:
            await bench.box.call("shell", command, "call_7")
        checkpoint = bench.box.checkpoint()
        gates = bench.plane.gates
    assert [parked.value.gate_id] == list(gates)

    async with open_bench(
        tmp_path / "b", policy={"gates": RULE}, checkpoint=checkpoint, event=event
    ) as bench:
        bench.plane.gates |= gates
        bench.plane.resolve(parked.value.gate_id, "approved")
        result = await bench.box.call("shell", command, "call_7")

        assert bench.plane.of("open_gate") == []
    assert "at last" in result.content


CHECKS = {"checks": [{"name": "built", "command": "test -f built", "timeout_s": 5, "repair_attempts": 2}]}


async def test_a_check_that_fails_is_given_back_so_many_times(tmp_path: Path) -> None:
    async with open_bench(tmp_path, policy={"gates": CHECKS}) as bench:
        reasons = [unmet.failure_reason for _ in range(3) if (unmet := await bench.box.check()) is not None]
    assert reasons == [None, None, "gate_repairs_exhausted"]


async def test_a_check_passes_when_the_agent_has_repaired_its_work(tmp_path: Path) -> None:
    async with open_bench(tmp_path, policy={"gates": CHECKS}) as bench:
        unmet = await bench.box.check()
        assert unmet is not None
        assert "test -f built" in unmet.text

        await bench.call("shell", command="touch built")
        assert await bench.box.check() is None

        await bench.run.shown()
        ends = [(f["name"], f["ok"]) for f in bench.plane.frames("tool_call_completed")]
    assert ends == [("check built", False), ("shell", True), ("check built", True)]


@pytest.mark.parametrize(
    ("command", "reason"), [("exit 4", "gate_command_failed"), ("sleep 30", "gate_command_timeout")]
)
async def test_a_check_without_repairs_ends_the_run(tmp_path: Path, command: str, reason: str) -> None:
    checks = {"checks": [{"name": "c", "command": command, "timeout_s": 1}]}
    async with open_bench(tmp_path, policy={"gates": checks}) as bench:
        unmet = await bench.box.check()

    assert unmet is not None
    assert unmet.failure_reason == reason


async def test_a_fault_of_the_control_plane_is_an_answer_not_the_end(tmp_path: Path) -> None:
    async with open_bench(tmp_path, policy={"tools": ["memory_store"]}) as bench:
        bench.plane.deaf = True
        result = await bench.box.call("memory_store", {"key": "k", "content": "c"}, "c1")

    assert not result.ok
    assert "cannot be reached" in result.content


async def test_all_tools_describe_themselves(tmp_path: Path) -> None:
    async with open_bench(tmp_path, settings=ToolSettings()) as bench:
        for name in ALL_TOOLS:
            tool = bench.box.tools[name]
            assert tool.name == name
            assert tool.input_schema["type"] == "object"
            assert 40 < len(tool.description) < 1000
