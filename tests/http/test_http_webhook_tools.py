"""Why a webhook is refused, told to an agent's owner; and another approval token."""

import base64
import hashlib
import hmac
import json
from typing import Any
from uuid import UUID

import httpx2

from sexton_storage.records.users import Role
from tests.worlds.http import HttpWorld
from tests.worlds.samples import SECRET

UNKNOWN = "019363b0-0000-7000-8000-00000000ffff"
BODY = b'{"action":"completed","n":[1,2]}'
SKILL = "---\nname: many\ndescription: d\nversion: 1.0.0\n---\nx\n"
TRIGGER = """---
name: many
triggers:
  - {type: webhook, source: github, events: [workflow_run], signature: {secret_ref: github-hook}}
  - {type: webhook, source: slack, signature: {secret_ref: github-hook}}
  - {type: webhook, source: shop, signature: {secret_ref: gone, header: x-shop}}
  - {type: webhook, source: plain}
---
"""


def hub(body: bytes = BODY, secret: str = SECRET, **more: str) -> dict[str, str]:
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {"X-GitHub-Event": "workflow_run", "X-Hub-Signature-256": f"sha256={digest}", **more}


async def install(world: HttpWorld, secret: Any = SECRET) -> str:
    await world.post(f"{world.ws}/credentials", {"name": "github-hook", "data": {"webhook_secret": secret}})
    answer = await world.post(f"{world.ws}/zombies", {"source_markdown": SKILL, "trigger_markdown": TRIGGER})
    assert answer.status_code == 201, answer.text
    zombie_id: str = answer.json()["zombie_id"]
    return zombie_id


async def verify(world: HttpWorld, zombie_id: str, token: str = "", **sample: Any) -> httpx2.Response:
    body = {"headers": hub(), "body": BODY.decode(), "source": "github", **sample}
    body = {name: value for name, value in body.items() if value is not None}
    return await world.post(f"{world.ws}/zombies/{zombie_id}/webhooks:verify", body, token)


async def verdict(world: HttpWorld, zombie_id: str, **sample: Any) -> dict[str, Any]:
    answer = await verify(world, zombie_id, **sample)
    assert answer.status_code == 200, answer.text
    assert SECRET not in answer.text
    said: dict[str, Any] = answer.json()
    return said


async def test_a_good_sample_is_said_to_be_good_and_wakes_nobody(world: HttpWorld) -> None:
    zombie_id = await install(world)
    said = await verdict(world, zombie_id)
    assert (said["ok"], said["signature_ok"], said["outcome"]) == (True, True, "accepted")
    assert said["event_type"] == "workflow_run.completed"

    first = await verdict(
        world, zombie_id, source=None, body=None, body_base64=base64.b64encode(BODY).decode()
    )
    assert first["outcome"] == "accepted"
    assert not world.memory.tables.events
    assert not world.memory.tables.frames.get(UUID(zombie_id))


REFUSALS: list[tuple[dict[str, Any], str, bool, str | None]] = [
    ({"headers": {}}, "signature_missing", False, "UZ-WH-010"),
    ({"headers": {"x-hub-signature-256": "sha256=zz"}}, "signature_malformed", False, "UZ-WH-010"),
    ({"headers": hub(secret="x")}, "signature_mismatch", False, "UZ-WH-010"),
    ({"source": "shop"}, "credential_missing", False, "UZ-WH-020"),
    ({"source": "plain"}, "credential_missing", False, "UZ-WH-020"),
    ({"source": "nobody"}, "credential_missing", False, "UZ-WH-020"),
    ({"body": "[]", "headers": hub(b"[]")}, "malformed_body", True, "UZ-WH-002"),
    ({"headers": hub() | {"X-GitHub-Event": "ping"}}, "ignored", True, None),
    ({"headers": hub() | {"X-GitHub-Event": "push"}}, "ignored", True, None),
    ({"body": "x" * (1024 * 1024 + 1)}, "too_large", False, "UZ-WH-030"),
]


async def test_each_way_to_be_refused_is_told_as_a_sender_is_told(world: HttpWorld) -> None:
    zombie_id = await install(world)
    for sample, outcome, signature_ok, code in REFUSALS:
        said = await verdict(world, zombie_id, **sample)
        assert (said["outcome"], said["signature_ok"], said["error_code"]) == (outcome, signature_ok, code)
        assert said["ok"] is (outcome == "ignored")


async def test_a_stale_sample_is_good_at_the_time_it_came(world: HttpWorld) -> None:
    zombie_id = await install(world)
    stamp = world.actors_world.now_ms() // 1000 - 10_000
    body = '{"type":"event_callback","event":{"type":"message"}}'
    digest = hmac.new(SECRET.encode(), f"v0:{stamp}:{body}".encode(), hashlib.sha256).hexdigest()
    headers = {"X-Slack-Signature": f"v0={digest}", "X-Slack-Request-Timestamp": str(stamp)}
    sample = {"source": "slack", "headers": headers, "body": body}
    stale = await verdict(world, zombie_id, **sample)
    assert (stale["outcome"], stale["signature_ok"], stale["error_code"]) == (
        "stale_timestamp",
        True,
        "UZ-WH-011",
    )

    then = await verdict(world, zombie_id, **sample, received_at=stamp * 1000)
    assert (then["outcome"], then["event_type"]) == ("accepted", "message")

    late = {**headers, "X-Slack-Request-Timestamp": f"{stamp}000"}
    said = await verdict(world, zombie_id, **{**sample, "headers": late})
    assert any("milliseconds" in hint for hint in said["hints"])


