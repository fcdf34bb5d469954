"""What platform admins see of the fleet, and what every caller is told of itself."""

import re
from typing import Any
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.records.tenants import PlanTier, Tenant
from sexton_storage.records.users import Role, User
from sexton_storage.records.workspaces import Workspace
from tests.worlds.browser import visiting
from tests.worlds.http import HttpWorld
from tests.worlds.samples import agent_files

UNKNOWN = "019363b0-0000-7000-8000-00000000ffff"


async def runner_id_of(world: HttpWorld, token: str) -> str:
    return str((await world.get("/v1/runners/me", token)).json()["id"])


async def history(world: HttpWorld, runner_id: str, **query: Any) -> dict[str, Any]:
    path = f"/v1/fleet/runners/{runner_id}/events"
    answer = await world.get(path, world.admin_token(), params=query)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


async def test_a_runners_history_says_who_did_what_and_what_it_held(world: HttpWorld) -> None:
    _, token, lease = await world.working()
    runner_id = await runner_id_of(world, token)
    world.pass_ms(1)
    path = f"/v1/fleet/runners/{runner_id}"
    drained = await world.call("PATCH", path, world.admin_token(), json={"admin_state": "draining"})
    assert drained.json()["admin_state"] == "draining"

    world.pass_ms(1)
    released = f"/v1/runners/me/leases/{lease['lease_id']}/release"
    assert (await world.post(released, {"reason": "draining"}, token)).status_code == 204
    assert (await world.post("/v1/runners/me/heartbeats", {}, token)).json()["status"] == "stop"

    items = (await history(world, runner_id))["items"]
    assert [item["kind"] for item in items] == [
        "admin_state_changed",
        "admin_state_changed",
        "lease",
        "enrolled",
    ]
    assert items[0]["data"] == {"from": "draining", "to": "drained", "by": "system:drain"}

    user_id = world.installation.user_id
    assert items[1]["data"] == {"from": "active", "to": "draining", "by": f"user:{user_id}"}
    assert items[2]["data"]["lease_id"] == lease["lease_id"]
    assert items[2]["data"]["status"] == "released"
    assert items[3]["data"]["host_id"] == "h1"


async def test_a_runner_tells_its_release_and_a_lease_when_it_was_renewed(world: HttpWorld) -> None:
    _, token, lease = await world.working()
    [granted] = (await world.get("/v1/fleet/leases", world.admin_token())).json()["items"]
    world.pass_ms(2000)
    usage = {"input_tokens": 1, "cached_input_tokens": 0, "output_tokens": 1}
    item = {"lease_id": lease["lease_id"], "fencing_token": lease["fencing_token"], **usage}
    renewed = await world.post("/v1/runners/me/leases:renew", {"leases": [item]}, token)
    seen = []
    for said in ("sexton-runner/1 \u00e9", "sexton-runner/2", "sexton-runner/2", "x" * 500):
        named = {"user-agent": said.encode("latin-1")}
        beat = await world.post("/v1/runners/me/heartbeats", {}, token, headers=named)
        assert beat.status_code == 200, beat.text

        [runner] = (await world.get("/v1/fleet/runners", world.admin_token())).json()["items"]
        seen.append(runner["release"])
    [held] = (await world.get("/v1/fleet/leases", world.admin_token())).json()["items"]

    assert renewed.status_code == 200, renewed.text
    assert seen == ["sexton-runner/1", "sexton-runner/2", "sexton-runner/2", "x" * 128]
    assert (granted["renewed_at"], granted["host_id"]) == (None, "h1")
    assert held["renewed_at"] - held["granted_at"] >= 2000
    assert held["slack_ms"] > granted["slack_ms"] - 2000


async def test_a_runners_history_has_pages_and_its_cursors_are_its_own(world: HttpWorld) -> None:
    token = await world.enrol()
    runner_id = await runner_id_of(world, token)
    path = f"/v1/fleet/runners/{runner_id}"
    for state in ("cordoned", "active", "cordoned"):
        world.pass_ms(1)
        await world.call("PATCH", path, world.admin_token(), json={"admin_state": state})
    whole = (await history(world, runner_id))["items"]
    first = await history(world, runner_id, limit=3)
    rest = await history(world, runner_id, limit=3, cursor=first["next_cursor"])
    assert first["items"] + rest["items"] == whole
    assert (len(whole), rest["next_cursor"]) == (4, None)

    other = await runner_id_of(world, await world.enrol("h2"))
    for cursor in (first["next_cursor"], "nonsense"):
        bad = await world.get(
            f"/v1/fleet/runners/{other}/events", world.admin_token(), params={"cursor": cursor}
        )
        assert (bad.status_code, bad.json()["error_code"]) == (400, "UZ-REQ-001")
    gone = await world.get(f"/v1/fleet/runners/{UNKNOWN}/events", world.admin_token())
    assert (gone.status_code, gone.json()["error_code"]) == (404, "UZ-RUN-014")


