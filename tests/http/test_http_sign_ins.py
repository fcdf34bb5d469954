"""Keys of platform admins, and sign-ins of terminals that last."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from msgspec.structs import replace

from sexton_storage.records.users import Role
from tests.http.house import House, open_house
from tests.http.visitor import Visitor, visiting

UNKNOWN = "01890000-0000-7000-8000-000000000000"

DAY_MS = 24 * 3600 * 1000
PLATFORM = "/v1/fleet/queue"


async def made(house: House, token: str, **body: Any) -> tuple[int, dict[str, Any]]:
    answer = await house.post("/v1/api-keys", body, token)
    return answer.status_code, answer.json()


async def test_a_platform_admin_makes_a_key_that_reaches_the_platform_until_it_is_revoked() -> None:
    async with open_house() as house:
        status, key = await made(house, house.admin_token(), key_name="top", platform_admin=True, role="user")
        assert status == 201, key
        assert (await house.get(PLATFORM, key["key"])).status_code == 200
        told = (await house.get("/v1/whoami", key["key"])).json()
        assert (told["kind"], told["role"], told["platform_admin"]) == ("api_key", "user", True)
        items = (await house.get("/v1/api-keys", house.admin_token())).json()["items"]
        assert [item["platform_admin"] for item in items if item["key_name"] == "top"] == [True]
        assert key["key"] not in str(items)
        ended = await house.call(
            "PATCH", f"/v1/api-keys/{key['id']}", house.admin_token(), json={"active": False}
        )
        assert ended.status_code == 200
        assert (await house.get(PLATFORM, key["key"])).json()["error_code"] == "UZ-APIKEY-004"


async def test_nobody_makes_a_key_above_himself() -> None:
    async with open_house() as house:
        mere_admin = house.user_token(Role.ADMIN)
        status, refused = await made(house, mere_admin, key_name="a", role="admin", platform_admin=True)
        assert (status, refused["error_code"]) == (403, "UZ-AUTH-021")
        limited = house.user_token(
            Role.ADMIN, workspace_id=house.installation.workspace_id, platform_admin=True
        )
        status, refused = await made(house, limited, key_name="b", role="user", platform_admin=True)
        assert (status, refused["error_code"]) == (403, "UZ-AUTH-001")
        _, low = await made(house, house.admin_token(), key_name="c", role="operator", platform_admin=True)
        status, refused = await made(house, low["key"], key_name="d", role="admin")
        assert (status, refused["error_code"]) == (403, "UZ-AUTH-009")
        status, child = await made(house, low["key"], key_name="e", platform_admin=True)
        assert status == 201, child
        _, plain = await made(house, house.admin_token(), key_name="f", role="admin")
        status, refused = await made(house, plain["key"], key_name="g", role="user", platform_admin=True)
        assert (status, refused["error_code"]) == (403, "UZ-AUTH-021")


@asynccontextmanager
async def signed_in() -> AsyncIterator[tuple[House, Visitor]]:
    async with open_house() as house, visiting(house) as visitor:
        yield house, await visitor.sign_in()


async def device_token(house: House, visitor: Visitor) -> str:
    """What the approval page makes for a terminal."""
    session = (await house.post("/v1/auth/sessions", {}, None)).json()
    return await visitor.token(session_id=session["session_id"])


async def lasting(house: House, token: str) -> dict[str, Any]:
    answer = await house.post("/v1/auth/sign-ins", {"name": "laptop"}, token)
    assert answer.status_code == 201, answer.text
    kept: dict[str, Any] = answer.json()
    return kept


async def renewed(house: House, refresh_token: str) -> tuple[int, dict[str, Any]]:
    answer = await house.post("/v1/auth/tokens", {"refresh_token": refresh_token}, None)
    return answer.status_code, answer.json()


async def test_a_terminal_renews_its_token_for_weeks_and_gets_the_role_that_its_user_has_now() -> None:
    async with signed_in() as (house, visitor):
        kept = await lasting(house, await device_token(house, visitor))
        for _ in range(8):
            status, first = await renewed(house, kept["refresh_token"])
            assert status == 200, first
            assert (await house.get(PLATFORM, first["token"])).status_code == 200
            house.pass_ms(1000)  # A token of another second.
            _, unused = await renewed(house, kept["refresh_token"])
            house.pass_ms(20 * DAY_MS)
            assert (await house.get(PLATFORM, unused["token"])).json()["error_code"] == "UZ-AUTH-003"
        users = house.memory.tables.users
        user_id = house.installation.user_id
        users[user_id] = replace(users[user_id], role=Role.USER, platform_admin=False)
        _, lower = await renewed(house, kept["refresh_token"])
        told = (await house.get("/v1/whoami", lower["token"])).json()
        assert (told["role"], told["platform_admin"]) == ("user", False)
        house.pass_ms(30 * DAY_MS)
        status, refused = await renewed(house, kept["refresh_token"])
        assert (status, refused["error_code"]) == (401, "UZ-AUTH-002")


async def test_a_sign_in_is_listed_and_its_end_ends_its_tokens() -> None:
    async with signed_in() as (house, visitor):
        kept = await lasting(house, await device_token(house, visitor))
        _, fresh = await renewed(house, kept["refresh_token"])
        token = fresh["token"]
        listed = (await house.get("/v1/auth/sign-ins", token)).json()
        assert [(item["kind"], item["name"], item["current"]) for item in listed["items"]] == [
            ("terminal", "laptop", True),
            ("browser", "", False),
        ]
        assert kept["refresh_token"] not in str(listed)
        path = f"/v1/auth/sign-ins/{kept['id']}"
        other = house.user_token(Role.ADMIN)
        assert (await house.call("DELETE", path, other)).json()["error_code"] == "UZ-AUTH-001"
        unknown = await house.call("DELETE", f"/v1/auth/sign-ins/{UNKNOWN}", token)
        assert unknown.json()["error_code"] == "UZ-AUTH-005"
        assert (await house.call("DELETE", path, token)).status_code == 204
        assert (await house.get("/v1/whoami", token)).json()["error_code"] == "UZ-AUTH-002"
        assert (await renewed(house, kept["refresh_token"]))[0] == 401
        assert await visitor.is_signed_in()


async def test_only_a_token_that_was_approved_for_a_terminal_is_made_to_last_and_once() -> None:
    async with signed_in() as (house, visitor):
        device = await device_token(house, visitor)
        kept = await lasting(house, device)
        _, fresh = await renewed(house, kept["refresh_token"])
        for token in (fresh["token"], await visitor.token(), house.admin_token(), house.api_key):
            answer = await house.post("/v1/auth/sign-ins", {}, token)
            assert answer.json()["error_code"] == "UZ-AUTH-001"
        again = await house.post("/v1/auth/sign-ins", {}, device)
        assert (again.status_code, again.json()["error_code"]) == (410, "UZ-AUTH-012")


async def test_a_refresh_token_is_no_cookie_and_no_bearer_and_a_cookie_renews_nothing() -> None:
    async with signed_in() as (house, visitor):
        kept = await lasting(house, await device_token(house, visitor))
        refresh = kept["refresh_token"]
        assert (await house.get("/v1/whoami", refresh)).json()["error_code"] == "UZ-AUTH-002"
        cookie = next(iter(visitor.cookies.values()))
        for value in (cookie, f"zmb_r_{cookie}", "", "x" * 200, refresh[:-1]):
            assert (await renewed(house, value))[0] in {400, 401}
        visitor.client.cookies.clear()
        for value in (refresh, refresh.removeprefix("zmb_r_")):
            visitor.client.cookies.set("sexton", value)
            assert not await visitor.is_signed_in()
            visitor.client.cookies.clear()
