"""A command is not done until its checks end well."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fakes.control_plane import Report, open_plane
from tests.worlds.runner import gone, running, settings_for

MARKER = "31536000.888"
PROGRAM = "```sh\nread -r event; echo built > out; sexton-step step build; echo '{\"did\": 1}'\n```\n"


def check(command: str, **more: Any) -> dict[str, Any]:
    return {"name": "c", "command": command, **more}


async def checked(
    tmp_path: Path, *checks: dict[str, Any], program: str = PROGRAM
) -> tuple[Report, list[Any]]:
    async with open_plane() as plane, running(settings_for(plane, tmp_path)):
        secrets = {"a": {"b": "canary-secret-1"}}
        plane.give(program, policy={"gates": {"checks": list(checks)}, "secrets_map": secrets})
        await plane.until(plane.reports)
        return plane.reports()[0], plane.frames("tool_call_completed")


async def test_checks_see_what_the_command_left(tmp_path: Path) -> None:
    report, steps = await checked(tmp_path, check("grep -q built out"), check("test ! -e nothing"))

    assert (report.outcome, report.failure_reason) == ("processed", None)
    assert report.evidence == {"did": 1}
    assert [(step["name"], step["ok"]) for step in steps] == [
        ("build", True),
        ("check c", True),
        ("check c", True),
    ]


@pytest.mark.parametrize(
    ("command", "reason"),
    [("echo no canary-secret-1; exit 5", "gate_command_failed"), ("sleep 9", "gate_command_timeout")],
)
async def test_a_failing_check_fails_the_event_and_says_why(
    tmp_path: Path, command: str, reason: str
) -> None:
    report, _ = await checked(tmp_path, check(command, timeout_s=1, repair_attempts=3))

    assert (report.outcome, report.failure_reason) == ("agent_error", reason)
    assert "The check c did not end well" in report.response_text
    assert "canary-secret-1" not in report.response_text
    assert report.evidence == {"did": 1}


async def test_the_checks_of_a_command_that_failed_are_not_run(tmp_path: Path) -> None:
    report, steps = await checked(tmp_path, check("exit 1"), program="```sh\necho bad; exit 2\n```\n")

    assert report.failure_reason == "agent_run"
    assert steps == []


async def test_what_the_command_left_running_is_gone_before_its_checks(tmp_path: Path) -> None:
    program = f"```sh\nsetsid sleep {MARKER} & echo done\n```\n"
    report, _ = await checked(tmp_path, check("! ps ax | grep -v grep | grep -q 'sleep'"), program=program)
    assert report.outcome == "processed", report.response_text

    await gone(MARKER)


async def test_a_command_cannot_pass_for_its_checks_by_ending_the_sandbox(tmp_path: Path) -> None:
    report, _ = await checked(tmp_path, check("true"), program="```sh\nkill -9 $PPID; sleep 9\n```\n")
    assert report.outcome == "agent_error"


async def test_gates_that_cannot_be_read_are_an_invalid_configuration(tmp_path: Path) -> None:
    report, _ = await checked(tmp_path, {"name": 1})
    assert report.failure_reason == "invalid_config"
