"""The examples do what they say, in the real sandbox."""

import copy
import hashlib
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest

from sexton_cli.demo.git_server import backend, make_repository, open_git_server
from sexton_runner.egress_settings import EgressSettings
from tests.fakes.control_plane import Plane, Report, open_plane
from tests.worlds.runner import running, settings_for

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PAYLOAD: dict[str, Any] = orjson.loads(
    (EXAMPLES / "deploy-doctor/payloads/workflow_run.failed.json").read_bytes()
)


TOKEN = "ghp_canary-6a1f0c9a7b3d42"


def body_of(payload: dict[str, Any]) -> dict[str, Any]:
    """Give a payload as the webhook hands it on."""
    names = {"source": "github", "event": "workflow_run", "action": payload["action"]}
    return {**names, "repository": payload["repository"]["full_name"], "raw": payload}


def changed(**run: Any) -> dict[str, Any]:
    payload = copy.deepcopy(PAYLOAD)
    payload["workflow_run"] |= run
    return payload


async def diagnose(
    tmp_path: Path, payload: dict[str, Any], decision: str | None, event: dict[str, Any] | None = None
) -> tuple[Plane, Report]:
    """Run deploy-doctor on a payload; decide its gate when one is expected."""
    skill = (EXAMPLES / "deploy-doctor/SKILL.md").read_text()
    async with open_plane() as plane, running(settings_for(plane, tmp_path)):
        plane.give(skill, event={"request_json": body_of(payload)} | (event or {}))
        if decision is not None:
            await plane.until(lambda: plane.gates or plane.reports())
            for gate_id in plane.gates:
                plane.resolve(gate_id, decision, "go ahead")
        await plane.until(plane.reports)
    return plane, plane.reports()[0]


async def test_deploy_doctor_diagnoses_asks_and_writes_the_manifest(tmp_path: Path) -> None:
    plane, report = await diagnose(tmp_path, PAYLOAD, "approved")
    assert report.outcome == "processed", report.response_text
    assert report.evidence is not None
    assert report.evidence["verdict"] == "persistent deployment failure"
    assert report.evidence["decision"] == "approved"

    sha = PAYLOAD["workflow_run"]["head_sha"]
    assert report.evidence["blamed"] == f"{sha}^1..{sha}"
    assert all(len(report.evidence[name]) == 64 for name in ("plan_sha256", "manifest_sha256"))

    (ask,) = plane.of("open_gate")
    assert (ask.tool_name, ask.action_name) == ("deploy", "deploy.rollback")
    assert ask.evidence["plan_sha256"] == report.evidence["plan_sha256"]
    assert [frame["name"] for frame in plane.frames("tool_call_started")] == [
        "read the event",
        "classify the failure",
        "find the commits to blame",
        "lay out the timeline",
        "write the rollback plan",
        "verify the plan",
        "ask for approval",
        "write the rollback manifest",
    ]


async def test_deploy_doctor_s_manifest_says_what_its_checksum_says(tmp_path: Path) -> None:
    fixed = {"event_id": "018f0000-0000-7000-8000-000000000001"}
    _, report = await diagnose(tmp_path, PAYLOAD, "approved", fixed)
    assert report.evidence is not None

    sha = PAYLOAD["workflow_run"]["head_sha"]
    steps = [
        {"do": "hold", "what": "new runs of .github/workflows/deploy.yml on main"},
        {"do": "deploy", "commit": f"{sha}^1"},
        {"do": "revert", "commits": f"{sha}^1..{sha}"},
        {"do": "release", "what": "runs of .github/workflows/deploy.yml"},
    ]
    manifest = {
        "plan_sha256": report.evidence["plan_sha256"],
        "decision": "approved",
        "said": "go ahead",
        "steps": steps,
    } | fixed
    text = orjson.dumps(
        manifest, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    )
    assert hashlib.sha256(text).hexdigest() == report.evidence["manifest_sha256"]


async def test_deploy_doctor_makes_the_same_plan_of_the_same_event(tmp_path: Path) -> None:
    plans = [
        (
            await diagnose(
                tmp_path, PAYLOAD, "approved", {"event_id": f"018f0000-0000-7000-8000-00000000000{n}"}
            )
        )[1].evidence
        for n in (1, 2)
    ]

    assert plans[0] is not None
    assert plans[1] is not None
    assert plans[0]["plan_sha256"] == plans[1]["plan_sha256"]
    assert plans[0]["manifest_sha256"] != plans[1]["manifest_sha256"]


@pytest.mark.parametrize(
    ("decision", "reason"), [("denied", "approval_denied"), ("timed_out", "approval_expired")]
)
async def test_deploy_doctor_rolls_nothing_back_without_approval(
    tmp_path: Path, decision: str, reason: str
) -> None:
    _, report = await diagnose(tmp_path, PAYLOAD, decision)

    assert (report.outcome, report.failure_reason) == ("agent_error", reason)
    assert report.evidence is not None
    assert "manifest_sha256" not in report.evidence


