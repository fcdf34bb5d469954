"""What platform admins see of the fleet, and what every caller is told of itself."""

from typing import Any
from uuid import UUID

from sexton_storage.records.users import Role
from tests.http.house import House

UNKNOWN = "019363b0-0000-7000-8000-00000000ffff"


async def runner_id_of(house: House, token: str) -> str:
    return str((await house.get("/v1/runners/me", token)).json()["id"])


async def history(house: House, runner_id: str, **query: Any) -> dict[str, Any]:
    path = f"/v1/fleet/runners/{runner_id}/events"
    answer = await house.get(path, house.admin_token(), params=query)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


async def test_a_runners_history_says_who_did_what_and_what_it_held(house: House) -> None:
    _, token, lease = await house.working()
    runner_id = await runner_id_of(house, token)
    house.pass_ms(1)
    path = f"/v1/fleet/runners/{runner_id}"
    drained = await house.call("PATCH", path, house.admin_token(), json={"admin_state": "draining"})
    assert drained.json()["admin_state"] == "draining"
    house.pass_ms(1)
    released = f"/v1/runners/me/leases/{lease['lease_id']}/release"
    assert (await house.post(released, {"reason": "draining"}, token)).status_code == 204
    assert (await house.post("/v1/runners/me/heartbeats", {}, token)).json()["status"] == "stop"
    items = (await history(house, runner_id))["items"]
    assert [item["kind"] for item in items] == [
        "admin_state_changed",
        "admin_state_changed",
        "lease",
        "enrolled",
    ]
    assert items[0]["data"] == {"from": "draining", "to": "drained", "by": "system:drain"}
    user_id = house.installation.user_id
    assert items[1]["data"] == {"from": "active", "to": "draining", "by": f"user:{user_id}"}
    assert items[2]["data"]["lease_id"] == lease["lease_id"]
    assert items[2]["data"]["status"] == "released"
    assert items[3]["data"]["host_id"] == "h1"


async def test_a_runners_history_has_pages_and_its_cursors_are_its_own(house: House) -> None:
    token = await house.enrol()
    runner_id = await runner_id_of(house, token)
    path = f"/v1/fleet/runners/{runner_id}"
    for state in ("cordoned", "active", "cordoned"):
        house.pass_ms(1)
        await house.call("PATCH", path, house.admin_token(), json={"admin_state": state})
    whole = (await history(house, runner_id))["items"]
    first = await history(house, runner_id, limit=3)
    rest = await history(house, runner_id, limit=3, cursor=first["next_cursor"])
    assert first["items"] + rest["items"] == whole
    assert (len(whole), rest["next_cursor"]) == (4, None)
    other = await runner_id_of(house, await house.enrol("h2"))
    for cursor in (first["next_cursor"], "nonsense"):
        bad = await house.get(
            f"/v1/fleet/runners/{other}/events", house.admin_token(), params={"cursor": cursor}
        )
        assert (bad.status_code, bad.json()["error_code"]) == (400, "UZ-REQ-001")
    gone = await house.get(f"/v1/fleet/runners/{UNKNOWN}/events", house.admin_token())
    assert (gone.status_code, gone.json()["error_code"]) == (404, "UZ-RUN-014")


async def test_live_leases_are_listed_with_what_is_left_of_them(house: House) -> None:
    empty = await house.get("/v1/fleet/leases", house.admin_token())
    assert empty.json()["items"] == []
    zombie, token, lease = await house.working()
    house.pass_ms(12_000)
    listed = (await house.get("/v1/fleet/leases", house.admin_token())).json()
    (item,) = listed["items"]
    assert (item["lease_id"], item["zombie_id"]) == (lease["lease_id"], zombie["zombie_id"])
    assert item["runner_id"] == await runner_id_of(house, token)
    assert item["slack_ms"] == lease["lease_expires_at"] - listed["now"] <= 18_000
    assert not item["cancelling"]


# --- who am I -----------------------------------------------------------------------------------------------


async def test_a_key_is_told_its_own_name_and_role(house: House) -> None:
    made = (await house.post("/v1/api-keys", {"key_name": "robot", "role": "user"})).json()
    told = (await house.get("/v1/whoami", made["key"])).json()
    del told["request_id"]
    assert told == {
        "kind": "api_key",
        "id": made["id"],
        "name": "robot",
        "role": "user",
        "tenant_id": str(house.installation.tenant_id),
        "plan_tier": "enterprise",
        "platform_admin": False,
        "workspace_id": None,
    }


async def test_a_user_is_told_what_the_token_says_and_the_server_believes(house: House) -> None:
    admin = (await house.get("/v1/whoami", house.admin_token())).json()
    assert (admin["kind"], admin["role"], admin["platform_admin"]) == ("user", "admin", True)
    assert UUID(admin["id"]) == house.installation.user_id
    workspace_id = house.installation.workspace_id
    limited = house.user_token(Role.OPERATOR, workspace_id=workspace_id)
    told = (await house.get("/v1/whoami", limited)).json()
    assert (told["role"], told["workspace_id"], told["name"]) == ("operator", str(workspace_id), "u1")
