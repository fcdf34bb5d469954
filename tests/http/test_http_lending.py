"""Who may lend the workspace's credentials: no user by an agent of theirs, nor by their own approval."""

import sys
from itertools import compress, product
from typing import Any
from uuid import UUID

import httpx2
import pytest

from sexton_http.gateway.replays import FRAMES_A_READ
from sexton_http.identity.tokens import digest
from sexton_storage.postgres import PostgresStorage
from sexton_storage.records.api_keys import ApiKey
from sexton_storage.records.users import Role, User
from tests.worlds.http import HttpWorld, open_http_world_on
from tests.worlds.samples import agent_files

UNKNOWN = "019363b0-0000-7000-8000-00000000ffff"
OWN_HOST, GOOD_HOST = "collector.example.net", "api.example.com"
CREDENTIALS = {"loose": [], "bound": [GOOD_HOST]}
ASK_FIRST = 'gates: {rules: [{tool: message, action: "*", behavior: approve}]}'


WRITERS = (Role.USER, Role.OPERATOR, Role.ADMIN)
"""Who may write agents."""


def as_person(world: HttpWorld, subject: str, role: Role = Role.USER) -> str:
    now_s = world.actors_world.now_ms() / 1000
    tenant_id = world.installation.tenant_id
    return world.installation.issuer.mint(subject=subject, tenant_id=tenant_id, role=role, now_s=now_s)


async def install(world: HttpWorld, name: str, config: str, token: str) -> dict[str, Any]:
    answer = await world.post(f"{world.ws}/zombies", agent_files(name, config), token)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def steer(world: HttpWorld, zombie: dict[str, Any], token: str = "") -> str:
    answer = await world.post(f"{of(world, zombie)}/messages", {"message": "go"}, token)
    assert answer.status_code == 202, answer.text
    event_id: str = answer.json()["event_id"]
    return event_id


def of(world: HttpWorld, zombie: dict[str, Any]) -> str:
    return f"{world.ws}/zombies/{zombie['zombie_id']}"


async def keep_credentials(world: HttpWorld) -> None:
    await world.keep_secret()
    for name, hosts in CREDENTIALS.items():
        body = {"name": name, "data": {"token": f"t-{name}"}, "hosts": hosts}
        assert (await world.post(f"{world.ws}/credentials", body)).status_code == 201


async def leases(world: HttpWorld, runner: str) -> dict[str, dict[str, Any]]:
    """All that the runner is given until nothing comes any more, by agent."""
    found: dict[str, dict[str, Any]] = {}
    while True:
        answer = await world.post("/v1/runners/me/leases", {"max": 64, "wait_ms": 1500}, runner)
        if not answer.json()["leases"]:
            return found
        found |= {lease["event"]["zombie_id"]: lease for lease in answer.json()["leases"]}


def lent(lease: dict[str, Any] | None, credential: str) -> str:
    if lease is None:
        return "waits"
    policy = lease["policy"]
    if credential not in policy["secrets_map"]:
        return "not lent"
    return "to " + (", ".join(policy["secret_hosts"][credential]) or "no host")


