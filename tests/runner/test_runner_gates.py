"""A command asks for approval from inside its sandbox."""

import dataclasses
import uuid
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.control_plane import Fault, Plane, open_plane
from tests.worlds.runner import PACE, running, settings_for

ASKS = (
    "Ask.\n```sh\n"
    'printf \'{"plan": "p"}\' > evidence.json\n'
    "said=$(sexton-step approve --tool deploy --action deploy.rollback --kind deployment"
    " --summary 'Roll back, now?' --evidence @evidence.json --blast-radius 'one service')\n"
    'status=$?\necho "{\\"status\\": $status, \\"said\\": \\"$said\\"}"\nexit $status\n```\n'
)
QUICK_TO_PARK = dataclasses.replace(PACE, park_after_s=0.05, gate_wait_s=0.02)


def has_gates(plane: Plane, count: int) -> bool:
    return len(plane.gates) == count


def the_gate(plane: Plane) -> str:
    (gate_id,) = plane.gates
    return gate_id


@pytest.mark.parametrize(
    ("status", "exit_status", "outcome", "reason"),
    [
        ("approved", 0, "processed", None),
        ("denied", 1, "agent_error", "approval_denied"),
        ("timed_out", 3, "agent_error", "approval_expired"),
        ("auto_killed", 3, "agent_error", "policy_deny"),
    ],
)
async def test_the_command_waits_and_learns_the_decision(
    tmp_path: Path, status: str, exit_status: int, outcome: str, reason: str | None
) -> None:
    async with open_plane() as plane, running(settings_for(plane, tmp_path)):
        plane.give(ASKS)
        await plane.until(lambda: plane.gates)
        plane.resolve(the_gate(plane), status, "so be it")
        await plane.until(plane.reports)
    (report,) = plane.reports()

    assert report.evidence == {"status": exit_status, "said": "so be it"}
    assert (report.outcome, report.failure_reason) == (outcome, reason)


async def test_the_gate_carries_what_the_command_said(tmp_path: Path) -> None:
    async with open_plane() as plane, running(settings_for(plane, tmp_path)):
        plane.give(ASKS)
        await plane.until(lambda: plane.gates)
    (ask,) = plane.of("open_gate")

    assert (ask.tool_name, ask.action_name, ask.gate_kind) == ("deploy", "deploy.rollback", "deployment")
    assert (ask.proposed_action, ask.evidence, ask.blast_radius) == (
        "Roll back, now?",
        {"plan": "p"},
        "one service",
    )


async def test_evidence_of_many_lines_arrives_whole(tmp_path: Path) -> None:
    source = (
        "Ask.\n```python\nimport json, subprocess\n"
        "many = {str(n): 'é' * 9 for n in range(400)}\n"
        "json.dump(many, open('e.json', 'w'), ensure_ascii=False, indent=1)\n"
        "subprocess.run(['sexton-step', 'approve', '--action', 'a', '--evidence', '@e.json'])\n```\n"
    )
    async with open_plane() as plane, running(settings_for(plane, tmp_path)):
        plane.give(source)
        await plane.until(lambda: plane.gates)

    assert plane.of("open_gate")[0].evidence == {str(n): "é" * 9 for n in range(400)}


async def test_secrets_do_not_reach_the_gate(tmp_path: Path) -> None:
    ask = "sexton-step approve --action a --summary 'use ghs_secret' --evidence '{\"k\": \"ghs_secret\"}'"
    source = f"Ask.\n```sh\n{ask}\n```\n"
    async with open_plane() as plane, running(settings_for(plane, tmp_path)):
        plane.give(source, policy={"secrets_map": {"github": {"token": "ghs_secret"}}})
        await plane.until(lambda: plane.gates)
    (asked,) = plane.of("open_gate")

    assert (asked.proposed_action, asked.evidence) == ("use [redacted]", {"k": "[redacted]"})


async def test_the_lease_is_renewed_while_a_gate_is_pending_and_the_wait_is_not_run_time(
    tmp_path: Path,
) -> None:
    pace = dataclasses.replace(PACE, renew_s=0.02)
    async with open_plane() as plane, running(settings_for(plane, tmp_path), pace):
        plane.give(ASKS)
        await plane.until(lambda: plane.gates)
        before = len(plane.of("renew"))
        await plane.until(lambda: len(plane.of("renew")) > before + 10)
        used = [body.run_ms for _, body in plane.of("renew")][before + 1 :]

        assert len(set(used)) == 1


