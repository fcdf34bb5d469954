"""Keys of platform admins, and sign-ins of terminals that last."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from msgspec.structs import replace

from sexton_storage.records.users import Role
from tests.worlds.browser import Visitor, visiting
from tests.worlds.http import HttpWorld, open_http_world

UNKNOWN = "01890000-0000-7000-8000-000000000000"

DAY_MS = 24 * 3600 * 1000
PLATFORM = "/v1/fleet/queue"


async def made(world: HttpWorld, token: str, **body: Any) -> tuple[int, dict[str, Any]]:
    answer = await world.post("/v1/api-keys", body, token)
    return answer.status_code, answer.json()


async def test_a_platform_admin_makes_a_key_that_reaches_the_platform_until_it_is_revoked() -> None:
    async with open_http_world() as world:
        status, key = await made(world, world.admin_token(), key_name="top", platform_admin=True, role="user")
        assert status == 201, key
        assert (await world.get(PLATFORM, key["key"])).status_code == 200

        told = (await world.get("/v1/whoami", key["key"])).json()
        assert (told["kind"], told["role"], told["platform_admin"]) == ("api_key", "user", True)

        items = (await world.get("/v1/api-keys", world.admin_token())).json()["items"]
        assert [item["platform_admin"] for item in items if item["key_name"] == "top"] == [True]
        assert key["key"] not in str(items)

        ended = await world.call(
            "PATCH", f"/v1/api-keys/{key['id']}", world.admin_token(), json={"active": False}
        )
        assert ended.status_code == 200
        assert (await world.get(PLATFORM, key["key"])).json()["error_code"] == "UZ-APIKEY-004"


async def test_nobody_makes_a_key_above_himself() -> None:
    async with open_http_world() as world:
        mere_admin = world.user_token(Role.ADMIN)
        status, refused = await made(world, mere_admin, key_name="a", role="admin", platform_admin=True)
        assert (status, refused["error_code"]) == (403, "UZ-AUTH-021")

        limited = world.user_token(
            Role.ADMIN, workspace_id=world.installation.workspace_id, platform_admin=True
        )
        status, refused = await made(world, limited, key_name="b", role="user", platform_admin=True)
        assert (status, refused["error_code"]) == (403, "UZ-AUTH-001")

        _, low = await made(world, world.admin_token(), key_name="c", role="operator", platform_admin=True)
        status, refused = await made(world, low["key"], key_name="d", role="admin")
        assert (status, refused["error_code"]) == (403, "UZ-AUTH-009")

        status, child = await made(world, low["key"], key_name="e", platform_admin=True)
        assert status == 201, child

        _, plain = await made(world, world.admin_token(), key_name="f", role="admin")
        status, refused = await made(world, plain["key"], key_name="g", role="user", platform_admin=True)
        assert (status, refused["error_code"]) == (403, "UZ-AUTH-021")


@asynccontextmanager
async def signed_in() -> AsyncIterator[tuple[HttpWorld, Visitor]]:
    async with open_http_world() as world, visiting(world) as visitor:
        yield world, await visitor.sign_in()


async def device_token(world: HttpWorld, visitor: Visitor) -> str:
    """What the approval page makes for a terminal."""
    session = (await world.post("/v1/auth/sessions", {}, None)).json()
    return await visitor.token(session_id=session["session_id"])


async def lasting(world: HttpWorld, token: str) -> dict[str, Any]:
    answer = await world.post("/v1/auth/sign-ins", {"name": "laptop"}, token)
    assert answer.status_code == 201, answer.text
    kept: dict[str, Any] = answer.json()
    return kept


async def renewed(world: HttpWorld, refresh_token: str) -> tuple[int, dict[str, Any]]:
    answer = await world.post("/v1/auth/tokens", {"refresh_token": refresh_token}, None)
    return answer.status_code, answer.json()


async def test_a_terminal_renews_its_token_for_weeks_and_gets_the_role_that_its_user_has_now() -> None:
    async with signed_in() as (world, visitor):
        kept = await lasting(world, await device_token(world, visitor))
        for _ in range(8):
            status, first = await renewed(world, kept["refresh_token"])
            assert status == 200, first
            assert (await world.get(PLATFORM, first["token"])).status_code == 200
            world.pass_ms(1000)  # A token of another second.
            _, unused = await renewed(world, kept["refresh_token"])
            world.pass_ms(20 * DAY_MS)
            assert (await world.get(PLATFORM, unused["token"])).json()["error_code"] == "UZ-AUTH-003"
        users = world.memory.tables.users
        user_id = world.installation.user_id
        users[user_id] = replace(users[user_id], role=Role.USER, platform_admin=False)
        _, lower = await renewed(world, kept["refresh_token"])
        told = (await world.get("/v1/whoami", lower["token"])).json()
        assert (told["role"], told["platform_admin"]) == ("user", False)

        world.pass_ms(30 * DAY_MS)
        status, refused = await renewed(world, kept["refresh_token"])
        assert (status, refused["error_code"]) == (401, "UZ-AUTH-002")


async def test_a_sign_in_is_listed_and_its_end_ends_its_tokens() -> None:
    async with signed_in() as (world, visitor):
        kept = await lasting(world, await device_token(world, visitor))
        _, fresh = await renewed(world, kept["refresh_token"])
        token = fresh["token"]
        listed = (await world.get("/v1/auth/sign-ins", token)).json()
        assert [(item["kind"], item["name"], item["current"]) for item in listed["items"]] == [
            ("terminal", "laptop", True),
            ("browser", "", False),
        ]
        assert kept["refresh_token"] not in str(listed)

        path = f"/v1/auth/sign-ins/{kept['id']}"
        other = world.user_token(Role.ADMIN)
        assert (await world.call("DELETE", path, other)).json()["error_code"] == "UZ-AUTH-001"

        unknown = await world.call("DELETE", f"/v1/auth/sign-ins/{UNKNOWN}", token)
        assert unknown.json()["error_code"] == "UZ-AUTH-005"
        assert (await world.call("DELETE", path, token)).status_code == 204
        assert (await world.get("/v1/whoami", token)).json()["error_code"] == "UZ-AUTH-002"
        assert (await renewed(world, kept["refresh_token"]))[0] == 401
        assert await visitor.is_signed_in()


async def test_only_a_token_that_was_approved_for_a_terminal_is_made_to_last_and_once() -> None:
    async with signed_in() as (world, visitor):
        device = await device_token(world, visitor)
        kept = await lasting(world, device)
        _, fresh = await renewed(world, kept["refresh_token"])
        for token in (fresh["token"], await visitor.token(), world.admin_token(), world.api_key):
            answer = await world.post("/v1/auth/sign-ins", {}, token)
            assert answer.json()["error_code"] == "UZ-AUTH-001"
        again = await world.post("/v1/auth/sign-ins", {}, device)

        assert (again.status_code, again.json()["error_code"]) == (410, "UZ-AUTH-012")


async def test_a_refresh_token_is_no_cookie_and_no_bearer_and_a_cookie_renews_nothing() -> None:
    async with signed_in() as (world, visitor):
        kept = await lasting(world, await device_token(world, visitor))
        refresh = kept["refresh_token"]
        assert (await world.get("/v1/whoami", refresh)).json()["error_code"] == "UZ-AUTH-002"

        cookie = next(iter(visitor.cookies.values()))
        for value in (cookie, f"zmb_r_{cookie}", "", "x" * 200, refresh[:-1]):
            assert (await renewed(world, value))[0] in {400, 401}
        visitor.client.cookies.clear()
        for value in (refresh, refresh.removeprefix("zmb_r_")):
            visitor.client.cookies.set("sexton", value)
            assert not await visitor.is_signed_in()
            visitor.client.cookies.clear()
