"""A whole runner, against a control plane on loopback and in the real sandbox."""

import dataclasses
from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest
import trio
from structlog.testing import capture_logs

from sexton_runner.wire import Polled
from tests.fakes.control_plane import Fault, Plane, Report, make_lease, open_plane
from tests.worlds.runner import PACE, WAITING, eventually, running, settings_for

HELLO = "Greet.\n```sh\nread -r line\necho hello\necho '{\"ok\": true}'\n```\n"


def sh(source: str) -> str:
    return f"Do.\n```sh\n{source}\n```\n"


def python(source: str) -> str:
    return f"Do.\n```python\n{source}\n```\n"


async def outcome_of(tmp_path: Path, instructions: str, **changes: Any) -> tuple[Plane, Report]:
    """Run one lease to its report."""
    async with open_plane() as plane, running(settings_for(plane, tmp_path), PACE):
        plane.give(instructions, **changes)
        await plane.until(plane.reports)
    (report,) = plane.reports()
    return plane, report


async def test_a_command_runs_and_is_reported(tmp_path: Path) -> None:
    plane, report = await outcome_of(tmp_path, HELLO)

    assert (report.outcome, report.failure_reason) == ("processed", None)
    assert report.response_text == 'hello\n{"ok": true}\n'
    assert report.evidence == {"ok": True}
    assert "".join(frame["text"] for frame in plane.frames("chunk")) == report.response_text
    assert report.telemetry.time_to_first_token_ms <= report.telemetry.wall_ms


async def test_a_python_command_reads_the_event_from_its_standard_input(tmp_path: Path) -> None:
    read = "import json, sys\nevent = json.load(sys.stdin)\n"
    source = read + "print(json.dumps({'n': event['request_json']['raw']['n'], 'e': event['event_id']}))"
    _, report = await outcome_of(tmp_path, python(source))

    assert report.evidence == {"n": 7, "e": str(report.event_id)}


async def test_a_body_that_comes_as_text_is_given_to_the_command_as_an_object(tmp_path: Path) -> None:
    source = "import json, sys\nprint(json.dumps(json.load(sys.stdin)['request_json']))"
    _, report = await outcome_of(tmp_path, python(source), event={"request_json": '{"a": [1]}'})

    assert report.evidence == {"a": [1]}


async def test_a_command_that_fails_is_an_error_of_the_agent(tmp_path: Path) -> None:
    _, report = await outcome_of(tmp_path, sh("echo trying; echo oh no >&2; exit 3"))

    assert (report.outcome, report.failure_reason) == ("agent_error", "agent_run")
    assert report.response_text == "trying\n[the command ended with status 3: agent_run]\noh no"


async def test_instructions_without_a_program_are_an_invalid_configuration(tmp_path: Path) -> None:
    _, report = await outcome_of(tmp_path, "Just talk.")
    assert (report.outcome, report.failure_reason) == ("agent_error", "invalid_config")


@pytest.mark.parametrize(("runtime", "reason"), [("agent", "agent_init"), ("oracle", "invalid_config")])
async def test_a_runtime_that_is_not_here_fails_with_a_clear_message(
    tmp_path: Path, runtime: str, reason: str
) -> None:
    _, report = await outcome_of(tmp_path, HELLO, runtime=runtime)

    assert (report.outcome, report.failure_reason) == ("agent_error", reason)
    assert runtime in report.response_text


async def test_steps_are_shown_as_they_begin_and_end(tmp_path: Path) -> None:
    plane, _ = await outcome_of(
        tmp_path, sh("sexton-step step one\nsexton-step progress\nsexton-step step 'two words'\nexit 1")
    )
    shown = [(frame["kind"], frame["name"], frame.get("ok")) for frame in plane.frames()]

    assert shown == [
        ("tool_call_started", "one", None),
        ("tool_call_progress", "one", None),
        ("tool_call_completed", "one", True),
        ("tool_call_started", "two words", None),
        ("tool_call_completed", "two words", False),
    ]


async def test_a_step_that_the_command_calls_failed_is_shown_as_failed(tmp_path: Path) -> None:
    plane, report = await outcome_of(tmp_path, sh("sexton-step step one\nsexton-step fail"))

    assert [frame["ok"] for frame in plane.frames("tool_call_completed")] == [False]
    assert report.outcome == "processed"