def code(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json().get("error_code", "") if answer.content else ""


async def grants(world: HttpWorld, **query: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    params = dict(query)
    while True:
        page = (await world.get(f"{world.ws}/credential-grants", params=params)).json()
        items += page["items"]
        if page["next_cursor"] is None:
            return items
        params["cursor"] = page["next_cursor"]


Row = tuple[Role, str, str, dict[str, Any]]
"""Who installs it, the credential that it names, the host that it may reach, and the agent."""


async def an_agent_of_each_kind(world: HttpWorld) -> list[Row]:
    rows: list[Row] = []
    for role, credential, host in product(WRITERS, CREDENTIALS, (OWN_HOST, GOOD_HOST)):
        config = f"credentials: [{credential}]\nnetwork: {{allow: [{host}]}}\ntools: [http_request]"
        token = as_person(world, "u1", role)
        rows.append((role, credential, host, await install(world, f"agent-{len(rows)}", config, token)))
    return rows


async def approve_as_an_operator_and_not_as_a_user(world: HttpWorld, waiting: list[dict[str, Any]]) -> None:
    for grant in waiting:
        path = f"{world.ws}/zombies/{grant['zombie_id']}/credential-grants/{grant['credential']}"
        refused = await world.call("PATCH", path, as_person(world, "u1"), json={"status": "approved"})
        assert code(refused) == (403, "UZ-AUTH-009")
        assert (await world.call("PATCH", path, json={"status": "approved"})).status_code == 200


async def test_the_lending_matrix(postgres_storage: PostgresStorage) -> None:
    async with open_http_world_on(postgres_storage) as world:
        await keep_credentials(world)
        runner = await world.enrol(slots=256)
        rows = await an_agent_of_each_kind(world)
        ids = [row[3]["zombie_id"] for row in rows]
        events = {row[3]["zombie_id"]: await steer(world, row[3]) for row in rows}

        first = await leases(world, runner)
        waiting = await grants(world, status="pending", limit="3")
        shown = [(await world.get(of(world, row[3]))).json()["waiting_for"] for row in rows]
        await approve_as_an_operator_and_not_as_a_user(world, waiting)
        second = first | await leases(world, runner)

        lines = [
            "author's role | credential | its hosts | agent's host | at once | once an operator approved"
        ]
        for (role, credential, host, _), agent in zip(rows, ids, strict=True):
            hosts = ", ".join(CREDENTIALS[credential]) or "none named"
            outcome = lent(first.get(agent), credential), lent(second.get(agent), credential)
            lines.append(" | ".join((role.value, credential, hosts, host, *outcome)))
            goes = f"to {GOOD_HOST if credential == 'bound' else host}"
            assert outcome == ("waits" if role is Role.USER else goes, goes)
        sys.stdout.write("\n" + "\n".join(lines) + "\n")

        users = [row[0] is Role.USER for row in rows]
        assert {grant["zombie_id"] for grant in waiting} == set(compress(ids, users))
        assert {grant["requested_by"] for grant in waiting} == {"user:u1"}
        assert shown == ["grant" if one else None for one in users]

        await shows_the_wait(world, rows[0][3], events)


async def shows_the_wait(world: HttpWorld, zombie: dict[str, Any], events: dict[str, str]) -> None:
    frames = await world.storage.frames.read(UUID(zombie["zombie_id"]), after=0, limit=FRAMES_A_READ)
    waits, approved = [frame for frame in frames if frame.kind.startswith("grant_")]
    assert (waits.kind, str(waits.event_id)) == ("grant_pending", events[zombie["zombie_id"]])
    assert waits.data == {"credentials": ["loose"], "error_code": "UZ-GRANT-002"}
    assert (approved.kind, approved.data["status"]) == ("grant_changed", "approved")
    assert approved.data["hosts"] == [OWN_HOST]


async def test_a_grant_of_a_credential_is_decided_and_taken_back(world: HttpWorld) -> None:
    await keep_credentials(world)
    mine = await install(world, "mine", "credentials: [loose]", as_person(world, "u1"))
    path = f"{of(world, mine)}/credential-grants"
    mine_only = f"{world.ws}/credential-grants?zombie_id={mine['zombie_id']}"
    [asked] = (await world.get(mine_only, as_person(world, "u1"))).json()["items"]
    assert (asked["status"], asked["requested_by"], asked["decided_by"]) == ("pending", "user:u1", None)

    async def say(status: str, credential: str = "loose") -> tuple[int, str]:
        return code(await world.call("PATCH", f"{path}/{credential}", json={"status": status}))

    assert await say("denied") == (200, "")
    assert await say("revoked") == (409, "UZ-REQ-009")
    assert await say("approved") == (200, "")
    assert await say("approved") == (200, "")
    assert await say("denied") == (404, "UZ-APPROVAL-002")
    assert code(await world.call("DELETE", f"{path}/loose")) == (204, "")
    assert code(await world.call("DELETE", f"{path}/loose")) == (409, "UZ-REQ-009")
    assert code(await world.call("DELETE", f"{path}/bound")) == (404, "UZ-APPROVAL-002")

    await steer(world, mine)
    assert await leases(world, await world.enrol()) == {}

    nowhere = f"{world.ws}/zombies/{UNKNOWN}/credential-grants"
    assert await grants(world, zombie_id=UNKNOWN) == []
    assert code(await world.call("PATCH", f"{nowhere}/loose", json={"status": "approved"})) == (
        404,
        "UZ-ZMB-009",
    )
    assert code(await world.call("DELETE", f"{nowhere}/loose")) == (404, "UZ-ZMB-009")

    await world.call("PATCH", of(world, mine), json={"status": "killed"})
    assert await say("approved") == (409, "UZ-ZMB-010")
    assert code(await world.call("DELETE", f"{path}/loose")) == (409, "UZ-ZMB-010")


async def test_an_update_by_an_operator_grants_what_it_names_and_not_what_was_denied(
    world: HttpWorld,
) -> None:
    await keep_credentials(world)
    mine = await install(world, "mine", "credentials: [loose, bound]", as_person(world, "u1"))
    path = f"{of(world, mine)}/credential-grants"
    await world.call("PATCH", f"{path}/bound", json={"status": "denied"})
    files = agent_files("mine", "credentials: [loose, bound]\ntools: [http_request]")

    changed = await world.call("PATCH", of(world, mine), json=files)
    assert changed.status_code == 200, changed.text

    items = await grants(world, zombie_id=mine["zombie_id"])
    assert {item["credential"]: item["status"] for item in items} == {"loose": "approved", "bound": "denied"}


# --- approvals ----------------------------------------------------------------------------------------------


async def gate_of(world: HttpWorld, event_id: str) -> dict[str, Any]:
    items = (await world.get(f"{world.ws}/approvals", params={"status": "pending"})).json()["items"]
    [gate] = [item for item in items if item["event_id"] == event_id]
    found: dict[str, Any] = gate
    return found


@pytest.mark.parametrize("case", ["wrote", "started", "resumed"])
async def test_a_user_approves_nothing_that_they_wrote_or_started(world: HttpWorld, case: str) -> None:
    await world.keep_secret()
    me, other = as_person(world, "u1"), as_person(world, "u2")
    zombie = await install(world, "mine", ASK_FIRST, me if case == "wrote" else "")
    event_id = await steer(world, zombie, "" if case == "wrote" else me)
    if case == "resumed":
        gate = await gate_of(world, event_id)
        assert (await world.post(f"{world.ws}/approvals/{gate['gate_id']}:deny")).status_code == 200
        again = await world.post(f"{of(world, zombie)}/events/{event_id}/replay")
        event_id = again.json()["event_id"]
    gate = await gate_of(world, event_id)
    approve = f"{world.ws}/approvals/{gate['gate_id']}:approve"

    refused = await world.post(approve, token=me)

    assert code(refused) == (403, "UZ-APPROVAL-006")
    assert (await world.post(approve, token=other)).status_code == 200


@pytest.mark.parametrize("case", ["wrote", "started"])
async def test_a_person_and_their_key_are_one(world: HttpWorld, case: str) -> None:
    await world.keep_secret()
    person = User(
        UUID(int=77), world.installation.tenant_id, "local:ann", Role.USER, platform_admin=False, created_at=0
    )
    world.memory.tables.users[person.id] = person
    key = f"zmb_t_{'7' * 64}"
    await world.storage.api_keys.create(
        ApiKey(UUID(int=78), person.tenant_id, "anns", "", Role.USER, digest(key), 0, owner_id=person.id)
    )
    me = as_person(world, str(person.id))
    zombie = await install(world, "mine", ASK_FIRST, key if case == "wrote" else "")
    gate = await gate_of(world, await steer(world, zombie, "" if case == "wrote" else me))

    refused = await world.post(
        f"{world.ws}/approvals/{gate['gate_id']}:approve", token=me if case == "wrote" else key
    )

    assert code(refused) == (403, "UZ-APPROVAL-006")


async def test_a_user_may_deny_their_own_and_an_operator_may_approve_theirs(world: HttpWorld) -> None:
    await world.keep_secret()
    me, operator = as_person(world, "u1"), as_person(world, "o1", Role.OPERATOR)
    zombie = await install(world, "mine", ASK_FIRST, me)
    gate = await gate_of(world, await steer(world, zombie, me))
    assert (await world.post(f"{world.ws}/approvals/{gate['gate_id']}:deny", token=me)).status_code == 200

    zombie = await install(world, "theirs", ASK_FIRST, operator)
    gate = await gate_of(world, await steer(world, zombie, operator))
    approved = await world.post(f"{world.ws}/approvals/{gate['gate_id']}:approve", token=operator)
    assert approved.status_code == 200


async def test_the_approval_token_of_a_users_agent_approves_nothing_until_an_operator_rotates_it(
    world: HttpWorld,
) -> None:
    await keep_credentials(world)
    me = as_person(world, "u1")
    zombie = await install(world, "mine", f"integrations: [loose]\n{ASK_FIRST}", me)
    gate = await gate_of(world, await steer(world, zombie))
    asked = await world.post(
        f"{of(world, zombie)}/integration-requests", {"service": "loose", "reason": "please"}, me
    )
    hook = f"/v1/webhooks/{zombie['zombie_id']}"
    grant = {"grant_id": asked.json()["grant_id"], "decision": "approve"}
    run = {"approval_id": gate["gate_id"], "decision": "approve"}

    for path, body in (("grant-approval", grant), ("approval", run)):
        refused = await world.post(f"{hook}/{path}", body, zombie["approval_token"])
        assert code(refused) == (403, "UZ-APPROVAL-006")

    rotated = await world.post(f"{of(world, zombie)}/approval-token")
    for path, body in (("grant-approval", grant), ("approval", run)):
        assert (await world.post(f"{hook}/{path}", body, rotated.json()["approval_token"])).status_code == 200
