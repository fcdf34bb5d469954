"""An agent's record tells what its files say, in their own words, and what they leave to the service."""

import pytest

from tests.worlds.http import HttpWorld
from tests.worlds.http_agents import at, open_trigger, patch, skill, trigger

TRIGGERS = """\
---
name: doctor
triggers:
  - {type: webhook, source: github, credential_name: hook}
  - {type: webhook, source: slack, signature: {secret_ref: hook}}
  - {type: webhook, source: linear, signature: {secret_ref: hook, header: X-Other, prefix: "l="}}
  - {type: webhook, source: svix, signature: {secret_ref: hook}}
  - {type: webhook, source: shop, signature: {secret_ref: hook, header: X-Shop}}
  - {type: webhook, source: doorbell}
  - {type: cron, schedule: "0 5 * * *"}
---
"""


async def test_the_record_shows_where_each_source_signs(world: HttpWorld) -> None:
    files = {"source_markdown": skill(), "trigger_markdown": TRIGGERS}
    answer = await world.post(f"{world.ws}/zombies", files)
    assert answer.status_code == 201, answer.text

    record = (await world.get(at(world, answer.json()))).json()
    [item] = (await world.get(f"{world.ws}/zombies")).json()["items"]
    assert item["triggers"] == record["triggers"]

    shown = [trigger.get("signature") for trigger in record["triggers"]]
    names = ("header", "prefix", "ts_header")
    assert [signature and tuple(signature[name] for name in names) for signature in shown] == [
        ("x-hub-signature-256", "sha256=", None),
        ("x-slack-signature", "v0=", "x-slack-request-timestamp"),
        ("x-other", "l=", None),
        ("svix-signature", "v1,", "svix-timestamp"),
        ("x-shop", "", None),
        None,
        None,
    ]
    assert {signature["secret_ref"] for signature in shown if signature} == {"hook"}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ("", None),
        ("budget: {daily_dollars: 2.5}", (2.5, None, 2_500_000_000, None)),
        ("budget: {daily_dollars: 1, monthly_dollars: 20}", (1, 20, 10**9, 20 * 10**9)),
    ],
)
async def test_the_record_shows_the_budget_as_it_was_declared(
    world: HttpWorld, config: str, expected: tuple[float | None, ...] | None
) -> None:
    zombie = await world.install(config=config)
    budget = (await world.get(at(world, zombie))).json()["budget"]
    names = ("daily_dollars", "monthly_dollars", "daily_nanos", "monthly_nanos")

    assert budget == (expected and dict(zip(names, expected, strict=True)))


async def test_what_will_probably_not_work_is_warned_of_when_files_are_given(world: HttpWorld) -> None:
    config = "tools: [shel]\nprovider: antropic\ncontext: {max_turn: 5}\ncredentials: [deploy-key]"
    body = {"source_markdown": skill(), "trigger_markdown": trigger(config=config)}
    made = (await world.post(f"{world.ws}/zombies", body)).json()
    said = {warned["key"]: (warned["line"], warned["message"]) for warned in made["warnings"]}
    assert said["tools[0]"] == (8, "there is no tool `shel`: did you mean `shell`?")
    assert "did you mean `max_turns`" in said["context.max_turn"][1]
    assert said["credentials[0]"][0] == 11
    assert "sexton credentials set deploy-key" in said["credentials[0]"][1]
    assert "UZ-WH-020" in said["triggers[0]"][1]
    assert "did you mean `anthropic`?" in said["provider"][1] or "UZ-RELAY-001" in said["provider"][1]

    await world.keep_secret()
    changed = await patch(world, made, trigger_markdown=trigger(config="tools: [mcp:files]"))
    keys = [warned["key"] for warned in changed["warnings"]]
    assert "tools[0]" in keys
    assert "triggers[0]" not in keys
    assert "warnings" not in await patch(world, made, status="stopped")

    draft = {**body, "agent_id": made["zombie_id"]}
    version = (await world.call("PUT", f"{world.ws}/harness/source", json=draft)).json()["config_version_id"]
    judged = await world.post(f"{world.ws}/harness/compile", {"config_version_id": version})
    assert judged.json()["status"] == "COMPILED"
    assert "context.max_turn" in [warned["key"] for warned in judged.json()["warnings"]]


async def test_a_credential_that_may_be_sent_nowhere_is_warned_of_until_a_host_is_named(
    world: HttpWorld,
) -> None:
    credential = {"name": "deploy-key", "data": {"token": "t-0123456789"}}
    await world.post(f"{world.ws}/credentials", credential)
    config = "credentials: [deploy-key]\nnetwork: {allow: [a.example.com, b.example.com]}"
    body = {"source_markdown": skill(), "trigger_markdown": trigger(config=config)}

    made = (await world.post(f"{world.ws}/zombies", body)).json()

    said = {warned["key"]: warned["message"] for warned in made["warnings"]}
    assert "sexton credentials set deploy-key --host HOST" in said["credentials[0]"]

    await world.post(f"{world.ws}/credentials", {**credential, "hosts": ["a.example.com"]})

    changed = await patch(world, made, trigger_markdown=trigger(config=config))
    assert "credentials[0]" not in [warned["key"] for warned in changed["warnings"]]


async def test_a_context_that_would_end_every_run_is_refused_at_install(world: HttpWorld) -> None:
    body = {"source_markdown": skill(), "trigger_markdown": trigger(config="context: {max_turns: many}")}
    answer = await world.post(f"{world.ws}/zombies", body)

    assert (answer.status_code, answer.json()["error_code"]) == (400, "UZ-ZMB-008")
    assert "context.max_turns" in answer.json()["detail"]


async def test_the_record_tells_every_address_and_no_secret(world: HttpWorld) -> None:
    files = {"source_markdown": skill(), "trigger_markdown": open_trigger("alerts")}
    made = (await world.post(f"{world.ws}/zombies", files)).json()
    record = (await world.get(at(world, made))).json()
    shown = made["webhook_urls"]["alerts"]
    assert record["webhook_urls"] == {"alerts": shown.rpartition("/")[0] + "/zwh_***"}

    signed = await world.install("other")
    record = (await world.get(at(world, signed))).json()
    assert record["webhook_urls"] == signed["webhook_urls"]