async def test_secrets_are_neither_given_to_the_command_nor_let_out_of_it(tmp_path: Path) -> None:
    secrets = {"github": {"token": "ghs_verysecret"}}
    spy = "env; cat /run/sexton/*.json /run/sexton/program; sexton-step step ghs_verysecret\n"
    source = spy + "printf 'ghs_very'; printf 'secret\\n'"
    with capture_logs() as logs:
        plane, report = await outcome_of(
            tmp_path, sh(source), policy={"secrets_map": secrets, "api_key": "sk-model-secret"}
        )
    told = f"{report} {plane.frames()} {logs}"

    assert "ghs_verysecret" not in told.replace("printf 'ghs_very'; printf 'secret", "")
    assert "sk-model-secret" not in told
    assert "[redacted]\n" in report.response_text


async def test_a_runner_fills_its_slots_and_no_more(tmp_path: Path) -> None:
    async with open_plane() as plane, running(settings_for(plane, tmp_path, slots=3)):
        for _ in range(5):
            plane.give(WAITING)
        await plane.until(lambda: len(plane.gates) == 3)
        assert len(plane.queue) == 2

        plane.resolve(next(iter(plane.gates)), "approved")
        await plane.until(lambda: len(plane.gates) == 4)
        assert len(plane.queue) == 1
    assert all(poll.max <= 3 for poll in plane.of("poll"))


async def test_live_leases_are_told_in_every_heartbeat(tmp_path: Path) -> None:
    async with open_plane() as plane, running(settings_for(plane, tmp_path)):
        lease = plane.give(WAITING)
        await plane.until(
            lambda: (
                [str(i) for b in plane.of("heartbeat")[-1:] for i in b.active_lease_ids]
                == [lease["lease_id"]]
            )
        )


async def test_renewals_go_on_while_a_command_runs_and_share_a_call_when_there_are_many(
    tmp_path: Path,
) -> None:
    pace = dataclasses.replace(PACE, renew_s=0.05, renew_window_s=0.05)
    async with open_plane() as plane, running(settings_for(plane, tmp_path, slots=2), pace):
        first = plane.give(WAITING)["lease_id"]
        await plane.until(lambda: len(plane.of("renew")) >= 3)
        plane.give(WAITING)
        await plane.until(lambda: any(len(batch.leases) == 2 for batch in plane.of("renew_many")))
    used = [body.run_ms for lease_id, body in plane.of("renew") if lease_id == first]

    assert used == sorted(used)


async def test_renewals_go_on_while_a_command_spins_and_floods_and_no_frame_is_taken(tmp_path: Path) -> None:
    pace = dataclasses.replace(PACE, renew_s=0.02)
    hog = (
        "for n in 1 2 3 4 5 6 7 8; do (while :; do :; done) & done; head -c 6000000 /dev/zero | tr '\\0' x\n"
    )
    async with open_plane() as plane:
        plane.faults["activity"] = [Fault(503, "UZ-INTERNAL-001") for _ in range(100_000)]
        async with running(settings_for(plane, tmp_path), pace):
            plane.give(sh(hog + "sexton-step approve --action wait"))
            await plane.until(lambda: plane.gates)
            before = len(plane.of("renew"))
            await plane.until(lambda: len(plane.of("renew")) >= before + 10)

    assert plane.frames() == []


@pytest.mark.parametrize(
    ("code", "status", "reason"),
    [
        ("UZ-RUN-012", 402, "balance_exhausted"),
        ("UZ-RUN-010", 409, "ceiling"),
        ("UZ-ZMB-001", 402, "budget_exceeded"),
    ],
)
async def test_a_run_whose_renewal_is_refused_is_stopped_and_says_why(
    tmp_path: Path, code: str, status: int, reason: str
) -> None:
    pace = dataclasses.replace(PACE, renew_s=0.05)
    async with open_plane() as plane, running(settings_for(plane, tmp_path), pace):
        plane.give(WAITING)
        await plane.until(lambda: plane.gates)
        plane.faults["renew"] = [Fault(status, code)]
        await plane.until(plane.reports)
    (report,) = plane.reports()

    assert (report.outcome, report.failure_reason) == ("agent_error", reason)