async def test_time_at_a_gate_does_not_count_against_the_wall_clock(tmp_path: Path) -> None:
    pace = dataclasses.replace(PACE, renew_s=0.05)
    async with open_plane() as plane, running(settings_for(plane, tmp_path, run_wall_s=2.0), pace):
        plane.give(ASKS)
        await plane.until(lambda: plane.gates)
        await plane.until(lambda: len(plane.of("renew")) > 50)  # More than 2 s of real waiting.
        plane.resolve(the_gate(plane), "approved")
        await plane.until(plane.reports)

    assert plane.reports()[0].failure_reason is None


async def test_a_run_that_waits_long_is_parked_and_its_slot_is_free(tmp_path: Path) -> None:
    async with open_plane() as plane, running(settings_for(plane, tmp_path, slots=1), QUICK_TO_PARK):
        parked = plane.give(ASKS)
        await plane.until(lambda: plane.of("park"))
        plane.give("```sh\necho next\n```\n")
        await plane.until(plane.reports)
    ((lease_id, park),) = plane.of("park")

    assert lease_id == parked["lease_id"]
    assert str(park.gate_id) == the_gate(plane)
    assert [report.response_text for report in plane.reports()] == ["next\n"]
    assert plane.of("release") == []


async def parked_checkpoint(plane: Plane) -> tuple[dict[str, Any], dict[str, Any]]:
    """Have a run parked; give its lease and its checkpoint."""
    lease = plane.give(ASKS)
    await plane.until(lambda: plane.of("park"))
    return lease, plane.of("park")[0][1].checkpoint


@pytest.mark.parametrize(("status", "exit_status"), [("approved", 0), ("denied", 1)])
async def test_a_resumed_run_has_its_answer_at_once(tmp_path: Path, status: str, exit_status: int) -> None:
    async with open_plane() as plane, running(settings_for(plane, tmp_path), QUICK_TO_PARK):
        lease, checkpoint = await parked_checkpoint(plane)
        plane.resolve(the_gate(plane), status)
        plane.give(ASKS, event=lease["event"], checkpoint=checkpoint)
        await plane.until(plane.reports)

    assert plane.reports()[0].evidence == {"status": exit_status, "said": ""}
    assert len(plane.of("open_gate")) == 1, "nobody was asked twice"


async def test_a_decision_within_the_checkpoint_needs_no_call_at_all(tmp_path: Path) -> None:
    async with open_plane() as plane, running(settings_for(plane, tmp_path), QUICK_TO_PARK):
        lease, checkpoint = await parked_checkpoint(plane)
        (action_id,) = checkpoint["gates"]
        decided = {
            "version": 1,
            "gates": {action_id: {"gate_id": str(uuid.uuid4()), "status": "approved", "detail": "ok"}},
        }
        watched = len(plane.of("watch_gate"))
        plane.give(ASKS, event=lease["event"], checkpoint=decided)
        await plane.until(plane.reports)

    assert plane.reports()[0].evidence == {"status": 0, "said": "ok"}
    assert len(plane.of("watch_gate")) == watched


async def test_a_gate_that_is_no_longer_known_is_asked_for_again(tmp_path: Path) -> None:
    async with open_plane() as plane, running(settings_for(plane, tmp_path), PACE):
        lease = plane.give(ASKS)
        await plane.until(lambda: plane.gates)
        action_id = plane.of("open_gate")[0].action_id
        lost = {"version": 1, "gates": {action_id: {"gate_id": str(uuid.uuid4()), "status": "pending"}}}
        plane.give(ASKS, event=lease["event"], checkpoint=lost)
        await plane.until(lambda: len(plane.of("open_gate")) == 2)
    assert {ask.action_id for ask in plane.of("open_gate")} == {action_id}


async def test_a_gate_resolved_at_the_moment_of_parking_lets_the_run_go_on(tmp_path: Path) -> None:
    async with open_plane() as plane, running(settings_for(plane, tmp_path), QUICK_TO_PARK):
        plane.faults["park"] = [Fault(409, "UZ-REQ-007") for _ in range(3)]
        plane.give(ASKS)
        await plane.until(lambda: not plane.faults["park"] or (plane.gates and plane.of("watch_gate")))
        plane.resolve(the_gate(plane), "approved")
        await plane.until(plane.reports)
    assert plane.reports()[0].outcome == "processed"


