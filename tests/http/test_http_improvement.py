"""How an agent gets better over HTTP: its profile, scores and proposals."""

from typing import Any
from uuid import UUID

import pytest
import trio

from sexton_storage.records.improvement import DISPLACED_BY
from sexton_storage.records.users import Role
from sexton_storage.terms import PENDING_KEPT
from tests.worlds.http import HttpWorld
from tests.worlds.http_agents import (
    UNKNOWN,
    at,
    code,
    decide,
    patch,
    profile,
    propose,
    report,
    report_of,
    run,
    skill,
    trigger,
)

# --- profile and scores -------------------------------------------------------------------------------------


async def test_a_profile_tells_standing_and_times_as_text(world: HttpWorld) -> None:
    zombie = await world.install()
    shown = await profile(world, zombie["zombie_id"])

    assert shown["agent_id"] == zombie["zombie_id"]
    assert (shown["name"], shown["status"]) == ("doctor", "ACTIVE")
    assert (shown["trust_level"], shown["trust_streak_runs"]) == ("low", 0)
    assert shown["improvement_stalled_warning"] is False
    assert shown["created_at"].startswith("2024-11-20T00:00:0")
    assert shown["created_at"].endswith("Z")


async def test_trust_grows_with_runs_in_a_row_and_ends_with_a_failure(world: HttpWorld) -> None:
    zombie, token = await world.install(), await world.enrol()
    agent_id = zombie["zombie_id"]
    for _ in range(5):
        await run(world, zombie, token)
    shown = await profile(world, agent_id)
    assert (shown["trust_level"], shown["trust_streak_runs"]) == ("medium", 5)

    await run(world, zombie, token, outcome="cancelled")
    assert (await profile(world, agent_id))["trust_streak_runs"] == 5, "a person's stop is no failure"

    await run(world, zombie, token, outcome="agent_error", failure_reason="gate_command_failed")
    assert (await profile(world, agent_id))["trust_streak_runs"] == 0

    page = (await world.get(f"/v1/agents/{agent_id}/scores", params={"limit": 2})).json()
    assert [(s["outcome"], s["score"], s["failed_checks"]) for s in page["items"]] == [
        ("agent_error", 0.35, 1),
        ("cancelled", 0.7, 0),
    ]

    rest = await world.get(f"/v1/agents/{agent_id}/scores", params={"cursor": page["next_cursor"]})
    assert [s["score"] for s in rest.json()["items"]] == [1.0] * 5
    assert rest.json()["next_cursor"] is None


@pytest.mark.parametrize("tokens", [511, 8193, 0, -1, 2**70, 1024.5, "1024", True, None, [], {}])
async def test_a_scoring_context_out_of_bounds_is_refused(world: HttpWorld, tokens: Any) -> None:
    body = {"context_tokens": tokens}
    assert await code(world, "PUT", f"{world.ws}/scoring", json=body) == (400, "UZ-SCORING-001")