async def test_deploy_doctor_has_nothing_to_do_for_a_run_that_went_well(tmp_path: Path) -> None:
    plane, report = await diagnose(tmp_path, changed(conclusion="success"), None)

    assert report.evidence == {"verdict": "nothing to do", "conclusion": "success"}
    assert plane.gates == {}


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({"conclusion": "timed_out"}, "time-out"),
        ({"conclusion": "startup_failure"}, "workflow definition"),
        ({"run_attempt": 1}, "deployment failure"),
        ({"run_attempt": 1, "run_started_at": "2026-03-03T09:21:00Z"}, "early deployment failure"),
        (
            {"run_attempt": 1, "name": "Unit tests", "path": ".github/workflows/test.yml"},
            "build or test failure",
        ),
    ],
)
async def test_deploy_doctor_tells_failures_apart(
    tmp_path: Path, change: dict[str, Any], verdict: str
) -> None:
    _, report = await diagnose(tmp_path, changed(**change), "approved")

    assert report.evidence is not None, report.response_text
    assert report.evidence["verdict"] == verdict


async def test_deploy_doctor_blames_a_pull_request_from_its_base_to_its_head(tmp_path: Path) -> None:
    pull = {"number": 7, "base": {"sha": "b" * 40, "ref": "main"}, "head": {"sha": "c" * 40, "ref": "topic"}}
    _, report = await diagnose(tmp_path, changed(pull_requests=[pull]), "approved")

    assert report.evidence is not None
    assert report.evidence["blamed"] == f"{'b' * 40}..{'c' * 40}"


async def test_deploy_doctor_fails_clearly_on_an_event_of_another_kind(tmp_path: Path) -> None:
    _, report = await diagnose(tmp_path, {"action": "opened", "repository": {"full_name": "a/b"}}, None)

    assert report.failure_reason == "agent_run"
    assert "KeyError: 'workflow_run'" in report.response_text


def asked_and_ended(plane: Plane, *, gates: int, reports: int) -> bool:
    return (len(plane.gates), len(plane.reports())) == (gates, reports)


async def test_deploy_doctor_reverts_on_the_branch_once_however_often_it_runs(tmp_path: Path) -> None:
    """Over the run's own proxy: the token is put in there, and the program never has it."""
    skill, program = (EXAMPLES / "deploy-doctor/SKILL.md").read_text(), backend()
    assert program is not None

    async with open_git_server(tmp_path / "server", TOKEN, program) as server:
        merged = make_repository(server, "octo-org/parcel-service")
        payload = changed(head_sha=merged)
        payload["repository"]["clone_url"] = f"{server.base_url}/octo-org/parcel-service.git"
        port = int(server.base_url.rpartition(":")[2])
        policy = {
            "network_policy": {"allow": [], "rules": [{"host": "localhost", "ports": [port]}]},
            "secrets_map": {"git-push": {"token": TOKEN}},
            "secret_hosts": {"git-push": ["localhost"]},
            "secret_uses": {"git-push": [{"in": "basic", "name": None}]},
            "env": {"GIT_TOKEN": "${secrets.git-push.token}"},
        }
        reach = EgressSettings(private_hosts=frozenset({"localhost"}), ca_bundle=server.certificate)
        async with open_plane() as plane, running(settings_for(plane, tmp_path, egress=reach)):
            for turn in (1, 2):
                plane.give(skill, event={"request_json": body_of(payload)}, policy=policy)
                await plane.until(partial(asked_and_ended, plane, gates=turn, reports=turn - 1))
                plane.resolve(list(plane.gates)[-1], "approved", "go ahead")
                await plane.until(partial(asked_and_ended, plane, gates=turn, reports=turn))
        reports = plane.reports()
        log = server.git("octo-org/parcel-service", "log", "--first-parent", "--format=%H %s", "main")
        content = server.git("octo-org/parcel-service", "show", "main:labels.toml")

    assert [report.outcome for report in reports] == ["processed"] * 2, reports[-1].response_text
    assert reports[0].evidence is not None
    assert reports[1].evidence is not None
    assert reports[0].evidence["reverted_by"] == reports[1].evidence["reverted_by"]

    revert, merge, _ = log.splitlines()
    assert revert.startswith(f"{reports[0].evidence['reverted_by']} Revert ")
    assert merge.startswith(merged)
    assert content == "batch_size = 1"
    assert [request.path.rpartition("/")[2] for request in server.asked].count("git-receive-pack") == 1
    assert TOKEN not in str(plane.frames()) + str(reports)


async def test_night_watch_walks_as_many_rounds_as_the_event_asks_for(tmp_path: Path) -> None:
    skill = (EXAMPLES / "night-watch/SKILL.md").read_text()
    async with open_plane() as plane, running(settings_for(plane, tmp_path)):
        plane.give(skill, event={"request_json": {"raw": {"watch_seconds": 2}}})
        await plane.until(plane.reports)
    (report,) = plane.reports()
    log = "".join(f"round {n} of 2: all is quiet\n" for n in (1, 2))

    assert report.evidence == {
        "rounds": 2,
        "attempt": 1,
        "log_sha256": hashlib.sha256(log.encode()).hexdigest(),
    }
    assert [frame["name"] for frame in plane.frames("tool_call_started")] == ["round 1 of 2", "round 2 of 2"]


def test_the_payload_is_complete_and_names_no_real_person() -> None:
    assert {"action", "workflow_run", "workflow", "repository", "organization", "sender"} == set(PAYLOAD)

    run = PAYLOAD["workflow_run"]
    assert {
        "head_commit",
        "head_repository",
        "repository",
        "actor",
        "triggering_actor",
        "run_attempt",
    } <= set(run)
    assert (run["status"], run["conclusion"]) == ("completed", "failure")
    assert {PAYLOAD["sender"]["login"], run["head_commit"]["author"]["name"]} == {"octo-deployer"}
    assert (EXAMPLES / "deploy-doctor/payloads/workflow_run.failed.json").stat().st_size > 8_000
