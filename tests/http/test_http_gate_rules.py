"""Rules of an agent that stand before events and calls, over HTTP and on a real PostgreSQL."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from sexton_storage.postgres import PostgresStorage
from sexton_storage.vault import VaultError
from tests.worlds.http import HttpWorld, open_http_world_on
from tests.worlds.http_agents import at, report, skill, trigger

BOTS = r"actor matches '(?i)\bbot\b'"


def rule(tool: str, behaviour: str, condition: str = "") -> str:
    held = f', condition: "{condition}"'.replace("\\", "\\\\") if condition else ""
    return f"gates: {{rules: [{{tool: {tool}, action: '*', behavior: {behaviour}{held}}}]}}"


async def event_of(world: HttpWorld, zombie: dict[str, Any], event_id: str) -> dict[str, Any]:
    items = (await world.get(f"{at(world, zombie)}/events")).json()["items"]
    return next(item for item in items if item["event_id"] == event_id)


async def test_an_event_that_a_rule_refuses_ends_and_the_next_one_runs(
    postgres_storage: PostgresStorage,
) -> None:
    async with open_http_world_on(postgres_storage) as world:
        await world.keep_secret()
        zombie = await world.install(config=rule("workflow_run.completed", "deny", BOTS))
        url = zombie["webhook_urls"]["github"]
        payload = {"action": "completed", "workflow_run": {"id": 1}}
        refused = (await world.deliver(url, {**payload, "sender": {"login": "a Bot"}})).json()["event_id"]
        other = (await world.deliver(url, {**payload, "sender": {"login": "robota"}})).json()["event_id"]
        event = await event_of(world, zombie, refused)
        assert (event["status"], event["failure_label"]) == ("gate_blocked", "approval_denied")

        (gate,) = (await world.get(f"{world.ws}/approvals")).json()["items"]
        assert (gate["status"], gate["resolved_by"]) == ("denied", "system:deny")
        assert "Nobody was asked" in gate["detail"]
        assert (await world.get(at(world, zombie))).json()["status"] == "active"

        token = await world.enrol()
        lease = await world.lease(token)
        assert lease["event"]["event_id"] == other

        await report(world, token, lease)


async def test_whoever_decides_about_an_event_is_shown_it_without_secrets(
    postgres_storage: PostgresStorage,
) -> None:
    async with open_http_world_on(postgres_storage) as world:
        await world.keep_secret()
        await world.post(f"{world.ws}/credentials", {"name": "deploy", "data": {"key": "correct horse"}})
        config = "tools: [shell]\ncredentials: [deploy]\n" + rule("'*'", "approve")
        zombie = await world.install(config=config)
        payload = {
            "action": "completed",
            "workflow_run": {"id": 1, "html_url": "https://github.test/acme/web/runs/1"},
            "repository": {"full_name": "acme/web"},
            "sender": {"login": "ann"},
            "note": "the key is correct horse",
            "hook": {"secret": "plain"},
        }
        assert (await world.deliver(zombie["webhook_urls"]["github"], payload)).status_code == 202

        steered = {"message": "Deploy with ghp_0123456789abcdefghij now"}
        await world.post(f"{at(world, zombie)}/messages", steered)
        delivered, message = (await world.get(f"{world.ws}/approvals")).json()["items"]
        assert delivered["gate_kind"] == "event"
        assert delivered["evidence"]["sender"] == "ann"
        assert "acme/web" in str(delivered["evidence"]["payload"])
        assert "tools: shell" in delivered["blast_radius"]
        assert "credentials: deploy" in delivered["blast_radius"]
        assert "correct horse" not in str(delivered)
        assert "plain" not in str(delivered)
        assert message["evidence"]["message"] == "Deploy with [masked] now"
        assert message["evidence"]["actor"].startswith("steer:")

        one = (await world.get(f"{world.ws}/approvals/{delivered['gate_id']}")).json()
        assert one["evidence"] == delivered["evidence"]


async def test_a_credential_that_does_not_open_keeps_nothing_back_but_the_payload(
    world: HttpWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    zombie = await world.install(config="credentials: [deploy]\n" + rule("message", "approve"))

    async def broken(workspace_id: UUID, name: str) -> None:
        raise VaultError(f"{workspace_id} {name}: no such master key")

    monkeypatch.setattr(world.actors_world.secrets, "open", broken)
    steered = await world.post(f"{at(world, zombie)}/messages", {"message": "the key is correct horse"})
    assert steered.status_code == 202, steered.text

    (gate,) = (await world.get(f"{world.ws}/approvals")).json()["items"]
    assert "correct horse" not in str(gate)
    assert "could not be opened" in gate["evidence"]["payload"]["left_out"]

    made = await world.post(
        f"{world.ws}/zombies", {"source_markdown": skill("other"), "trigger_markdown": trigger("other")}
    )
    assert made.status_code == 201, made.text


async def test_a_question_that_a_rule_refuses_is_denied_at_once(postgres_storage: PostgresStorage) -> None:
    async with open_http_world_on(postgres_storage) as world:
        _, token, lease = await world.working(config=rule("http", "deny"))
        body = {"action_id": "a1", "tool_name": "http", "action_name": "POST"}
        gate = (await world.post(f"/v1/runners/me/leases/{lease['lease_id']}/gates", body, token)).json()
        assert (gate["status"], gate["resolved_by"]) == ("denied", "system:deny")

        await report(world, token, lease)


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        ("''", "is empty"),
        ("\"branch matches 'a(b'\"", "character 16: a pattern that RE2 cannot read: missing )"),
    ],
)
async def test_an_empty_condition_and_a_bad_pattern_are_refused_at_install_with_their_place(
    world: HttpWorld, condition: str, says: str
) -> None:
    config = f"gates: {{rules: [{{tool: a, action: b, behavior: deny, condition: {condition}}}]}}"
    body = {"source_markdown": skill(), "trigger_markdown": trigger(config=config)}
    answer = await world.post(f"{world.ws}/zombies", body)
    assert (answer.status_code, answer.json()["error_code"]) == (400, "UZ-APPROVAL-005")

    (error,) = answer.json()["errors"]
    assert error["key"] == "gates.rules[0].condition"
    assert error["message"].startswith(says)
