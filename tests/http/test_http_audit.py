"""The audit log tells who changed what and from where, with the change or not at all."""

from typing import Any

import msgspec

from sexton_actors.periodic.delivery_rounds import WriteDeliveries
from sexton_actors.periodic.failure_rounds import Sort
from sexton_http.routes.audit_actions import AUDITED
from sexton_http.routes.table import OPERATIONS
from sexton_storage.records.users import Role
from tests.worlds.bearer_tokens import TENANT_B, settle_tenant_b
from tests.worlds.browser import visiting
from tests.worlds.every_route import take
from tests.worlds.http import HttpWorld
from tests.worlds.http_agents import at, report

CRON = '  - type: cron\n    schedule: "0 * * * *"\n    message: look around'
ELSEWHERE = {
    "actor.restart",
    "actor.stop",
    "agent.change",
    "agent.delete",
    "agent_key.create",
    "agent_key.delete",
    "api_key.delete",
    "approval.approve",
    "canary.promote",
    "canary.start",
    "canary.withdraw",
    "agent.pin",
    "agent.unpin",
    "chat.install",
    "chat.uninstall",
    "credential.delete",
    "credential.put",
    "credential_grant.change",
    "credential_grant.revoke",
    "delivery.replay",
    "erasure.begin",
    "erasure.stop",
    "failure.acknowledge",
    "failure.mute",
    "file.delete",
    "follow_up.cancel",
    "grant.change",
    "grant.revoke",
    "job.cancel",
    "job.pause",
    "job.replay",
    "job.resume",
    "job.shadow",
    "job.stop",
    "mcp_server.delete",
    "mcp_server.put",
    "model_key.delete",
    "platform_key.delete",
    "proposal.approve",
    "proposal.reject",
    "provider.choose",
    "provider.reset",
    "schedule.pause",
    "schedule.resume",
    "schedule.run",
    "session.begin",
    "session.end",
    "terminal.abort",
}
"""What a walk over the routes does not do, or does to nothing that is there."""


async def lines(world: HttpWorld, path: str = "/v1/audit", **query: str) -> list[dict[str, Any]]:
    answer = await world.get(path, world.admin_token(), params={"limit": "200", **query})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


async def exported(world: HttpWorld, path: str = "/v1/audit/export") -> list[dict[str, Any]]:
    answer = await world.get(path, world.admin_token())
    assert answer.headers["content-type"] == "application/x-ndjson"
    return [msgspec.json.decode(line) for line in answer.content.splitlines()]


async def test_what_is_done_all_over_the_interface_is_told(world: HttpWorld) -> None:
    await take(world)
    told = {line["action"] for path in ("/v1/audit", "/v1/admin/audit") for line in await lines(world, path)}
    asked = {one.action for one in AUDITED.values()}

    assert asked - told - ELSEWHERE == set()
    assert told <= asked
    assert len(await exported(world)) == len(await lines(world))


async def test_a_line_says_who_what_where_and_never_a_secret(world: HttpWorld) -> None:
    ann = world.user_token(Role.ADMIN)
    key = (await world.post("/v1/api-keys", {"key_name": "ci", "role": "user"}, ann)).json()
    twice = await world.post("/v1/api-keys", {"key_name": "ci"}, ann)
    await world.post(f"{world.ws}/credentials", {"name": "hub", "data": {"token": "s3cret"}}, ann)
    low = await world.post("/v1/api-keys", {"key_name": "x"}, world.user_token(Role.USER))
    put, made = await lines(world)
    told = msgspec.json.encode([put, made])

    assert (twice.status_code, low.status_code) == (409, 403)
    assert (made["action"], made["target"], made["actor"]) == ("api_key.create", key["id"], "user:u1")
    assert made["facts"] == {"key_name": "ci", "role": "user"}
    assert made["address"]
    assert (made["workspace_id"], put["workspace_id"]) == (None, str(world.installation.workspace_id))
    assert (put["action"], put["target"], put["seq"]) == ("credential.put", "hub", 2)
    assert key["key"].encode() not in told
    assert b"s3cret" not in told