@pytest.mark.parametrize("operation", ["open_gate", "watch_gate"])
async def test_a_fault_of_the_control_plane_is_no_decision(tmp_path: Path, operation: str) -> None:
    async with open_plane() as plane, running(settings_for(plane, tmp_path)):
        plane.faults[operation] = [Fault(503, "UZ-APPROVAL-004"), Fault(500, "UZ-INTERNAL-003")]
        plane.give(ASKS)
        await plane.until(lambda: plane.gates and not plane.faults[operation])
        plane.resolve(the_gate(plane), "approved")
        await plane.until(plane.reports)
    assert plane.reports()[0].outcome == "processed"


async def test_a_refused_ask_ends_the_run(tmp_path: Path) -> None:
    async with open_plane() as plane, running(settings_for(plane, tmp_path, slots=1)):
        plane.faults["open_gate"] = [Fault(409, "UZ-RUN-005")]
        plane.give(ASKS)
        plane.give("```sh\necho next\n```\n")
        await plane.until(plane.reports)
    assert [report.response_text for report in plane.reports()] == ["next\n"]


async def test_asks_of_one_command_are_answered_one_after_the_other(tmp_path: Path) -> None:
    source = (
        "Ask.\n```sh\n"
        "sexton-step approve --action one > one & first=$!\n"
        "sexton-step approve --action two > two & second=$!\n"
        "wait $first; a=$?; wait $second; b=$?\n"
        'echo "{\\"one\\": \\"$a $(cat one)\\", \\"two\\": \\"$b $(cat two)\\"}"\n```\n'
    )
    async with open_plane() as plane, running(settings_for(plane, tmp_path)):
        plane.give(source)
        for count in (1, 2):
            await plane.until(partial(has_gates, plane, count))
            gate_id, action = list(plane.gates)[-1], plane.of("open_gate")[-1].action_name
            plane.resolve(gate_id, "approved" if action == "one" else "denied", f"about {action}")
        await plane.until(plane.reports)

    assert plane.reports()[0].evidence == {"one": "0 about one", "two": "1 about two"}


async def test_an_asker_that_was_killed_does_not_block_the_next(tmp_path: Path) -> None:
    source = (
        "Ask.\n```sh\nsexton-step approve --action one & asker=$!\n"
        "while [ ! -s /tmp/.sexton-step.lock/owner ]; do sleep 0.01; done\n"
        "kill -9 $asker\nsexton-step approve --action two\n```\n"
    )
    async with open_plane() as plane, running(settings_for(plane, tmp_path)):
        plane.give(source)
        await plane.until(lambda: any(ask.action_name == "two" for ask in plane.of("open_gate")))
        for gate_id in list(plane.gates):
            plane.resolve(gate_id, "approved")
        await plane.until(plane.reports)

    assert plane.reports()[0].outcome == "processed"


@pytest.mark.parametrize(
    "words",
    [
        "",
        "approve",
        "approve --action",
        "approve --speed 1 --action a",
        "dance",
        "step",
        "step a b",
        "approve --action a --evidence @none",
    ],
)
async def test_words_that_the_helper_does_not_know_are_refused_by_it(tmp_path: Path, words: str) -> None:
    async with open_plane() as plane, running(settings_for(plane, tmp_path)):
        plane.give(f"```sh\nsexton-step {words}\necho '{{\"status\": '$?'}}'\n```\n")
        await plane.until(plane.reports)

    assert plane.reports()[0].evidence == {"status": 64}
    assert plane.gates == {}


async def test_the_stream_shows_what_led_to_a_question_before_the_question(tmp_path: Path) -> None:
    source = (
        "Ask.\n```sh\necho 'the plan is ready'\nsexton-step step plan\nsexton-step approve --action a\n```\n"
    )
    async with open_plane() as plane, running(settings_for(plane, tmp_path)):
        plane.give(source)
        await plane.until(lambda: plane.gates)
    asked = [name for name, _ in plane.calls].index("open_gate")
    before = [frame for name, body in plane.calls[:asked] if name == "activity" for frame in body[1].frames]

    assert {"tool_call_started", "chunk"} <= {frame["kind"] for frame in before}
