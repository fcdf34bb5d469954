"""The codes that are a route's own, each provoked by what it means."""

import base64
import hashlib
import hmac
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from msgspec.structs import replace

from sexton_actors.plans import DEFAULT_PLANS, BillingTerms, PlanLimits
from sexton_actors.terms import RECORD_FRESH_MS
from sexton_storage.periods import day_of
from sexton_storage.records.tenants import PlanTier
from tests.worlds.http import HttpWorld, open_http_world
from tests.worlds.samples import agent_files, skill_md, trigger_md

UNKNOWN = "019363b0-0000-7000-8000-00000000ffff"
USAGE = {"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0}
ASK = {"action_id": "a", "tool_name": "t", "action_name": "n"}
DOLLAR = 10**9
TERM_MS = 30_000
HALF_A_DAY_MS = 12 * 3_600_000
SVIX_KEY = b"0123456789abcdef01234567"
SVIX_TRIGGER = """\
---
name: doctor
triggers:
  - type: webhook
    source: svix
    signature:
      secret_ref: svix-hook
budget: {daily_dollars: 1}
---
"""


async def code(
    world: HttpWorld, method: str, path: str, token: str | None = "", **rest: Any
) -> tuple[int, str]:
    answer = await world.call(method, path, token, **rest)
    return answer.status_code, answer.json().get("error_code", "") if answer.content else ""


def spend(world: HttpWorld, zombie_id: str, nanos: int = 10 * DOLLAR) -> None:
    """Let the agent have spent so much today."""
    world.memory.tables.spend[UUID(zombie_id), day_of(world.actors_world.now_ms())] = nanos


# --- agents and workspaces ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("skill", "trigger", "config", "error"),
    [
        ("a", "b", "", "UZ-ZMB-011"),
        ("a", "a", "gates: {rules: 7}", "UZ-APPROVAL-001"),
        (
            "a",
            "a",
            "gates: {rules: [{tool: '*', action: '*', behavior: approve, condition: 'a =='}]}",
            "UZ-APPROVAL-005",
        ),
    ],
)
async def test_two_files_that_do_not_compile_have_a_code_for_each_reason(
    world: HttpWorld, skill: str, trigger: str, config: str, error: str
) -> None:
    body = {"source_markdown": skill_md(skill), "trigger_markdown": trigger_md(trigger, config)}
    assert await code(world, "POST", f"{world.ws}/zombies", json=body) == (400, error)


async def test_a_name_is_given_once(world: HttpWorld) -> None:
    await world.install()
    body = agent_files()

    assert await code(world, "POST", f"{world.ws}/zombies", json=body) == (409, "UZ-ZMB-006")
    assert await code(world, "POST", "/v1/workspaces", json={"name": "default"}) == (409, "UZ-WORKSPACE-004")


async def test_the_free_plan_holds_so_many_and_no_more() -> None:
    plans = {**DEFAULT_PLANS, PlanTier.FREE: PlanLimits(workspaces=1, agents_per_workspace=1)}
    async with open_http_world(terms=BillingTerms(plans)) as world:
        world.set_plan(PlanTier.FREE)
        assert await code(world, "POST", "/v1/workspaces", json={}) == (402, "UZ-WORKSPACE-003")

        await world.install()
        body = agent_files("b")
        assert await code(world, "POST", f"{world.ws}/zombies", json=body) == (402, "UZ-WORKSPACE-003")

        world.set_plan(PlanTier.PRO)


async def test_an_agent_that_has_spent_its_day_takes_no_message(world: HttpWorld) -> None:
    zombie = await world.install(config="budget: {daily_dollars: 1}")
    spend(world, zombie["zombie_id"])
    path = f"{world.ws}/zombies/{zombie['zombie_id']}/messages"
    answer = await world.post(path, {"message": "hello"})

    assert (answer.status_code, answer.json()["error_code"]) == (402, "UZ-ZMB-001")
    assert int(answer.headers["retry-after"]) >= 1


async def test_a_tenant_without_a_ledger_is_told_so(world: HttpWorld) -> None:
    assert (await world.get("/v1/api-keys")).status_code == 200

    del world.memory.tables.tenants[world.installation.tenant_id]
    assert await code(world, "GET", "/v1/tenants/me/billing") == (500, "UZ-BILLING-002")