async def test_agents_gates_and_runners_are_told_for_whom_they_were_changed(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    agent = f"{world.ws}/zombies/{zombie['zombie_id']}"
    ask = {"action_id": "a1", "tool_name": "http", "action_name": "POST"}
    held = f"/v1/runners/me/leases/{lease['lease_id']}"
    gate = (await world.post(f"{held}/gates", ask, token)).json()["gate_id"]
    for _ in range(2):
        await world.post(f"{world.ws}/approvals/{gate}:approve", {"reason": "Go on."})
    await world.call("PATCH", agent, json={"status": "stopped"})
    await world.call("PATCH", agent, json={"status": "stopped"})
    await world.call("DELETE", agent)
    told = [
        (line["action"], line["target"], line["facts"])
        for line in await lines(world)
        if line["action"] != "credential.put"
    ][::-1]
    runner = (await lines(world, "/v1/admin/audit", action="runner.*"))[-1]
    id_ = zombie["zombie_id"]

    assert told == [
        ("agent.create", id_, {}),
        ("approval.approve", gate, {"reason": "Go on."}),
        ("agent.change", id_, {"status": "stopped"}),
        ("agent.delete", id_, {}),
    ]
    assert (runner["action"], runner["actor"]) == ("runner.enrol", "enrolment")
    assert [line["action"] for line in await lines(world, f"{world.ws}/audit", target=gate)] == [
        "approval.approve"
    ]


async def test_what_people_do_to_schedules_deliveries_and_failures_is_told(world: HttpWorld) -> None:
    ann = world.user_token(Role.OPERATOR)
    await world.keep_secret()
    zombie = await world.install(config=CRON)
    await world.http.post(zombie["webhook_urls"]["github"], content=b"{}", headers={"x-github-event": "push"})
    await world.system.ask("delivery_rounds", "", WriteDeliveries())
    [refused] = (await world.get(f"{world.ws}/webhook-deliveries")).json()["items"]
    [schedule] = (await world.get(f"{world.ws}/schedules")).json()["items"]
    cron = f"{at(world, zombie)}/schedules/{schedule['schedule_id']}"
    for verb in ("pause", "resume", "run"):
        assert (await world.post(f"{cron}:{verb}", {}, ann)).status_code in {200, 202}
    assert (await world.post(f"{cron}:run", {}, world.user_token())).status_code == 403

    delivery = f"{world.ws}/webhook-deliveries/{refused['delivery_id']}"
    assert (await world.post(f"{delivery}:replay", {}, ann)).status_code == 200

    token = await world.enrol()
    await report(world, token, await world.lease(token), outcome="agent_error")
    await world.system.ask("failure_rounds", "", Sort())
    [group] = (await world.get(f"{world.ws}/failures")).json()["items"]
    failure = f"{world.ws}/failures/{group['failure_id']}"
    await world.post(f"{failure}:acknowledge", {}, ann)
    await world.post(f"{failure}:mute", {"until": 7}, ann)

    told = [(line["action"], line["target"], line["facts"]) for line in await lines(world, actor="user:u1")]
    id_ = {"zombie_id": zombie["zombie_id"]}
    assert told[::-1] == [
        ("schedule.pause", schedule["schedule_id"], id_),
        ("schedule.resume", schedule["schedule_id"], id_),
        ("schedule.run", schedule["schedule_id"], id_),
        ("delivery.replay", refused["delivery_id"], {}),
        ("failure.acknowledge", group["failure_id"], {}),
        ("failure.mute", group["failure_id"], {"until": 7}),
    ]


async def test_who_began_paused_and_stopped_a_job_is_told_with_its_filter(world: HttpWorld) -> None:
    agent, ann = await world.install(), world.user_token(Role.OPERATOR)
    for _ in range(9):
        await world.post(f"{world.ws}/zombies/{agent['zombie_id']}/messages", {"message": "wait"})
    counted = await world.post(f"{world.ws}/events:cancel", {"filter": "after:0", "dry_run": True}, ann)
    made = await world.post(f"{world.ws}/events:cancel", {"filter": "agent:doctor", "rate": 1}, ann)
    job = made.json()["job"]["job_id"]
    for verb in ("pause", "pause", "resume", "stop"):
        await world.post(f"{world.ws}/jobs/{job}:{verb}", {}, ann)
    told = [(line["action"], line["target"], line["actor"]) for line in await lines(world, action="job.*")]
    begun = (await lines(world, action="job.cancel"))[0]

    assert (counted.status_code, made.status_code) == (202, 202)
    assert told[::-1] == [(f"job.{verb}", job, "user:u1") for verb in ("cancel", "pause", "resume", "stop")]
    assert begun["facts"] == {"filter": "agent:doctor", "rate": 1}
    assert begun["workspace_id"] == str(world.installation.workspace_id)


async def test_a_page_with_several_buttons_is_told_as_the_button_that_was_pressed(world: HttpWorld) -> None:
    agent = await world.install()
    for _ in range(9):
        await world.post(f"{world.ws}/zombies/{agent['zombie_id']}/messages", {"message": "wait"})
    made = await world.post(f"{world.ws}/events:cancel", {"filter": "agent:doctor", "rate": 1})
    job = made.json()["job"]["job_id"]
    home = f"/console/{world.installation.workspace_id}"
    async with visiting(world) as browser:
        await browser.sign_in()
        for verb in ("pause", "stop"):
            await browser.post(f"{home}/jobs/{job}", data={"verb": verb})
        await browser.post(f"{home}/jobs", data={"filter": "agent:doctor", "kind": "replay"})
        wish = {"verb": "stop", "key": agent["zombie_id"]}
        await browser.post(f"{home}/tree/zombie", data=wish)
        gone = await browser.post(f"{home}/tree/zombie", data=wish)
    told = [line["action"] for line in await lines(world, action="job.*")]
    [ended] = await lines(world, "/v1/admin/audit", action="actor.*")

    assert told[::-1] == ["job.cancel", "job.pause", "job.stop", "job.replay"]
    assert (ended["action"], ended["target"]) == ("actor.stop", f"zombie/{agent['zombie_id']}")
    assert (gone.status_code, "UZ-ACTOR-001" in gone.text) == (404, True)


async def test_it_is_paged_and_filtered_and_each_tenant_has_its_own(world: HttpWorld) -> None:
    for name in ("a", "b", "c"):
        await world.post("/v1/api-keys", {"key_name": name})
    await world.call("PUT", f"{world.ws}/scoring", json={"context_tokens": 1024})
    await settle_tenant_b(world)
    theirs = world.user_token(Role.ADMIN, tenant_id=TENANT_B)
    query = {"limit": "2", "action": "api_key.*"}
    page = (await world.get("/v1/audit", params=query)).json()
    rest = (await world.get("/v1/audit", params={**query, "cursor": page["next_cursor"]})).json()
    seen = [line["facts"]["key_name"] for line in (*page["items"], *rest["items"])]
    whole = await exported(world)
    wrong = await world.get("/v1/audit", params={"cursor": "W10"})

    assert (seen, rest["next_cursor"]) == (["c", "b", "a"], None)
    assert (page["head_seq"], page["head_hash"]) == (4, whole[-1]["hash"])
    assert (await world.get("/v1/audit", theirs)).json()["items"] == []
    assert (await world.get("/v1/audit/export", theirs)).content == b""
    assert [line["seq"] for line in await lines(world, until=str(whole[0]["at"]))] == []
    assert (wrong.status_code, wrong.json()["error_code"]) == (400, "UZ-REQ-001")


async def test_a_sign_in_by_a_link_is_told_of_the_person(world: HttpWorld) -> None:
    made = (await world.post("/v1/members", {"name": "Ann", "role": "user"}, world.admin_token())).json()
    path = made["sign_in_url"].partition("/auth/")[2]
    answer = await world.call("POST", f"/auth/{path}", None, headers={"sec-fetch-site": "same-origin"})
    [begun] = await lines(world, action="session.*")

    assert answer.status_code == 303, answer.text
    assert (begun["actor"], begun["name"]) == (f"user:{made['member']['id']}", "Ann")
    assert begun["target"] == made["member"]["id"]
    assert path.rpartition("/")[2] not in str(begun)


def test_what_only_looks_is_not_told() -> None:
    looks = {one.name for one in OPERATIONS if one.audit is not None and one.method == "GET"}
    assert looks == {"arrive", "arrive_from_chat"}, "people come back from elsewhere by a redirect"
