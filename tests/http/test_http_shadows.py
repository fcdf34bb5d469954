"""Saved events under another version, side by side with what they were: nothing of it takes effect."""

from typing import Any

import pytest
import trio

from sexton_actors.jobs import actor
from sexton_storage.postgres import PostgresStorage
from tests.http.test_http_bulk_jobs import over, until
from tests.patience import PATIENCE_S
from tests.worlds.http import HttpWorld, open_http_world_on
from tests.worlds.http_agents import at, code, compiled, report, run, skill, source, steer, trigger

ACTIONS = ("ls", "rm -r", "mv a b", "ls 2", "ls 3")
DRAFT = skill(body="The draft.\n")
CONFIG = """
credentials: [pager]
network: {allow: [api.pagerduty.com]}
env: {TOKEN: "${secrets.pager.token}", PLAIN: "1"}
tools: [shell, memory_store, request_approval]
gates:
  rules:
    - {tool: message, action: "*", behavior: approve}
    - {tool: shell, action: "rm *", behavior: auto_kill}
    - {tool: shell, action: "mv *", behavior: deny}
  anomaly_rules:
    - {pattern: same_action, threshold_count: 3, threshold_window_s: 600}
"""


USED: dict[str, Any] = {
    "input_tokens": 1,
    "cached_input_tokens": 20,
    "cache_write_tokens": 300,
    "output_tokens": 4_000,
}
LEFT: dict[str, Any] = {
    "memory": [{"key": "k", "content": "c", "category": "core"}],
    "proposals": [{"title": "t", "rationale": "r", "source_markdown": skill(body="Worse.\n")}],
    "checkpoint": {"n": 1},
}


async def shadow(world: HttpWorld, zombie: dict[str, Any], **wish: Any) -> dict[str, Any]:
    body = {"agent_version": 2, "budget_nanos": 10**12, **wish}
    answer = await world.post(f"{at(world, zombie)}/shadow", body)
    assert answer.status_code == 202, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def side_by_side(world: HttpWorld, job: dict[str, Any], **query: Any) -> dict[str, Any]:
    answer = await world.get(f"{world.ws}/jobs/{job['job_id']}/shadow", params=query)
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


async def paged(world: HttpWorld, job: dict[str, Any]) -> list[Any]:
    first = await side_by_side(world, job, limit=1)
    rest = await side_by_side(world, job, limit=1, cursor=first["next_cursor"])
    return [*first["items"], *rest["items"]]


async def asked(world: HttpWorld, token: str, lease: dict[str, Any], action: str) -> dict[str, Any]:
    body = {
        "fencing_token": lease["fencing_token"],
        "action_id": action,
        "tool_name": "shell",
        "action_name": action,
        "proposed_action": action,
        "evidence": {},
        "gate_kind": "tool",
        "blast_radius": "",
    }
    answer = await world.post(f"/v1/runners/me/leases/{lease['lease_id']}/gates", body, token)
    assert answer.is_success, answer.text
    gate: dict[str, Any] = answer.json()
    return gate


async def attack(
    world: HttpWorld, token: str, lease: dict[str, Any], zombie_id: str
) -> list[tuple[int, str]]:
    """All that a run can ask for which would leave something behind it."""
    of_lease, fence = f"/v1/runners/me/leases/{lease['lease_id']}", {"fencing_token": lease["fencing_token"]}
    asks = [
        ("POST", f"/v1/runners/me/memory/{zombie_id}", {"key": "k", "content": "c", "category": "core"}),
        ("POST", f"{of_lease}/follow-ups", {"call_id": "c", "message": "m", "delay_s": 60}),
        ("POST", f"{of_lease}/integration-requests", {"service": "slack", "reason": "to tell people"}),
        ("POST", f"{of_lease}/integrations/slack", None),
        ("PUT", f"{of_lease}/workspace", {**fence, "upload_id": zombie_id}),
    ]
    return [await code(world, method, path, json=body, token=token) for method, path, body in asks]


async def left(world: HttpWorld, zombie: dict[str, Any]) -> dict[str, Any]:
    """What runs of an agent leave behind them, but for events and what they cost."""
    zombie_id = zombie["zombie_id"]
    profile = (await world.get(f"/v1/agents/{zombie_id}")).json()
    trust = {"trust": (profile["trust_level"], profile["trust_streak_runs"])}
    return trust | {
        path: (await world.get(path)).json().get("items")
        for path in (
            f"{at(world, zombie)}/memories",
            f"{at(world, zombie)}/follow-ups",
            f"/v1/agents/{zombie_id}/proposals",
            f"/v1/agents/{zombie_id}/scores",
            f"{world.ws}/integration-grants",
            f"{world.ws}/failures",
            f"{world.ws}/approvals?status=pending",
        )
    }