SLIPS: list[tuple[bytes, bytes, str, str]] = [
    (BODY, BODY, f"{SECRET}\n", "around the secret"),
    (BODY, BODY, base64.b64encode(SECRET.encode()).decode(), "decoded from base64"),
    (BODY, BODY, SECRET.encode().hex(), "decoded from hexadecimal"),
    (BODY + b"\n", BODY, SECRET, "without its last line end"),
    (BODY, BODY + b"\n", SECRET, "with a line end behind it"),
    (json.dumps(json.loads(BODY)).encode(), BODY, SECRET, "JSON without blanks"),
    (BODY, json.dumps(json.loads(BODY)).encode(), SECRET, "JSON with blanks"),
    (BODY, b"", SECRET, "does not sign the body"),
    (BODY, b"other", SECRET, "No usual slip"),
]


async def test_the_slip_that_explains_a_mismatch_is_named(world: HttpWorld) -> None:
    zombie_id = await install(world)
    for body, signed, secret, hint in SLIPS:
        kept = {"name": "github-hook", "data": {"webhook_secret": secret}}
        await world.post(f"{world.ws}/credentials", kept)
        said = await verdict(world, zombie_id, body=body.decode(), headers=hub(signed))
        assert said["outcome"] == "signature_mismatch"
        assert [hint in words for words in said["hints"]] == [True], (hint, said["hints"])
        assert hub(body)["X-Hub-Signature-256"].removeprefix("sha256=") not in str(said)


async def test_a_signature_of_another_source_or_in_base64_is_noticed(world: HttpWorld) -> None:
    zombie_id = await install(world)
    said = await verdict(world, zombie_id, source="slack")
    assert any("looks like github" in hint for hint in said["hints"])

    digest = base64.b64encode(hashlib.sha256(b"x").digest()).decode()
    said = await verdict(world, zombie_id, headers={"x-hub-signature-256": f"sha256={digest}"})
    assert said["outcome"] == "signature_malformed"
    assert any("base64" in hint for hint in said["hints"])


async def test_only_who_may_keep_secrets_may_try_samples(world: HttpWorld) -> None:
    zombie_id = await install(world)
    refused = await verify(world, zombie_id, world.user_token(Role.USER))
    assert (refused.status_code, refused.json()["error_code"]) == (403, "UZ-AUTH-009")
    assert (await verify(world, zombie_id, world.user_token(Role.OPERATOR))).status_code == 200

    unknown = await verify(world, UNKNOWN)
    assert (unknown.status_code, unknown.json()["error_code"]) == (404, "UZ-ZMB-009")


async def test_a_sample_that_is_none_is_malformed(world: HttpWorld) -> None:
    zombie_id = await install(world)
    for sample in ({"body_base64": "%"}, {"body_base64": "eA="}, {"headers": 7}, {"received_at": -1}):
        answer = await verify(world, zombie_id, **sample)
        assert (answer.status_code, answer.json()["error_code"]) == (400, "UZ-REQ-001"), sample


async def test_a_sample_without_a_body_has_an_empty_one(world: HttpWorld) -> None:
    zombie_id = await install(world)
    said = await verdict(world, zombie_id, body=None, headers=hub(b""))

    assert (said["signature_ok"], said["outcome"]) == (True, "malformed_body")


# --- the approval token -------------------------------------------------------------------------------------


async def test_a_new_approval_token_puts_the_old_one_out_at_once(world: HttpWorld) -> None:
    zombie = await world.install()
    zombie_id, old = zombie["zombie_id"], zombie["approval_token"]
    path, decision = f"/v1/webhooks/{zombie_id}/approval", {"approval_id": "x", "decision": "approve"}
    assert (await world.post(path, decision, old)).json()["error_code"] == "UZ-APPROVAL-002"

    rotated = await world.post(f"{world.ws}/zombies/{zombie_id}/approval-token")
    new = rotated.json()["approval_token"]
    assert (rotated.status_code, new[:4], len(new)) == (201, "zap_", 68)
    assert (await world.post(path, decision, old)).json()["error_code"] == "UZ-AUTH-002"
    assert (await world.post(path, decision, new)).json()["error_code"] == "UZ-APPROVAL-002"
    assert new not in str(world.memory.tables.zombies)


async def test_the_same_key_gives_the_same_token_again(world: HttpWorld) -> None:
    zombie = await world.install()
    path, headers = f"{world.ws}/zombies/{zombie['zombie_id']}/approval-token", {"idempotency-key": "k"}
    first = await world.post(path, headers=headers)
    again = await world.post(path, headers=headers)

    assert first.json()["approval_token"] == again.json()["approval_token"]
    assert again.headers["idempotent-replayed"] == "true"


async def test_only_an_operator_rotates_and_only_of_an_agent_that_lives(world: HttpWorld) -> None:
    zombie = await world.install()
    agent = f"{world.ws}/zombies/{zombie['zombie_id']}"
    refused = await world.post(f"{agent}/approval-token", token=world.user_token(Role.USER))
    assert (refused.status_code, refused.json()["error_code"]) == (403, "UZ-AUTH-009")

    await world.call("PATCH", agent, json={"status": "killed"})
    killed = await world.post(f"{agent}/approval-token")
    assert (killed.status_code, killed.json()["error_code"]) == (409, "UZ-ZMB-010")

    nobody = await world.post(f"{world.ws}/zombies/{UNKNOWN}/approval-token")
    assert (nobody.status_code, nobody.json()["error_code"]) == (404, "UZ-ZMB-009")
