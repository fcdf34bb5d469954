"""Members: admitted, lowered, suspended, removed and invited again, and what their tokens are worth then."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import httpx2
import pytest
import trio

from sexton_http.answers import Problem
from sexton_http.identity.context import Claims
from sexton_storage.records.users import Role
from sexton_storage.signals import Signal, Topic
from tests.patience import PATIENCE_S
from tests.worlds.browser import Visitor, visiting
from tests.worlds.http import HttpWorld, open_http_world
from tests.worlds.http_agents import at

MEMBERS = "/v1/members"
UNKNOWN = "01890000-0000-7000-8000-000000000000"
Code = tuple[int, str]


async def code(world: HttpWorld, method: str, path: str, token: str = "", body: Any = None) -> Code:
    rest = {} if body is None else {"json": body}
    answer = await world.call(method, path, token, **rest)
    return answer.status_code, answer.json().get("error_code", "") if answer.content else ""


async def invited(world: HttpWorld, name: str, role: str = "user", **more: Any) -> dict[str, Any]:
    answer = await world.post(MEMBERS, {"name": name, "role": role, **more})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def token_of(world: HttpWorld, member: dict[str, Any], role: Role = Role.ADMIN, **more: Any) -> str:
    """A user token of this member as it was minted when the role was another."""
    issuer, now_s = world.installation.issuer, world.actors_world.now_ms() / 1000
    return issuer.mint(
        subject=member["id"], tenant_id=world.installation.tenant_id, role=role, now_s=now_s, **more
    )


class Person:
    """Somebody with everything that can be had: cookie, terminal, user tokens, and keys made with each."""

    def __init__(self, world: HttpWorld, visitor: Visitor, made: dict[str, Any]) -> None:
        self.world, self.visitor, self.made = world, visitor, made
        self.id: str = made["member"]["id"]
        self.tokens: dict[str, str] = {}
        self.refresh = self.agent_key = ""

    async def furnish(self, zombie: dict[str, Any]) -> "Person":
        world = self.world
        entered = await self.visitor.post(self.made["sign_in_url"].removeprefix(world.base_url))
        assert entered.status_code == 303, entered.text
        page = await self.visitor.token()
        session = (await world.post("/v1/auth/sessions", {}, None)).json()["session_id"]
        terminal = await self.visitor.token(session_id=session)
        kept = (await world.post("/v1/auth/sign-ins", {"name": "laptop"}, terminal)).json()
        self.refresh = kept["refresh_token"]
        key = await self.key(page, "by-page")
        self.tokens = {
            "page": page,
            "terminal": terminal,
            "renewed": (await self.renew()).json()["token"],
            "key": key,
            "key made with a key": await self.key(key, "by-key"),
        }
        agent_key = {"zombie_id": zombie["zombie_id"], "name": "a"}
        self.agent_key = (await world.post(f"{world.ws}/agent-keys", agent_key, page)).json()["key"]
        return self

    async def key(self, token: str, name: str) -> str:
        answer = await self.world.post("/v1/api-keys", {"key_name": name, "role": "operator"}, token)
        assert answer.status_code == 201, answer.text
        value: str = answer.json()["key"]
        return value

    async def renew(self) -> httpx2.Response:
        return await self.world.post("/v1/auth/tokens", {"refresh_token": self.refresh}, None)

    async def refusals(self, agent: str) -> set[Code]:
        """What each thing that the person has is answered with."""
        world = self.world
        seen = {await code(world, "GET", "/v1/whoami", token) for token in self.tokens.values()}
        seen.add(await code(world, "GET", f"{agent}/events", self.agent_key))
        renewed = await self.renew()
        seen.add((renewed.status_code, renewed.json().get("error_code", "")))
        seen.add((200, "") if await self.visitor.is_signed_in() else (401, "cookie"))
        return seen


@asynccontextmanager
async def furnished() -> AsyncIterator[tuple[HttpWorld, Person, str]]:
    async with open_http_world(address_rate=None) as world, visiting(world) as visitor:
        zombie = await world.install()
        made = await invited(world, "Ann", "operator")
        yield world, await Person(world, visitor, made).furnish(zombie), at(world, zombie)


LET_IN = {(200, "")}


async def test_a_removed_member_is_refused_with_all_that_he_has() -> None:
    async with furnished() as (world, ann, agent):
        assert await ann.refusals(agent) == LET_IN

        removed = (await world.call("DELETE", f"{MEMBERS}/{ann.id}")).json()
        assert (removed["sign_ins_ended"], removed["keys_ended"], removed["keys_handed_over"]) == (2, 3, 0)
        assert removed["member"]["status"] == "removed"

        told = {signal.id for signal in world.memory.signals.sent if signal.topic is Topic.ACCESS}
        assert UUID(ann.id) in told

        assert await ann.refusals(agent) == {
            (401, "UZ-AUTH-002"),
            (401, "UZ-APIKEY-004"),
            (401, "cookie"),
        } | {(403, "UZ-AUTH-001")}
        assert await code(world, "DELETE", f"{MEMBERS}/{ann.id}") == (200, ""), "again is nothing"

        for body in ({"status": "active"}, {"status": "suspended"}, {"role": "admin"}):
            assert await code(world, "PATCH", f"{MEMBERS}/{ann.id}", body=body) == (409, "UZ-REQ-009")


async def test_a_removed_member_stays_in_the_list_with_what_he_decided_and_in_the_audit_log(
    world: HttpWorld,
) -> None:
    made = await invited(world, "Ann")
    ann, link = made["member"]["id"], made["sign_in_url"].removeprefix(world.base_url)
    async with visiting(world) as visitor:
        await visitor.post(link)
        token = await visitor.token()
    _, runner, lease = await world.working()
    asked = {"action_id": "a1", "tool_name": "http", "action_name": "POST"}
    gate = (await world.post(f"/v1/runners/me/leases/{lease['lease_id']}/gates", asked, runner)).json()
    await world.post(f"{world.ws}/approvals/{gate['gate_id']}:approve", {}, token)
    await world.call("DELETE", f"{MEMBERS}/{ann}")
    listed = (await world.get(MEMBERS, params={"status": "removed"})).json()["items"]
    decided = (await world.get(f"{world.ws}/approvals/{gate['gate_id']}")).json()
    lines = (await world.get("/v1/audit", params={"actor": f"user:{ann}"})).json()["items"]

    assert [(one["id"], one["name"]) for one in listed] == [(ann, "Ann")]
    assert decided["resolved_by"] == f"user:{ann}"
    assert "Ann" not in str(decided)
    assert "Ann" in {line["name"] for line in lines}


async def test_a_suspended_member_is_refused_until_he_is_resumed() -> None:
    async with furnished() as (world, ann, agent):
        answer = await world.call("PATCH", f"{MEMBERS}/{ann.id}", json={"status": "suspended"})
        assert answer.json()["status"] == "suspended"
        assert await ann.refusals(agent) == {(403, "UZ-AUTH-001"), (401, "UZ-AUTH-002"), (401, "cookie")}

        again = await code(world, "POST", f"{MEMBERS}/{ann.id}/invitation", body={})
        assert again == (409, "UZ-REQ-009")

        await world.call("PATCH", f"{MEMBERS}/{ann.id}", json={"status": "active"})
        assert await code(world, "GET", "/v1/whoami", ann.tokens["key"]) == (200, "")
        assert await code(world, "GET", f"{agent}/events", ann.agent_key) == (200, "")
        assert not await ann.visitor.is_signed_in(), "a new link is asked for"


async def test_keys_that_are_handed_over_work_on_as_another_s() -> None:
    async with furnished() as (world, ann, agent):
        bo = (await invited(world, "Bo"))["member"]["id"]
        path = f"{MEMBERS}/{ann.id}?keys=hand_over"
        nobody = await world.call("DELETE", f"{path}&to={UNKNOWN}")
        assert (nobody.status_code, nobody.json()["error_code"]) == (400, "UZ-REQ-001")
        assert await code(world, "DELETE", f"{MEMBERS}/{ann.id}?to={bo}") == (400, "UZ-REQ-001")

        removed = (await world.call("DELETE", f"{path}&to={bo}")).json()
        assert (removed["keys_ended"], removed["keys_handed_over"]) == (0, 3)

        told = (await world.get("/v1/whoami", ann.tokens["key"])).json()
        assert (told["member_id"], told["role"]) == (bo, "user"), "never more than the new owner may"
        assert await code(world, "GET", f"{agent}/events", ann.agent_key) == (200, "")

        listed = (await world.get(f"/v1/api-keys?owner_id={bo}")).json()
        assert {item["key_name"] for item in listed["items"]} == {"by-page", "by-key"}


async def test_a_lower_role_counts_at_once_for_tokens_and_keys_that_are_older() -> None:
    async with furnished() as (world, ann, _):
        patch = await world.call("PATCH", f"{MEMBERS}/{ann.id}", json={"role": "user"})
        assert patch.json()["role"] == "user"

        roles = {(await world.get("/v1/whoami", token)).json()["role"] for token in ann.tokens.values()}
        assert roles == {"user"}
        assert await ann.visitor.is_signed_in()

        await world.call("PATCH", f"{MEMBERS}/{ann.id}", json={"role": "admin"})
        told = (await world.get("/v1/whoami", ann.tokens["page"])).json()
        assert told["role"] == "operator", "a token has no more than it was made with"


async def test_who_was_removed_comes_back_by_an_invitation_only() -> None:
    async with furnished() as (world, ann, _):
        await world.call("DELETE", f"{MEMBERS}/{ann.id}")
        old = (await world.post(f"{MEMBERS}/{ann.id}/invitation", {})).json()
        assert (old["member"]["status"], old["member"]["role"]) == ("active", "user")

        path = old["sign_in_url"].removeprefix(world.base_url)
        await world.call("DELETE", f"{MEMBERS}/{ann.id}")
        assert (await ann.visitor.post(path)).status_code == 410, "the link ended with the removal"

        new = (await world.post(f"{MEMBERS}/{ann.id}/invitation", {"role": "operator"})).json()
        assert (await ann.visitor.post(new["sign_in_url"].removeprefix(world.base_url))).status_code == 303

        told = (await world.get("/v1/whoami", await ann.visitor.token())).json()
        assert (told["member_id"], told["role"]) == (ann.id, "operator")
        assert await code(world, "GET", "/v1/whoami", ann.tokens["key"]) == (401, "UZ-APIKEY-004")

        other = await code(world, "POST", f"{MEMBERS}/{ann.id}/invitation", body={"role": "user"})
        assert other == (409, "UZ-REQ-009"), "a link changes no role"


async def test_nobody_reaches_above_his_rank() -> None:
    async with open_http_world(address_rate=None) as world:
        admin = world.installation.user_id
        mere = await invited(world, "Mere", "admin")
        operator = await invited(world, "Op", "operator")
        token, low = token_of(world, mere["member"]), token_of(world, operator["member"])
        for method, path, body in (
            ("DELETE", f"{MEMBERS}/{admin}", None),
            ("PATCH", f"{MEMBERS}/{admin}", {"role": "user"}),
            ("PATCH", f"{MEMBERS}/{admin}", {"status": "suspended"}),
            ("POST", f"{MEMBERS}/{admin}/invitation", {}),
            ("DELETE", f"/v1/sessions?member_id={admin}", None),
        ):
            assert await code(world, method, path, token, body) == (403, "UZ-AUTH-009"), path
            assert await code(world, method, path, low, body) == (403, "UZ-AUTH-009"), path
        assert await code(world, "POST", MEMBERS, low, {"name": "x", "role": "user"}) == (403, "UZ-AUTH-009")
        assert await code(world, "GET", MEMBERS, low) == (403, "UZ-AUTH-009")

        async with visiting(world) as visitor:
            await visitor.sign_in()
            [session] = (await world.get("/v1/sessions?whose=all")).json()["items"]
            ended = await code(world, "DELETE", f"/v1/sessions/{session['id']}", token)

            assert ended == (403, "UZ-AUTH-009")
        promoted = await code(
            world, "PATCH", f"{MEMBERS}/{operator['member']['id']}", token, {"role": "admin"}
        )
        assert promoted == (200, "")


async def test_the_last_admin_can_neither_be_removed_nor_lowered() -> None:
    async with open_http_world() as world:
        admin, token = world.installation.user_id, world.admin_token()
        for method, body in (
            ("DELETE", None),
            ("PATCH", {"role": "user"}),
            ("PATCH", {"status": "suspended"}),
        ):
            refused = await code(world, method, f"{MEMBERS}/{admin}", token, body)
            assert refused == (409, "UZ-MEMBER-002")


async def test_keys_above_ones_rank_are_neither_revoked_nor_deleted() -> None:
    """By none of the ways: an operator an admin's, and an admin a platform admin's."""
    async with open_http_world(address_rate=None) as world:
        made = {}
        for name, role, platform in (("admin", "admin", False), ("top", "user", True)):
            body = {"key_name": name + "-key", "role": role, "platform_admin": platform}
            made[name] = (await world.post("/v1/api-keys", body, world.admin_token())).json()["id"]
        for name, token in (
            ("admin", world.user_token(Role.OPERATOR)),
            ("top", world.user_token(Role.OPERATOR)),
            ("top", world.user_token(Role.ADMIN)),
        ):
            path = f"/v1/api-keys/{made[name]}"
            assert await code(world, "PATCH", path, token, {"active": False}) == (403, "UZ-AUTH-009")
        for key_id in made.values():
            path = f"/v1/api-keys/{key_id}"
            assert await code(world, "PATCH", path, world.admin_token(), {"active": False}) == (200, "")
            assert await code(world, "DELETE", path, world.user_token(Role.OPERATOR)) == (403, "UZ-AUTH-009")

        assert await code(world, "DELETE", f"/v1/api-keys/{made['admin']}") == (204, "")


async def test_a_key_ends_by_itself_and_says_so_before() -> None:
    async with open_http_world() as world:
        now = world.actors_world.now_ms()
        day = 24 * 3_600_000
        past = await code(world, "POST", "/v1/api-keys", body={"key_name": "p", "expires_at": now})
        assert past == (400, "UZ-REQ-001")

        made = (await world.post("/v1/api-keys", {"key_name": "k", "expires_at": now + 8 * day})).json()
        assert made["expires_at"] == now + 8 * day

        told = (await world.get("/v1/whoami", made["key"])).json()
        assert told["expires_at"] == now + 8 * day

        async def shown() -> tuple[bool, bool]:
            items = (await world.get("/v1/api-keys")).json()["items"]
            [item] = [item for item in items if item["key_name"] == "k"]
            return item["active"], item["expires_soon"]

        assert await shown() == (True, False)

        world.pass_ms(7 * day)
        assert await shown() == (True, True)

        world.pass_ms(day)
        world.memory.signals.hear([Signal(Topic.ACCESS, UUID(made["id"]))])  # It was looked up a moment ago.
        assert await code(world, "GET", "/v1/whoami", made["key"]) == (401, "UZ-AUTH-003")
        assert await shown() == (False, False)


async def test_sessions_are_seen_and_ended_by_their_owner_and_by_admins() -> None:
    async with furnished() as (world, ann, _):
        page = ann.tokens["page"]
        mine = (await world.get("/v1/sessions", page)).json()["items"]
        assert [(row["kind"], row["current"]) for row in mine] == [("terminal", False), ("browser", True)]
        assert await code(world, "GET", "/v1/sessions?whose=all", page) == (403, "UZ-AUTH-009")

        admin = world.installation.user_id
        assert await code(world, "GET", f"/v1/sessions?member_id={admin}", page) == (403, "UZ-AUTH-009")
        assert await code(world, "GET", f"/v1/sessions?member_id={UNKNOWN}") == (404, "UZ-MEMBER-001")
        assert await code(world, "DELETE", f"/v1/sessions?member_id={UNKNOWN}") == (404, "UZ-MEMBER-001")
        assert await code(world, "DELETE", f"/v1/sessions/{UNKNOWN}", page) == (404, "UZ-AUTH-005")

        everybody = (await world.get("/v1/sessions?whose=all")).json()["items"]
        assert {row["id"] for row in everybody} == {row["id"] for row in mine}

        assert await code(world, "DELETE", f"/v1/sessions/{mine[0]['id']}", page) == (204, "")
        assert (await ann.renew()).status_code == 401
        assert await code(world, "GET", "/v1/whoami", ann.tokens["renewed"]) == (401, "UZ-AUTH-002")

        ended = await world.call("DELETE", f"/v1/sessions?member_id={ann.id}")
        assert ended.json()["ended"] == 1
        assert not await ann.visitor.is_signed_in()
        assert await code(world, "GET", "/v1/whoami", page) == (401, "UZ-AUTH-002")


async def test_a_stream_ends_when_whoever_opened_it_is_removed() -> None:
    async with furnished() as (world, ann, agent):
        for name in ("page", "terminal", "key"):
            headers = {"authorization": f"Bearer {ann.tokens[name]}"}
            async with world.http.stream("GET", f"{agent}/events/stream", headers=headers) as answer:
                assert answer.status_code == 200
                chunks = answer.aiter_bytes()
                assert b"retry" in await anext(chunks)
                await world.call("PATCH", f"{MEMBERS}/{ann.id}", json={"status": "suspended"})
                with trio.fail_after(PATIENCE_S):
                    async for _ in chunks:
                        pass
            await world.call("PATCH", f"{MEMBERS}/{ann.id}", json={"status": "active"})


class Elsewhere:
    """An issuer whose tokens say who they are of."""

    name = "https://ci.example.com"

    def __init__(self, tenant_id: UUID) -> None:
        self.tenant_id = tenant_id

    async def verify(self, token: str, now_s: float) -> Claims:
        subject = token.rpartition(".")[2]
        if not subject:
            raise Problem("UZ-AUTH-002", "whose is it?")
        return Claims(
            self.name,
            subject,
            self.tenant_id,
            "operator",
            workspace_id=None,
            platform_admin=False,
            expires_at=int(now_s) + 600,
        )


async def test_who_comes_with_an_issuers_tokens_is_a_member_who_can_be_removed() -> None:
    async with open_http_world() as first:
        tenant_id = first.installation.tenant_id
    async with open_http_world(other_issuers=(Elsewhere(tenant_id),)) as world:
        assert world.installation.tenant_id == tenant_id

        token = "e30.eyJpc3MiOiJodHRwczovL2NpLmV4YW1wbGUuY29tIn0.robot"
        key = await world.post("/v1/api-keys", {"key_name": "its"}, token)
        assert key.status_code == 201, key.text

        items = (await world.get(MEMBERS)).json()["items"]
        [robot] = [item for item in items if item["issuer"] is not None]
        assert (robot["subject"], robot["role"]) == ("https://ci.example.com#robot", "operator")

        role = await code(world, "PATCH", f"{MEMBERS}/{robot['id']}", body={"role": "user"})
        assert role == (409, "UZ-REQ-009"), "the issuer says what it is"

        assert await code(world, "DELETE", f"{MEMBERS}/{robot['id']}") == (200, "")
        assert await code(world, "GET", "/v1/whoami", token) == (403, "UZ-AUTH-001")
        assert await code(world, "GET", "/v1/whoami", key.json()["key"]) == (401, "UZ-APIKEY-004")
        assert await code(world, "POST", f"{MEMBERS}/{robot['id']}/invitation", body={}) == (201, "")
        assert await code(world, "GET", "/v1/whoami", token) == (200, "")


@pytest.mark.parametrize("method", ["PATCH", "DELETE", "POST"])
async def test_a_member_who_is_not_there_is_not_found(world: HttpWorld, method: str) -> None:
    path = f"{MEMBERS}/{UNKNOWN}" + ("/invitation" if method == "POST" else "")
    body: dict[str, Any] | None = None if method == "DELETE" else {}

    assert await code(world, method, path, body=body) == (404, "UZ-MEMBER-001")


async def test_a_subject_is_known_once(world: HttpWorld) -> None:
    subject = {"subject": "https://id.example.com#42"}
    made = await invited(world, "Ann", **subject)
    assert made["member"]["subject"] == subject["subject"]

    again = await code(world, "POST", MEMBERS, body={"name": "Bo", "role": "user", **subject})
    assert again == (409, "UZ-MEMBER-003")