async def test_a_shadow_takes_no_effect_and_is_shown_beside_what_it_repeats(
    postgres_storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actor, "AGAIN_S", 0.05)
    async with open_http_world_on(postgres_storage) as world:
        zombie, token = await world.install(), await world.enrol()
        await world.post(f"{world.ws}/credentials", {"name": "pager", "data": {"token": "t0p"}})
        texts = [await run(world, zombie, token, response_text=f"answer {n}") for n in range(3)]
        # What the draft names is lent to the agent, so that it is the shadow alone that goes without.
        second = await compiled(world, zombie, DRAFT, trigger(config=CONFIG))
        await world.post(f"{world.ws}/harness/activate", {"config_version_id": second})
        before = await left(world, zombie)
        counted = await shadow(world, zombie, dry_run=True)
        made = await shadow(world, zombie, limit=2)
        lease = await world.lease(token)
        answers = await attack(world, token, lease, zombie["zombie_id"])
        gates = [await asked(world, token, lease, action) for action in ACTIONS]
        await report(world, token, lease, response_text="another", **USED, **LEFT)
        failed = await world.lease(token)
        await report(world, token, failed, outcome="agent_error", failure_reason="agent_run")
        done = await over(world, made)
        shown = await side_by_side(world, done)
        halves = await paged(world, done)
        agent = (await world.get(at(world, zombie))).json()
        after = await left(world, zombie)
        again = await world.post(f"{world.ws}/events:replay", {"filter": "agent:doctor", "dry_run": True})
        events = (await world.get(f"{world.ws}/events")).json()["items"]

    policy, [one, two] = lease["policy"], shown["items"]

    assert counted["total"] == 3
    assert "The draft." in lease["instructions"]
    assert lease["event"]["request_json"] == texts[0]["event"]["request_json"]
    assert policy["network_policy"] == {"allow": [], "rules": []}
    assert (policy["secrets_map"], policy["integrations"], policy["mcp_servers"]) == ({}, {}, [])
    assert (policy["env"], policy["tools"]) == ({"PLAIN": "1"}, ["shell", "memory_store", "request_approval"])
    assert policy["budget_left_nanos"] is not None
    assert lease["workspace"] == "fresh"
    assert answers == [(403, "UZ-SHADOW-001")] * 5
    assert [gate["status"] for gate in gates] == ["approved", "auto_killed", "denied", "approved", "approved"]
    assert agent["status"] == "active", "no rule has paused it"
    assert after == before

    assert (done["status"], done["done"], done["failed"]) == ("done", 2, 0)
    assert done["detail"] == "It has repeated 2 events, as many as were asked for."
    assert (one["original"]["response_text"], one["shadow"]["response_text"]) == ("answer 0", "another")
    assert (one["original"]["agent_version"], one["shadow"]["agent_version"]) == (1, 2)
    assert one["shadow"]["tokens"] == sum(USED.values())
    assert one["would_have_asked"] == [
        "message steer:admin",
        *(f"shell {action}" for action in ACTIONS),
    ]
    assert (one["same_answer"], two["shadow"]["status"]) == (False, "agent_error")
    assert shown["spent_nanos"] == sum(item["shadow"]["charged_nanos"] for item in shown["items"])
    assert halves == shown["items"]
    assert (again.json()["total"], len(events)) == (3, 5), "shadows are repeated by nobody"
    assert {event["shadow_job_id"] for event in events} == {None, done["job_id"]}


async def test_a_shadow_ends_with_its_budget_and_when_it_is_stopped(
    postgres_storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actor, "AGAIN_S", 0.05)
    async with open_http_world_on(postgres_storage) as world:
        zombie, token = await world.install(), await world.enrol()
        for _ in range(2):
            await run(world, zombie, token)
        await compiled(world, zombie, DRAFT)
        made = await shadow(world, zombie, budget_nanos=1)
        lease = await world.lease(token)
        world.pass_ms(20_000)
        await report(world, token, lease)
        spent = await over(world, made)
        shown = await side_by_side(world, spent)
        stopped = (await shadow(world, zombie))["job"]["job_id"]
        await until(world, stopped, {"running"}, "runs")
        await world.post(f"{world.ws}/jobs/{stopped}:stop")
        ended = await until(world, stopped, {"stopped"})
        with trio.fail_after(PATIENCE_S):
            while (await side_by_side(world, ended))["items"][0]["shadow"]["status"] != "cancelled":
                await trio.sleep(0.02)

    assert (spent["status"], spent["done"]) == ("done", 1)
    assert spent["detail"] == "Its budget of $0.000000001 is spent."
    assert shown["spent_nanos"] > 1
    assert ended["done"] == 0


async def test_what_cannot_be_shadowed_is_refused(world: HttpWorld) -> None:
    zombie = await world.install()
    await source(world, zombie, skill(body="Not compiled.\n"))
    await compiled(world, zombie, skill(tags="gpu"))
    await compiled(world, zombie, DRAFT, trigger(config="allow_unsandboxed: true"))
    path = f"{at(world, zombie)}/shadow"

    async def asks(version: int, **more: Any) -> tuple[int, str]:
        return await code(world, "POST", path, json={"agent_version": version, "budget_nanos": 1, **more})

    found = [await asks(version) for version in (9, 2, 3, 4)]
    malformed = await asks(1, filter="(")
    made = await world.post(f"{world.ws}/events:cancel", {"filter": "after:0"})
    job = made.json()["job"]["job_id"]
    other = await code(world, "GET", f"{world.ws}/jobs/{job}/shadow")
    await steer(world, zombie)

    assert found == [
        (404, "UZ-HARNESS-001"),
        (409, "UZ-HARNESS-002"),
        (409, "UZ-HARNESS-003"),
        (409, "UZ-HARNESS-003"),
    ]
    assert malformed == (400, "UZ-REQ-001")
    assert other == (404, "UZ-JOB-001")
