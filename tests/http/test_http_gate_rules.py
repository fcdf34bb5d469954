"""Rules of an agent that stand before events and calls, over HTTP and on a real PostgreSQL."""

from __future__ import annotations

from typing import Any

import pytest

from sexton_storage.postgres import PostgresStorage
from tests.http.agent_life import at, report, skill, trigger
from tests.http.house import House, open_house_on

BOTS = r"actor matches '(?i)\bbot\b'"


def rule(tool: str, behaviour: str, condition: str = "") -> str:
    held = f', condition: "{condition}"'.replace("\\", "\\\\") if condition else ""
    return f"gates: {{rules: [{{tool: {tool}, action: '*', behavior: {behaviour}{held}}}]}}"


async def event_of(house: House, zombie: dict[str, Any], event_id: str) -> dict[str, Any]:
    items = (await house.get(f"{at(house, zombie)}/events")).json()["items"]
    return next(item for item in items if item["event_id"] == event_id)


async def test_an_event_that_a_rule_refuses_ends_and_the_next_one_runs(
    postgres_storage: PostgresStorage,
) -> None:
    async with open_house_on(postgres_storage) as house:
        await house.keep_secret()
        zombie = await house.install(config=rule("workflow_run.completed", "deny", BOTS))
        url = zombie["webhook_urls"]["github"]
        payload = {"action": "completed", "workflow_run": {"id": 1}}
        refused = (await house.deliver(url, {**payload, "sender": {"login": "a Bot"}})).json()["event_id"]
        other = (await house.deliver(url, {**payload, "sender": {"login": "robota"}})).json()["event_id"]
        event = await event_of(house, zombie, refused)
        assert (event["status"], event["failure_label"]) == ("gate_blocked", "approval_denied")
        (gate,) = (await house.get(f"{house.ws}/approvals")).json()["items"]
        assert (gate["status"], gate["resolved_by"]) == ("denied", "system:deny")
        assert "Nobody was asked" in gate["detail"]
        assert (await house.get(at(house, zombie))).json()["status"] == "active"
        token = await house.enrol()
        lease = await house.lease(token)
        assert lease["event"]["event_id"] == other
        await report(house, token, lease)


async def test_a_question_that_a_rule_refuses_is_denied_at_once(postgres_storage: PostgresStorage) -> None:
    async with open_house_on(postgres_storage) as house:
        _, token, lease = await house.working(config=rule("http", "deny"))
        body = {"action_id": "a1", "tool_name": "http", "action_name": "POST"}
        gate = (await house.post(f"/v1/runners/me/leases/{lease['lease_id']}/gates", body, token)).json()
        assert (gate["status"], gate["resolved_by"]) == ("denied", "system:deny")
        await report(house, token, lease)


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        ("''", "is empty"),
        ("\"branch matches 'a(b'\"", "character 16: a pattern that RE2 cannot read: missing )"),
    ],
)
async def test_an_empty_condition_and_a_bad_pattern_are_refused_at_install_with_their_place(
    house: House, condition: str, says: str
) -> None:
    config = f"gates: {{rules: [{{tool: a, action: b, behavior: deny, condition: {condition}}}]}}"
    body = {"source_markdown": skill(), "trigger_markdown": trigger(config=config)}
    answer = await house.post(f"{house.ws}/zombies", body)
    assert (answer.status_code, answer.json()["error_code"]) == (400, "UZ-APPROVAL-005")
    (error,) = answer.json()["errors"]
    assert error["key"] == "gates.rules[0].condition"
    assert error["message"].startswith(says)