async def test_a_run_that_lost_its_lease_is_stopped_and_says_nothing_more(tmp_path: Path) -> None:
    pace = dataclasses.replace(PACE, renew_s=0.05)
    async with open_plane() as plane, running(settings_for(plane, tmp_path, slots=1), pace):
        lost = plane.give(WAITING)
        await plane.until(lambda: plane.gates)
        plane.leases[lost["lease_id"]] = "lost"
        plane.give(HELLO)
        await plane.until(plane.reports)

    assert [str(report.lease_id) for report in plane.reports()] != [lost["lease_id"]]
    assert plane.of("release") == []


@pytest.mark.parametrize("by", ["renewal", "heartbeat"])
async def test_a_cancelled_run_is_killed_and_reported_as_cancelled(tmp_path: Path, by: str) -> None:
    pace = dataclasses.replace(PACE, renew_s=0.05 if by == "renewal" else 10.0)
    async with open_plane() as plane, running(settings_for(plane, tmp_path), pace):
        lease = plane.give(WAITING)
        await plane.until(lambda: plane.gates)
        if by == "renewal":
            plane.leases[lease["lease_id"]] = "cancelling"
        else:
            plane.heartbeat["cancelled_lease_ids"] = [lease["lease_id"]]
        await plane.until(plane.reports)
    (report,) = plane.reports()

    assert (report.outcome, report.failure_reason) == ("cancelled", "cancelled")
    assert [frame["ok"] for frame in plane.frames("tool_call_completed")] == [False]


async def test_a_report_whose_answer_was_lost_is_made_again_the_same(tmp_path: Path) -> None:
    async with open_plane() as plane:
        plane.faults["answer_of_report"] = [Fault(503, "UZ-INTERNAL-001")]
        async with running(settings_for(plane, tmp_path)):
            plane.give(HELLO)
            await plane.until(lambda: plane.of("duplicate"))
    assert plane.of("duplicate") == plane.reports()


async def test_a_stale_report_is_given_up_and_the_slot_is_free_again(tmp_path: Path) -> None:
    async with open_plane() as plane:
        plane.faults["report"] = [Fault(409, "UZ-RUN-005")]
        with capture_logs() as logs:
            async with running(settings_for(plane, tmp_path, slots=1)):
                stale, fresh = plane.give(HELLO), plane.give(HELLO)
                await plane.until(plane.reports)

    assert [str(report.lease_id) for report in plane.reports()] == [fresh["lease_id"]]
    assert [(log["lease_id"], log["code"]) for log in logs if log["event"] == "report_refused"] == [
        (stale["lease_id"], "UZ-RUN-005")
    ]


async def test_a_stale_frame_ends_the_run(tmp_path: Path) -> None:
    async with open_plane() as plane, running(settings_for(plane, tmp_path, slots=1)):
        plane.faults["activity"] = [Fault(409, "UZ-RUN-005")]
        plane.give(WAITING)
        plane.give(HELLO)
        await plane.until(plane.reports)
    assert [report.outcome for report in plane.reports()] == ["processed"]


async def test_an_outage_is_survived_and_logged_once(tmp_path: Path) -> None:
    with capture_logs() as logs:
        async with open_plane() as plane, running(settings_for(plane, tmp_path)):
            plane.give(WAITING)
            await plane.until(lambda: plane.gates)
            beats = len(plane.of("heartbeat"))
            plane.deaf = True
            gate_id = next(iter(plane.gates))
            plane.gates[gate_id]["status"] = "approved"
            await eventually(lambda: logs[-1]["event"] == "control_plane_away")
            plane.deaf = False
            plane.changed()
            await plane.until(plane.reports)
            await plane.until(lambda: len(plane.of("heartbeat")) > beats)
    assert [report.outcome for report in plane.reports()] == ["processed"]

    told = [log["event"] for log in logs if log["event"].startswith("control_plane")]
    assert told == ["control_plane_away", "control_plane_back"]


