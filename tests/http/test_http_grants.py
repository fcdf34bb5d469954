"""Integration grants: asked for by agents and their runs, decided by people, enforced at every lease."""

import hashlib
import hmac
import json
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

import httpx2
import pytest
import trio

from sexton_http.gateway.replays import FRAMES_A_READ
from sexton_storage.records.frames import Frame
from sexton_storage.records.users import Role
from sexton_storage.terms import GRANTS_LIMIT
from tests.worlds.bearer_tokens import agent_key
from tests.worlds.http import HttpWorld
from tests.worlds.samples import SECRET

UNKNOWN = "019363b0-0000-7000-8000-00000000ffff"
SLACK_CONFIG = "integrations: [slack, jira]\ncredentials: [own, slack]"
SLACK_TRIGGER = """\
---
name: doctor
triggers:
  - type: webhook
    source: slack
    signature:
      secret_ref: github-hook
---
"""


def of(world: HttpWorld, zombie: dict[str, Any]) -> str:
    return f"{world.ws}/zombies/{zombie['zombie_id']}"


async def ask(
    world: HttpWorld, zombie: dict[str, Any], service: str = "slack", token: str | None = ""
) -> httpx2.Response:
    body = {"service": service, "reason": "to tell people"}
    return await world.post(f"{of(world, zombie)}/integration-requests", body, token)


async def decide(
    world: HttpWorld, zombie: dict[str, Any], grant: dict[str, Any], status: str
) -> httpx2.Response:
    path = f"{of(world, zombie)}/integration-grants/{grant['grant_id']}"
    return await world.call("PATCH", path, json={"status": status})


async def granted(world: HttpWorld, zombie: dict[str, Any], service: str = "slack") -> dict[str, Any]:
    grant: dict[str, Any] = (await ask(world, zombie, service)).json()
    assert (await decide(world, zombie, grant, "approved")).status_code == 200
    return grant


async def frames(world: HttpWorld, zombie: dict[str, Any]) -> list[Frame]:
    """Those of grants."""
    kept = await world.storage.frames.read(UUID(zombie["zombie_id"]), after=0, limit=FRAMES_A_READ)
    return [frame for frame in kept if frame.kind.startswith("grant_")]