async def test_a_workspace_sets_how_much_of_its_scores_an_agent_is_shown(world: HttpWorld) -> None:
    assert (await world.get(f"{world.ws}/scoring")).json()["context_tokens"] == 2048

    for tokens in (512, 8192, 512):
        put = await world.call("PUT", f"{world.ws}/scoring", json={"context_tokens": tokens})
        assert (put.status_code, put.json()["context_tokens"]) == (200, tokens)
        assert (await world.get(f"{world.ws}/scoring")).json()["context_tokens"] == tokens
    zombie, token = await world.install(config="budget: {daily_dollars: 1}"), await world.enrol()
    for _ in range(39):
        await run(world, zombie, token)
    lease = await run(world, zombie, token)
    shown = [item for item in lease["feedback"] if item["kind"] == "score"]
    assert 20 < len(shown) < 39
    assert sum(len(item["text"]) // 4 + 1 for item in shown) <= 512
    assert "processed 1.0" in shown[0]["text"]


# --- proposals ----------------------------------------------------------------------------------------------


async def test_an_approved_proposal_is_the_active_configuration(world: HttpWorld) -> None:
    zombie = await world.install()
    proposal = await propose(world, zombie["zombie_id"])
    assert (proposal["status"], proposal["base_config_version_id"]) == (
        "PENDING",
        zombie["config_version_id"],
    )
    assert proposal["diff"].splitlines()[:2] == ["--- a/SKILL.md", "+++ b/SKILL.md"]
    assert "+Twice." in proposal["diff"].splitlines()

    approved = await decide(world, proposal, "approve")
    assert (approved.status_code, approved.json()["status"]) == (200, "APPLIED")

    shown = (await world.get(at(world, zombie))).json()
    assert (shown["config_version_id"], shown["config_revision"]) == (approved.json()["config_version_id"], 2)
    assert shown["source_markdown"].endswith("Twice.\n")

    one = await world.get(f"/v1/agents/{zombie['zombie_id']}/proposals/{proposal['proposal_id']}")
    assert (one.json()["status"], one.json()["decided_by"][:4]) == ("APPLIED", "api:")
    assert one.json()["approved_at"] == one.json()["decided_at"] is not None

    for how, body in (("approve", {}), ("reject", {"rejection_reason": "late"})):
        again = await decide(world, proposal, how, **body)
        assert (again.status_code, again.json()["error_code"]) == (409, "UZ-AGENT-002")
        assert again.json()["outcome"] == "APPLIED"


async def test_a_proposal_on_another_configuration_is_not_applied(world: HttpWorld) -> None:
    zombie = await world.install()
    proposal = await propose(world, zombie["zombie_id"])
    await patch(world, zombie, source_markdown=skill(body="Mine.\n"))
    approved = (await decide(world, proposal, "approve")).json()

    assert (approved["status"], approved["config_version_id"]) == ("CONFIG_CHANGED", None)
    assert (await world.get(at(world, zombie))).json()["source_markdown"] == skill(body="Mine.\n")


async def test_a_proposal_that_makes_no_agent_is_rejected_with_what_is_wrong(world: HttpWorld) -> None:
    zombie = await world.install()
    proposal = await propose(world, zombie["zombie_id"], source_markdown="nothing of the kind")
    approved = (await decide(world, proposal, "approve")).json()

    assert approved["status"] == "REJECTED"
    assert approved["rejection_reason"].startswith(
        "COMPILE_FAILED: ERR_ZOMBIE_INVALID_CONFIG: SKILL.md line 1"
    )


async def test_of_two_who_decide_at_once_one_wins(world: HttpWorld) -> None:
    zombie = await world.install()
    proposal = await propose(world, zombie["zombie_id"])
    answers: list[int] = []

    async def one(how: str, **body: Any) -> None:
        answers.append((await decide(world, proposal, how, **body)).status_code)

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(one, "approve")
        nursery.start_soon(lambda: one("reject", rejection_reason="no"))

    assert sorted(answers) == [200, 409, 409, 409]
    assert (await world.get(at(world, zombie))).json()["config_revision"] in {1, 2}


async def test_a_name_that_is_taken_leaves_the_proposal_open(world: HttpWorld) -> None:
    zombie, _ = await world.install(), await world.install("nurse")
    files = {"source_markdown": skill("nurse"), "trigger_markdown": trigger("nurse")}
    proposal = await propose(world, zombie["zombie_id"], **files)
    refused = await decide(world, proposal, "approve")
    assert (refused.status_code, refused.json()["error_code"]) == (409, "UZ-ZMB-006")

    one = await world.get(f"/v1/agents/{zombie['zombie_id']}/proposals/{proposal['proposal_id']}")
    assert one.json()["status"] == "PENDING"


async def test_an_agent_is_told_of_a_rejection_until_a_run_with_it_is_processed(world: HttpWorld) -> None:
    zombie, token = await world.install(), await world.enrol()
    proposal = await propose(world, zombie["zombie_id"])
    rejected = await decide(world, proposal, "reject", rejection_reason="too slow")
    assert (rejected.status_code, rejected.json()["rejection_reason"]) == (200, "too slow")

    told = []
    for outcome in ("agent_error", "processed", "processed"):
        lease = await run(world, zombie, token, outcome=outcome)
        told.append([item for item in lease["feedback"] if item["kind"] == "proposal_rejected"])
    assert [len(items) for items in told] == [1, 1, 0]
    assert told[0][0]["rejection_reason"] == "too slow"
    assert "Look twice" in told[0][0]["text"]


async def test_what_a_run_proposes_is_kept_once_however_often_it_reports(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    await patch(world, zombie, source_markdown=skill(body="Changed meanwhile.\n"))
    draft = {"title": "t", "rationale": "r", "source_markdown": skill(body="Better.\n")}
    for duplicate in (False, True):
        reported = await report(world, token, lease, proposals=[draft, {**draft, "title": "u"}])
        assert reported["duplicate"] is duplicate
    path = f"/v1/agents/{zombie['zombie_id']}/proposals"
    items = (await world.get(path)).json()["items"]
    assert [(p["title"], p["created_by"]) for p in items] == [("u", "run"), ("t", "run")]
    assert {p["base_config_version_id"] for p in items} == {zombie["config_version_id"]}, (
        "as the run was given"
    )
    assert {p["event_id"] for p in items} == {lease["event"]["event_id"]}
    assert (await decide(world, items[0], "approve")).json()["status"] == "CONFIG_CHANGED"

    listed = (await world.get(path, params={"status": "PENDING", "limit": 1})).json()
    assert ([p["title"] for p in listed["items"]], listed["next_cursor"]) == (["t"], None)

    foreign = (await world.get(path, params={"limit": 1})).json()["next_cursor"]
    assert (await world.get(path, params={"cursor": foreign, "status": "PENDING"})).status_code == 400


@pytest.mark.parametrize(
    "draft",
    [
        {"title": "", "rationale": "r", "source_markdown": "s"},
        {"title": "t", "rationale": "r", "source_markdown": ""},
        {"title": "t", "rationale": "r", "source_markdown": "é" * 40_000},
        {"title": "t" * 201, "rationale": "r", "source_markdown": "s"},
        {"title": "t", "rationale": "r", "source_markdown": "s", "diff": "mine"},
    ],
)
async def test_a_draft_that_is_no_proposal_is_refused_from_people_and_runs_alike(
    world: HttpWorld, draft: dict[str, Any]
) -> None:
    zombie, token, lease = await world.working()
    path = f"/v1/agents/{zombie['zombie_id']}/proposals"
    assert await code(world, "POST", path, json=draft) == (400, "UZ-REQ-001")

    answer = await world.post("/v1/runners/me/reports", report_of(lease, proposals=[draft]), token)
    assert (answer.status_code, answer.json()["error_code"]) == (400, "UZ-REQ-001")
    assert answer.json()["pointer"].startswith("/proposals/0")

    await report(world, token, lease)


async def test_a_draft_without_files_is_refused_from_people_and_costs_a_run_only_itself(
    world: HttpWorld,
) -> None:
    zombie, token, lease = await world.working()
    path, draft = f"/v1/agents/{zombie['zombie_id']}/proposals", {"title": "t", "rationale": "r"}
    assert await code(world, "POST", path, json=draft) == (400, "UZ-REQ-001")

    done = await report(world, token, lease, proposals=[draft])
    assert [part["field"] for part in done["refused"]] == ["/proposals/0"]
    assert (await world.get(path)).json()["items"] == []


async def test_a_run_that_was_stopped_proposes_nothing(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    await patch(world, zombie, status="killed")
    draft = {"title": "t", "rationale": "r", "source_markdown": skill(body="Better.\n")}

    assert (await report(world, token, lease, proposals=[draft]))["status"] == "cancelled"
    assert (await world.get(f"/v1/agents/{zombie['zombie_id']}/proposals")).json()["items"] == []


async def test_too_many_open_proposals_push_the_oldest_out(world: HttpWorld) -> None:
    zombie = await world.install()
    made = [await propose(world, zombie["zombie_id"]) for _ in range(PENDING_KEPT + 2)]
    path = f"/v1/agents/{zombie['zombie_id']}/proposals"
    rejected = (await world.get(path, params={"status": "REJECTED"})).json()["items"]

    assert {p["proposal_id"] for p in rejected} == {p["proposal_id"] for p in made[:2]}
    assert {p["decided_by"] for p in rejected} == {DISPLACED_BY}


async def test_three_rejections_in_a_row_are_a_warning(world: HttpWorld) -> None:
    zombie = await world.install()
    for number in range(3):
        assert (await profile(world, zombie["zombie_id"]))["improvement_stalled_warning"] is False
        proposal = await propose(world, zombie["zombie_id"])
        world.pass_ms(number + 1)
        await decide(world, proposal, "reject", rejection_reason="no")

    assert (await profile(world, zombie["zombie_id"]))["improvement_stalled_warning"] is True


async def test_what_is_no_agent_or_proposal_here_is_not_found(world: HttpWorld) -> None:
    zombie, other = await world.install(), await world.install("nurse")
    proposal = await propose(world, zombie["zombie_id"])
    elsewhere = {**proposal, "agent_id": other["zombie_id"]}
    for lost in ({**proposal, "proposal_id": UNKNOWN}, elsewhere, {**proposal, "agent_id": UNKNOWN}):
        path = f"/v1/agents/{lost['agent_id']}/proposals/{lost['proposal_id']}"
        assert await code(world, "GET", path) == (404, "UZ-AGENT-001")
        for how, body in (("approve", {}), ("reject", {"rejection_reason": "no"})):
            answer = await decide(world, lost, how, **body)
            assert (answer.status_code, answer.json()["error_code"]) == (404, "UZ-AGENT-001")
    draft = {"title": "t", "rationale": "r", "source_markdown": "s"}
    assert await code(world, "POST", f"/v1/agents/{UNKNOWN}/proposals", json=draft) == (404, "UZ-AGENT-001")

    for path in ("", "/scores", "/proposals"):
        assert await code(world, "GET", f"/v1/agents/{UNKNOWN}{path}") == (404, "UZ-AGENT-001")


async def test_a_token_for_another_workspace_finds_no_agent(world: HttpWorld) -> None:
    zombie = await world.install()
    elsewhere = (await world.post("/v1/workspaces", {})).json()["workspace_id"]
    token = world.user_token(Role.ADMIN, workspace_id=UUID(elsewhere))
    path = f"/v1/agents/{zombie['zombie_id']}"

    assert await code(world, "GET", path, token=token) == (404, "UZ-AGENT-001")