async def test_a_page_of_ours_needs_somebody_signed_in(world: HttpWorld) -> None:
    headers = {"sec-fetch-site": "same-origin"}
    for path in ("/auth/sign-out", "/auth/token"):
        assert await code(world, "POST", path, None, json={}, headers=headers) == (401, "UZ-AUTH-002")


# --- webhooks, by each of their three forms -----------------------------------------------------------------


FORMS: dict[str, Callable[[str], str]] = {
    "first trigger": lambda zombie_id: f"/v1/webhooks/{zombie_id}",
    "by source": lambda zombie_id: f"/v1/webhooks/{zombie_id}/svix",
    "rotating signatures": lambda zombie_id: f"/v1/webhooks/svix/{zombie_id}",
}


async def install_svix(world: HttpWorld, *, secret: bool = True) -> str:
    if secret:
        data = {"webhook_secret": "whsec_" + base64.b64encode(SVIX_KEY).decode()}
        await world.post(f"{world.ws}/credentials", {"name": "svix-hook", "data": data})
    body = {"source_markdown": skill_md(), "trigger_markdown": SVIX_TRIGGER}
    answer = await world.post(f"{world.ws}/zombies", body)
    assert answer.status_code == 201, answer.text
    zombie_id: str = answer.json()["zombie_id"]
    return zombie_id