async def test_live_leases_are_listed_with_what_is_left_of_them(world: HttpWorld) -> None:
    empty = await world.get("/v1/fleet/leases", world.admin_token())
    assert empty.json()["items"] == []

    zombie, token, lease = await world.working()
    world.pass_ms(12_000)
    listed = (await world.get("/v1/fleet/leases", world.admin_token())).json()
    (item,) = listed["items"]
    assert (item["lease_id"], item["zombie_id"]) == (lease["lease_id"], zombie["zombie_id"])
    assert item["zombie_name"] == zombie["name"] != ""
    assert item["runner_id"] == await runner_id_of(world, token)
    assert item["slack_ms"] == lease["lease_expires_at"] - listed["now"] <= 18_000
    assert not item["cancelling"]


async def test_the_page_names_the_agent_of_each_lease_and_links_to_those_of_the_own_tenant(
    world: HttpWorld,
) -> None:
    own, token, _ = await world.working()
    now, new_id = world.actors_world.now_ms(), world.actors_world.new_id
    tenant = Tenant(new_id(), "other", PlanTier.FREE, 10**9, None, now, now)
    workspace = Workspace(new_id(), tenant.id, "theirs", paused=False, created_at=now)
    user = User(new_id(), tenant.id, "other", Role.ADMIN, platform_admin=False, created_at=now)
    await world.storage.tenants.create(tenant, workspace, user)
    theirs = f"/v1/workspaces/{workspace.id}/zombies"
    admin = world.user_token(Role.ADMIN, tenant_id=tenant.id)
    made = (await world.post(theirs, agent_files("visitor"), admin)).json()
    await world.post(f"{theirs}/{made['zombie_id']}/messages", {"message": "hello"}, admin)
    lease = await world.lease(token)
    zombies = world.memory.tables.zombies
    other = zombies[UUID(made["zombie_id"])]
    zombies[other.id] = replace(other, name="<b>x</b>")
    async with visiting(world) as visitor:
        await visitor.sign_in()
        shown = (await visitor.get(f"/console/{world.installation.workspace_id}/fleet")).text
    page = f"/console/{world.installation.workspace_id}/agents/{own['zombie_id']}"
    cells = re.findall(r'<td class="name">(.*?)</td>', shown)

    assert lease["event"]["zombie_id"] == made["zombie_id"]
    assert sorted(cells) == ["&lt;b&gt;x&lt;/b&gt;", f'<a href="{page}">doctor</a>']


# --- who am I -----------------------------------------------------------------------------------------------


async def test_a_key_is_told_its_own_name_and_role(world: HttpWorld) -> None:
    made = (await world.post("/v1/api-keys", {"key_name": "robot", "role": "user"})).json()
    told = (await world.get("/v1/whoami", made["key"])).json()
    del told["request_id"]

    assert told == {
        "kind": "api_key",
        "id": made["id"],
        "name": "robot",
        "role": "user",
        "tenant_id": str(world.installation.tenant_id),
        "plan_tier": "enterprise",
        "platform_admin": False,
        "workspace_id": None,
        "member_id": str(world.installation.user_id),
        "expires_at": None,
    }


async def test_a_user_is_told_what_the_token_says_and_the_server_believes(world: HttpWorld) -> None:
    admin = (await world.get("/v1/whoami", world.admin_token())).json()
    assert (admin["kind"], admin["role"], admin["platform_admin"]) == ("user", "admin", True)
    assert UUID(admin["id"]) == world.installation.user_id

    workspace_id = world.installation.workspace_id
    limited = world.user_token(Role.OPERATOR, workspace_id=workspace_id)
    told = (await world.get("/v1/whoami", limited)).json()
    assert (told["role"], told["workspace_id"], told["name"]) == ("operator", str(workspace_id), "u1")