async def test_a_transient_refusal_of_the_poll_is_waited_out(tmp_path: Path) -> None:
    async with open_plane() as plane:
        plane.faults["poll"] = [Fault(503, "UZ-INTERNAL-001"), Fault(429, "UZ-API-001"), Fault(500, "")]
        async with running(settings_for(plane, tmp_path)):
            plane.give(HELLO)
            await plane.until(plane.reports)


async def test_a_lease_that_cannot_be_read_is_given_back_and_harms_no_other(tmp_path: Path) -> None:
    async with open_plane() as plane, running(settings_for(plane, tmp_path)):
        broken = plane.give(HELLO)
        broken["event"] = "not an event"
        plane.queue.append({"lease_id": "../../etc", "event": 1})
        plane.give(HELLO)
        await plane.until(lambda: plane.reports() and plane.of("release"))
    assert [lease_id for lease_id, _ in plane.of("release")] == [broken["lease_id"]]


async def test_a_resting_runner_takes_nothing_and_goes_on_when_told(tmp_path: Path) -> None:
    async with open_plane() as plane, running(settings_for(plane, tmp_path)):
        plane.give(WAITING)
        await plane.until(lambda: plane.gates)
        plane.heartbeat["status"] = "drain"
        beats, polls = len(plane.of("heartbeat")), len(plane.of("poll"))
        await plane.until(lambda: len(plane.of("heartbeat")) > beats + 2)
        plane.give(HELLO)
        plane.resolve(next(iter(plane.gates)), "approved")
        await plane.until(lambda: len(plane.reports()) == 1)
        assert len(plane.of("poll")) == polls

        plane.heartbeat["status"] = "ok"
        plane.changed()
        await plane.until(lambda: len(plane.reports()) == 2)


async def test_nothing_of_a_run_is_left_in_the_state_folder(tmp_path: Path) -> None:
    await outcome_of(tmp_path, HELLO)
    assert list((tmp_path / "state" / "runs").iterdir()) == []


async def test_logs_name_leases_but_tell_nothing_of_their_contents(tmp_path: Path) -> None:
    with capture_logs() as logs:
        await outcome_of(tmp_path, HELLO)

    assert {"lease_taken", "reported"} <= {log["event"] for log in logs}
    assert "hello" not in str(logs)


async def test_a_refused_poll_is_not_asked_in_a_tight_loop_and_is_survived(tmp_path: Path) -> None:
    async with open_plane() as plane:
        plane.faults["poll"] = [Fault(400, "UZ-REQ-001")]
        async with running(settings_for(plane, tmp_path)):
            plane.give(HELLO)
            await plane.until(plane.reports)


async def test_a_lease_that_comes_when_the_runner_is_leaving_is_given_back_unbegun(tmp_path: Path) -> None:
    async with open_plane() as plane, running(settings_for(plane, tmp_path)) as runner:
        late = make_lease(HELLO)
        plane.leases[late["lease_id"]] = "live"
        runner.drain("a signal")
        async with trio.open_nursery() as nursery:
            runner._take(Polled(leases=[msgspec.Raw(orjson.dumps(late))]), nursery, runner._clock())

    assert [(lease_id, body.reason) for lease_id, body in plane.of("release")] == [
        (late["lease_id"], "drain")
    ]
    assert plane.of("report") == []


async def test_a_lease_that_comes_after_its_term_is_not_begun(tmp_path: Path) -> None:
    async with open_plane() as plane, running(settings_for(plane, tmp_path)) as runner:
        late = make_lease(HELLO)
        polled = Polled(leases=[msgspec.Raw(orjson.dumps(late))], waited_ms=2_000)
        async with trio.open_nursery() as nursery:
            runner._take(polled, nursery, runner._clock() - 32)

    assert plane.of("report") == []
    assert plane.of("renew") == []


async def test_a_whole_number_of_any_size_reaches_the_command_to_its_last_digit(tmp_path: Path) -> None:
    number = 123456789012345678901234567890
    source = "import json, sys\nprint(json.dumps({'n': str(json.load(sys.stdin)['request_json']['n'])}))"
    _, report = await outcome_of(tmp_path, python(source), event={"request_json": f'{{"n": {number}}}'})

    assert report.evidence == {"n": str(number)}