async def send(
    world: HttpWorld, path: str, body: bytes = b'{"type":"a.b"}', late_s: int = 0, *, sign: bool = True
) -> tuple[int, str]:
    stamp = str(world.actors_world.now_ms() // 1000 - late_s)
    name = hashlib.sha256(body).hexdigest()
    signature = hmac.new(SVIX_KEY, f"{name}.{stamp}.".encode() + body, hashlib.sha256).digest()
    headers = {"svix-id": name, "svix-timestamp": stamp}
    if sign:
        headers["svix-signature"] = "v1," + base64.b64encode(signature).decode()
    return await code(world, "POST", path, None, content=body, headers=headers)


@pytest.mark.parametrize("form", FORMS)
async def test_a_delivery_that_is_turned_away_is_told_why(world: HttpWorld, form: str) -> None:
    zombie_id = await install_svix(world)
    path, agent = FORMS[form](zombie_id), f"{world.ws}/zombies/{zombie_id}"
    assert await send(world, FORMS[form](UNKNOWN)) == (404, "UZ-WH-001")
    assert await send(world, path, b"not json") == (400, "UZ-WH-002")
    assert await send(world, path, sign=False) == (401, "UZ-WH-010")
    assert await send(world, path, late_s=3600) == (401, "UZ-WH-011")
    assert await send(world, path) == (202, "")

    for paused, answer in ((True, (402, "UZ-WORKSPACE-002")), (False, (202, ""))):
        await world.call("PATCH", world.ws, json={"paused": paused})
        world.pass_ms(RECORD_FRESH_MS)
        assert await send(world, path, b'{"type":"a.b","paused":true}') == answer
    spend(world, zombie_id)
    assert await send(world, path, b'{"type":"a.c"}') == (503, "UZ-ZMB-001")

    await world.call("PATCH", agent, json={"status": "stopped"})
    assert await send(world, path) == (403, "UZ-WH-003")

    await world.call("PATCH", agent, json={"status": "killed"})
    assert await send(world, path) == (410, "UZ-WH-004")


@pytest.mark.parametrize("form", FORMS)
async def test_a_sender_without_a_secret_in_the_vault_is_told_so(world: HttpWorld, form: str) -> None:
    path = FORMS[form](await install_svix(world, secret=False))
    assert await send(world, path) == (401, "UZ-WH-020")


# --- runners ------------------------------------------------------------------------------------------------


async def test_a_runner_that_is_gone_is_told_so(world: HttpWorld) -> None:
    token = await world.enrol()
    me = (await world.get("/v1/runners/me", token)).json()["id"]
    del world.memory.tables.runners[UUID(me)]
    assert await code(world, "POST", "/v1/runners/me/heartbeats", token, json={}) == (404, "UZ-RUN-014")
    assert await code(world, "POST", "/v1/runners/me/leases", token, json={}) == (404, "UZ-RUN-014")

    path = f"/v1/fleet/runners/{UNKNOWN}"
    body = {"admin_state": "cordoned"}
    assert await code(world, "PATCH", path, world.admin_token(), json=body) == (404, "UZ-RUN-014")


async def test_what_is_no_gate_of_the_lease_is_not_waited_at(world: HttpWorld) -> None:
    _zombie, token, lease = await world.working()
    at = f"/v1/runners/me/leases/{lease['lease_id']}"
    assert await code(world, "GET", f"{at}/gates/{UNKNOWN}", token) == (404, "UZ-APPROVAL-002")

    park = {"gate_id": UNKNOWN, "checkpoint": {}}
    assert await code(world, "POST", f"{at}/park", token, json=park) == (404, "UZ-APPROVAL-002")


def report_of(lease: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "lease_id": lease["lease_id"],
        "event_id": lease["event"]["event_id"],
        "fencing_token": lease["fencing_token"],
        "outcome": "processed",
        "response_text": "",
        **USAGE,
        **changes,
    }


async def test_a_lease_past_its_term_takes_no_word(world: HttpWorld) -> None:
    _zombie, token, lease = await world.working()
    at = f"/v1/runners/me/leases/{lease['lease_id']}"
    world.pass_ms(TERM_MS + 1)
    assert await code(world, "POST", f"{at}/renew", token, json=USAGE) == (409, "UZ-RUN-011")
    assert await code(world, "POST", f"{at}/activity", token, json={"frames": []}) == (409, "UZ-RUN-005")
    assert await code(world, "POST", f"{at}/gates", token, json=ASK) == (409, "UZ-RUN-005")

    park = {"gate_id": UNKNOWN, "checkpoint": {}}
    assert await code(world, "POST", f"{at}/park", token, json=park) == (409, "UZ-RUN-005")
    assert await code(world, "POST", f"{at}/release", token, json={}) == (409, "UZ-RUN-005")

    reports = "/v1/runners/me/reports"
    assert await code(world, "POST", reports, token, json=report_of(lease)) == (409, "UZ-RUN-005")

    unknown = report_of(lease, lease_id=UNKNOWN)
    assert await code(world, "POST", reports, token, json=unknown) == (404, "UZ-RUN-006")


async def test_an_event_runs_for_half_a_day_at_most(world: HttpWorld) -> None:
    _zombie, token, lease = await world.working()
    world.pass_ms(HALF_A_DAY_MS + 1)
    path = f"/v1/runners/me/leases/{lease['lease_id']}/renew"

    assert await code(world, "POST", path, token, json=USAGE) == (409, "UZ-RUN-010")


async def test_a_run_that_nobody_can_pay_for_is_told_to_stop(world: HttpWorld) -> None:
    _zombie, token, lease = await world.working()
    tenants, tenant_id = world.memory.tables.tenants, world.installation.tenant_id
    tenants[tenant_id] = replace(tenants[tenant_id], balance_nanos=0)
    path = f"/v1/runners/me/leases/{lease['lease_id']}/renew"

    assert await code(world, "POST", path, token, json=USAGE) == (402, "UZ-RUN-012")


async def test_a_run_of_an_agent_that_has_spent_its_day_is_told_to_stop(world: HttpWorld) -> None:
    zombie, token, lease = await world.working("budget: {daily_dollars: 1}")
    spend(world, zombie["zombie_id"])
    path = f"/v1/runners/me/leases/{lease['lease_id']}/renew"

    assert await code(world, "POST", path, token, json=USAGE) == (402, "UZ-ZMB-001")


async def test_a_report_takes_lists_that_are_empty_and_refuses_what_is_no_entry(world: HttpWorld) -> None:
    _zombie, token, lease = await world.working()
    reports = "/v1/runners/me/reports"
    for name in ("memory", "proposals"):
        full = report_of(lease, **{name: [{"key": "k"}]})
        answer = await world.post(reports, full, token)
        assert (answer.status_code, answer.json()["error_code"]) == (400, "UZ-REQ-001")
        assert answer.json()["pointer"].startswith(f"/{name}")

    assert await code(world, "POST", reports, token, json=report_of(lease, memory=[], proposals=[])) == (
        200,
        "",
    )