def code(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json().get("error_code", "")


# --- asking and deciding ------------------------------------------------------------------------------------


async def test_a_request_waits_for_people_and_is_found_again(world: HttpWorld) -> None:
    zombie = await world.install()
    first = await ask(world, zombie)
    assert first.status_code == 201

    grant = first.json()
    assert {name: grant[name] for name in ("zombie_id", "service", "status")} == {
        "zombie_id": zombie["zombie_id"],
        "service": "slack",
        "status": "pending",
    }

    again = await ask(world, zombie)
    assert (again.status_code, again.json()["grant_id"]) == (200, grant["grant_id"])

    decided = (await decide(world, zombie, grant, "approved")).json()
    assert (decided["status"], decided["reason"]) == ("approved", "to tell people")
    assert decided["decided_by"].startswith("api:")
    assert decided["decided_at"] >= decided["requested_at"]
    assert decided["approved_at"] == decided["decided_at"]

    again = await ask(world, zombie)
    assert (again.status_code, again.json()["status"]) == (200, "approved")


async def test_what_was_denied_or_revoked_may_be_asked_for_again(world: HttpWorld) -> None:
    zombie = await world.install()
    grant = (await ask(world, zombie)).json()
    for steps in (("denied",), ("approved", "revoked")):
        for status in steps:
            decided = (await decide(world, zombie, grant, status)).json()
            assert decided["status"] == status
            assert (decided["approved_at"] is None) is (status != "approved")
        answer = await ask(world, zombie)
        assert (answer.status_code, answer.json()["status"]) == (201, "pending")
        assert answer.json()["grant_id"] == grant["grant_id"]
    statuses = [frame.data["status"] for frame in await frames(world, zombie)]

    assert statuses == ["pending", "denied", "pending", "approved", "revoked", "pending"]


async def test_the_first_word_stands_and_may_be_said_again(world: HttpWorld) -> None:
    zombie = await world.install()
    grant = (await ask(world, zombie)).json()
    first = await decide(world, zombie, grant, "approved")
    assert (await decide(world, zombie, grant, "approved")).json()["decided_at"] == first.json()["decided_at"]

    late = await decide(world, zombie, grant, "denied")
    assert code(late) == (404, "UZ-APPROVAL-002")
    assert late.json()["current_state"] == "approved"

    path = f"{of(world, zombie)}/integration-grants/{grant['grant_id']}"
    assert (await world.call("DELETE", path)).status_code == 204
    assert code(await decide(world, zombie, grant, "approved")) == (404, "UZ-APPROVAL-002")


async def revoke(
    world: HttpWorld, zombie: dict[str, Any], grant: dict[str, Any], method: str
) -> httpx2.Response:
    if method == "PATCH":
        return await decide(world, zombie, grant, "revoked")
    return await world.call(method, f"{of(world, zombie)}/integration-grants/{grant['grant_id']}")


@pytest.mark.parametrize(("method", "status"), [("PATCH", 200), ("DELETE", 204)])
async def test_what_is_pending_is_withdrawn_and_what_is_not_open_cannot_be_revoked(
    world: HttpWorld, method: str, status: int
) -> None:
    zombie = await world.install()
    grant = (await ask(world, zombie)).json()
    assert (await revoke(world, zombie, grant, method)).status_code == status

    again = await revoke(world, zombie, grant, method)
    assert (code(again), again.json()["current_state"]) == ((409, "UZ-REQ-009"), "revoked")
    assert again.json()["resolved_by"].startswith("api:")

    late = await decide(world, zombie, grant, "approved")
    assert (code(late), late.json()["current_state"]) == ((404, "UZ-APPROVAL-002"), "revoked")
    assert (await ask(world, zombie)).status_code == 201

    await decide(world, zombie, grant, "denied")
    denied = await revoke(world, zombie, grant, method)
    assert (code(denied), denied.json()["current_state"]) == ((409, "UZ-REQ-009"), "denied")

    statuses = [frame.data["status"] for frame in await frames(world, zombie)]
    assert statuses == ["pending", "revoked", "pending", "denied"]


async def test_a_killed_agent_asks_for_nothing_more(world: HttpWorld) -> None:
    zombie = await world.install()
    await world.call("PATCH", of(world, zombie), json={"status": "killed"})
    refused = await ask(world, zombie)

    assert (code(refused), refused.json()["current_state"]) == ((409, "UZ-ZMB-010"), "killed")
    assert (await world.get(f"{of(world, zombie)}/integration-grants")).json()["items"] == []


async def test_what_is_unknown_is_not_decided(world: HttpWorld) -> None:
    zombie, other = await world.install(), await world.install("other")
    grant = (await ask(world, zombie)).json()
    path = f"{of(world, zombie)}/integration-grants"
    for method, body in (("PATCH", {"status": "approved"}), ("DELETE", None)):
        assert code(await world.call(method, f"{path}/{UNKNOWN}", json=body)) == (404, "UZ-APPROVAL-002")
        elsewhere = f"{of(world, other)}/integration-grants/{grant['grant_id']}"
        assert code(await world.call(method, elsewhere, json=body)) == (404, "UZ-APPROVAL-002")
        nowhere = f"{world.ws}/zombies/{UNKNOWN}/integration-grants/{grant['grant_id']}"
        assert code(await world.call(method, nowhere, json=body)) == (404, "UZ-ZMB-009")
    assert code(await ask(world, {"zombie_id": UNKNOWN})) == (404, "UZ-ZMB-009")

    listed = await world.get(f"{world.ws}/zombies/{UNKNOWN}/integration-grants")
    assert code(listed) == (404, "UZ-ZMB-009")


@pytest.mark.parametrize(
    "body",
    [
        {"service": "Slack", "reason": ""},
        {"service": "", "reason": ""},
        {"service": "a" * 65, "reason": ""},
        {"service": "slack\n", "reason": ""},
        {"service": "sl\u00e4ck", "reason": ""},
        {"service": "slack", "reason": "r" * 513},
        {"service": "slack"},
        {"reason": "why"},
        {"service": ["slack"], "reason": ""},
        {"service": "slack", "reason": "", "status": "approved"},
    ],
)
async def test_a_request_that_is_none_is_refused(world: HttpWorld, body: dict[str, Any]) -> None:
    zombie = await world.install()
    answer = await world.post(f"{of(world, zombie)}/integration-requests", body)

    assert code(answer) == (400, "UZ-REQ-001")
    assert (await world.get(f"{of(world, zombie)}/integration-grants")).json()["items"] == []


async def test_an_agent_asks_for_so_many_services_and_no_more(world: HttpWorld) -> None:
    zombie = await world.install()
    for n in range(GRANTS_LIMIT):
        assert (await ask(world, zombie, f"s{n}")).status_code == 201
    full = await ask(world, zombie, "one-more")

    assert (code(full), full.json()["pointer"]) == ((400, "UZ-REQ-001"), "/service")
    assert (await ask(world, zombie, "s0")).status_code == 200


async def test_of_many_who_ask_at_once_one_makes_the_grant(world: HttpWorld) -> None:
    zombie = await world.install()
    answers: list[httpx2.Response] = []

    async def one() -> None:
        answers.append(await ask(world, zombie))

    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(one)

    assert sorted(answer.status_code for answer in answers) == [200] * 7 + [201]
    assert len({answer.json()["grant_id"] for answer in answers}) == 1


async def test_people_ask_and_operators_decide(world: HttpWorld) -> None:
    zombie = await world.install()
    user = world.user_token(Role.USER)
    grant = (await ask(world, zombie, token=user)).json()
    path = f"{of(world, zombie)}/integration-grants/{grant['grant_id']}"
    for method, body in (("PATCH", {"status": "approved"}), ("DELETE", None)):
        assert code(await world.call(method, path, user, json=body)) == (403, "UZ-AUTH-009")
    listed = await world.get(f"{world.ws}/integration-grants", user)

    assert [item["requested_by"] for item in listed.json()["items"]] == ["user:u1"]


async def test_an_agents_key_asks_for_its_own_agent_and_decides_nothing(world: HttpWorld) -> None:
    zombie, other = await world.install(), await world.install("other")
    made = await agent_key(world, zombie["zombie_id"])
    grant = await ask(world, zombie, token=made["key"])
    assert grant.status_code == 201
    assert code(await ask(world, other, token=made["key"])) == (403, "UZ-AUTH-001")

    path = f"{of(world, zombie)}/integration-grants"
    assert code(await world.get(path, made["key"])) == (403, "UZ-AUTH-001")

    patch = await world.call(
        "PATCH", f"{path}/{grant.json()['grant_id']}", made["key"], json={"status": "approved"}
    )
    assert code(patch) == (403, "UZ-AUTH-001")

    [item] = (await world.get(path)).json()["items"]
    assert item["requested_by"] == f"agent:{made['agent_id']}"

    again = await ask(world, zombie, "jira", made["key"])
    headers = {"idempotency-key": "k"}
    body = {"service": "jira", "reason": "to tell people"}
    kept = await world.post(f"{of(world, zombie)}/integration-requests", body, made["key"], headers=headers)
    replayed = await world.post(
        f"{of(world, zombie)}/integration-requests", body, made["key"], headers=headers
    )
    assert (again.status_code, kept.status_code, replayed.content) == (201, 200, kept.content)

    mine = await world.post(f"{of(world, zombie)}/integration-requests", body, headers=headers)
    assert code(mine) == (422, "UZ-REQ-008")


async def test_grants_are_listed_by_agent_and_by_workspace_in_pages(world: HttpWorld) -> None:
    zombie, other = await world.install(), await world.install("other")
    for n in range(3):
        await ask(world, zombie, f"s{n}")
    await granted(world, other)
    seen, cursor = [], None
    for _ in range(4):
        params = {"limit": "1"} | ({"cursor": cursor} if cursor else {})
        page = (await world.get(f"{world.ws}/integration-grants", params=params)).json()
        seen += [item["service"] for item in page["items"]]
        cursor = page["next_cursor"]
    assert (sorted(seen), cursor) == (["s0", "s1", "s2", "slack"], None)

    mine = (await world.get(f"{of(world, zombie)}/integration-grants")).json()
    assert [item["service"] for item in mine["items"]] == ["s2", "s1", "s0"]

    params = {"status": "approved", "zombie_id": other["zombie_id"]}
    [one] = (await world.get(f"{world.ws}/integration-grants", params=params)).json()["items"]
    assert one["service"] == "slack"

    page = (await world.get(f"{world.ws}/integration-grants", params={"limit": "1"})).json()
    for path in (f"{world.ws}/integration-grants", f"{of(world, zombie)}/integration-grants"):
        for wrong in ("x", page["next_cursor"]):
            answer = await world.get(path, params={"cursor": wrong, "status": "denied"})
            assert code(answer) == (400, "UZ-REQ-001")


# --- by token and by button ---------------------------------------------------------------------------------


async def test_the_approval_token_decides_on_its_own_agent(world: HttpWorld) -> None:
    zombie, other = await world.install(), await world.install("other")
    grant = (await ask(world, zombie)).json()
    path = f"/v1/webhooks/{zombie['zombie_id']}/grant-approval"
    body = {"grant_id": grant["grant_id"], "decision": "approve"}
    assert code(await world.post(path, body, other["approval_token"])) == (401, "UZ-AUTH-002")

    elsewhere = f"/v1/webhooks/{other['zombie_id']}/grant-approval"
    assert code(await world.post(elsewhere, body, other["approval_token"])) == (404, "UZ-APPROVAL-002")

    done = await world.post(path, body, zombie["approval_token"])
    assert (done.status_code, done.json()["status"]) == (200, "approved")
    assert done.json()["decided_by"] == f"api:{zombie['zombie_id']}"

    late = await world.post(path, {**body, "decision": "deny"}, zombie["approval_token"])
    assert (code(late), late.json()["current_state"]) == ((404, "UZ-APPROVAL-002"), "approved")

    for wrong in ({**body, "decision": "maybe"}, {"decision": "approve"}):
        assert code(await world.post(path, wrong, zombie["approval_token"])) == (400, "UZ-REQ-001")


async def press(
    world: HttpWorld, zombie: dict[str, Any], value: str, secret: str = SECRET
) -> httpx2.Response:
    payload = {"type": "block_actions", "user": {"id": "U7"}, "actions": [{"value": value}]}
    body = urlencode({"payload": json.dumps(payload)}).encode()
    stamp = str(world.actors_world.now_ms() // 1000)
    signed = hmac.new(secret.encode(), b"v0:" + stamp.encode() + b":" + body, hashlib.sha256).hexdigest()
    headers = {
        "content-type": "application/x-www-form-urlencoded",
        "x-slack-request-timestamp": stamp,
        "x-slack-signature": f"v0={signed}",
    }
    path = f"/v1/webhooks/{zombie['zombie_id']}/grant-approval"
    return await world.http.post(path, content=body, headers=headers)


async def test_a_signed_button_decides_and_an_unsigned_one_does_not(world: HttpWorld) -> None:
    await world.keep_secret()
    source = "---\nname: doctor\ndescription: d\nversion: 0.1.0\n---\nLook.\n"
    body = {"source_markdown": source, "trigger_markdown": SLACK_TRIGGER}
    zombie = (await world.post(f"{world.ws}/zombies", body)).json()
    grant = (await ask(world, zombie)).json()
    assert code(await press(world, zombie, f"deny:{grant['grant_id']}", "wrong")) == (401, "UZ-APPROVAL-003")
    assert code(await press(world, zombie, "deny:not-an-id")) == (404, "UZ-APPROVAL-002")
    assert code(await press(world, zombie, "later")) == (400, "UZ-REQ-001")
    assert code(await press(world, {"zombie_id": UNKNOWN}, "deny:x")) == (404, "UZ-WH-001")

    done = await press(world, zombie, f"deny:{grant['grant_id']}")
    assert (done.status_code, done.json()["status"], done.json()["decided_by"]) == (
        200,
        "denied",
        "slack:U7",
    )


# --- enforcement --------------------------------------------------------------------------------------------


async def put(world: HttpWorld, name: str, **data: str) -> None:
    answer = await world.post(f"{world.ws}/credentials", {"name": name, "data": data})
    assert answer.status_code == 201


async def next_lease(world: HttpWorld, zombie: dict[str, Any], token: str) -> dict[str, Any]:
    assert (await world.deliver(zombie["webhook_urls"]["github"])).status_code == 202
    return await world.lease(token)


async def finish(world: HttpWorld, lease: dict[str, Any], token: str) -> None:
    released = await world.post(f"/v1/runners/me/leases/{lease['lease_id']}/release", {}, token)
    assert released.status_code == 204


async def test_a_lease_holds_the_credential_of_a_service_only_while_it_is_granted(world: HttpWorld) -> None:
    await world.keep_secret()
    for name in ("own", "slack", "jira", "other"):
        await put(world, name, token=f"t-{name}")
    zombie, token = await world.install(config=SLACK_CONFIG), await world.enrol()
    lease = await next_lease(world, zombie, token)
    assert lease["policy"]["secrets_map"] == {"own": {"token": "t-own"}}
    assert lease["policy"]["integrations"] == {"slack": "none", "jira": "none"}

    grant = await granted(world, zombie)
    await granted(world, zombie, "other")
    await finish(world, lease, token)
    lease = await world.lease(token)
    lent = {name: {"token": f"t-{name}"} for name in ("own", "slack", "other")}
    assert lease["policy"]["secrets_map"] == lent
    assert lease["policy"]["integrations"] == {"slack": "approved", "jira": "none", "other": "approved"}

    await decide(world, zombie, grant, "revoked")
    await finish(world, lease, token)
    lease = await world.lease(token)
    assert set(lease["policy"]["secrets_map"]) == {"own", "other"}
    assert lease["policy"]["integrations"]["slack"] == "revoked"


async def test_a_credential_that_is_needed_and_granted_and_missing_ends_the_run(world: HttpWorld) -> None:
    await world.keep_secret()
    await put(world, "own", token="t")
    zombie, token = await world.install(config=SLACK_CONFIG), await world.enrol()
    await granted(world, zombie)
    await granted(world, zombie, "jira")
    await world.deliver(zombie["webhook_urls"]["github"])
    answer = await world.post("/v1/runners/me/leases", {"wait_ms": 300}, token)
    assert answer.json()["lease"] is None

    [event] = (await world.get(f"{of(world, zombie)}/events")).json()["items"]
    assert (event["failure_label"], event["error_code"]) == ("secret_missing", "UZ-ZMB-003")


async def test_a_run_asks_and_is_lent_what_people_grant(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    at = f"/v1/runners/me/leases/{lease['lease_id']}"
    assert code(await world.post(f"{at}/integrations/slack", {}, token)) == (403, "UZ-GRANT-001")

    for wrong in ("Slack", "a%00b", "%F0%9F%92%A9"):
        assert code(await world.post(f"{at}/integrations/{wrong}", {}, token)) == (403, "UZ-GRANT-001")
    body = {"service": "slack", "reason": "to tell people"}
    asked = await world.post(f"{at}/integration-requests", body, token)
    again = await world.post(f"{at}/integration-requests", body, token)
    assert (asked.status_code, again.status_code) == (201, 200)

    grant = asked.json()
    assert code(await world.post(f"{at}/integrations/slack", {}, token)) == (403, "UZ-GRANT-002")

    await decide(world, zombie, grant, "approved")
    assert code(await world.post(f"{at}/integrations/slack", {}, token)) == (424, "UZ-ZMB-003")

    await put(world, "slack", token="xoxb-1")
    world.pass_ms(1_000)
    lent = await world.post(f"{at}/integrations/slack", {}, token)
    assert (lent.status_code, lent.json()["service"], lent.json()["data"]) == (
        200,
        "slack",
        {"token": "xoxb-1"},
    )

    await decide(world, zombie, grant, "revoked")
    refused = await world.post(f"{at}/integrations/slack", {}, token)
    assert (code(refused), refused.json()["status"]) == ((403, "UZ-GRANT-003"), 403)

    shown = await frames(world, zombie)
    assert [(frame.kind, frame.data["status"]) for frame in shown] == [
        ("grant_changed", "pending"),
        ("grant_changed", "approved"),
        ("grant_used", "approved"),
        ("grant_changed", "revoked"),
    ]
    assert str(shown[0].event_id) == str(shown[2].event_id) == lease["event"]["event_id"]
    assert "xoxb" not in str(shown)


async def test_a_run_that_lost_its_lease_neither_asks_nor_is_lent_anything(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    await put(world, "slack", token="xoxb-1")
    await granted(world, zombie)
    at = f"/v1/runners/me/leases/{lease['lease_id']}"
    other = await world.enrol("h2")
    body = {"service": "jira", "reason": ""}
    for path in ("integrations/slack", "integration-requests"):
        assert code(await world.post(f"{at}/{path}", body, other)) == (404, "UZ-RUN-006")
    world.pass_ms(30_001)
    for path in ("integrations/slack", "integration-requests"):
        assert code(await world.post(f"{at}/{path}", body, token)) == (409, "UZ-RUN-005")

    assert [frame.kind for frame in await frames(world, zombie)] == ["grant_changed"] * 2
