"""Signing in elsewhere, over real sockets: the whole way, and every place at which it must end."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
import trio
from msgspec.structs import replace

from sexton_actors.plans import STARTER_CREDIT_NANOS
from sexton_http.identity.oauth import OAuthProvider, ProviderSettings, challenge_of
from sexton_http.outbound.http import Elsewhere
from sexton_storage.records.tenants import PlanTier
from sexton_storage.records.users import Role
from tests.fakes.identity_provider import (
    CLIENT_ID,
    CLIENT_SECRET,
    OidcServer,
    SigningKey,
    open_oidc_server,
    query_of,
)
from tests.worlds.browser import Visitor, text_of, visiting
from tests.worlds.http import HttpWorld, open_http_world
from tests.worlds.trust import TRUST

LOGIN, CALLBACK = "/auth/login/codehost", "/auth/callback/codehost"
DEVICE = "/auth/device/019363b0-0000-7000-8000-00000000ffff"


@dataclass
class Scene:
    """A server of ours, a provider, and a person's browser."""

    world: HttpWorld
    server: OidcServer
    visitor: Visitor
    away: httpx2.AsyncClient

    async def leave(self, query: str = "") -> str:
        """The address at the provider that our server sends the browser to."""
        answer = await self.visitor.get(LOGIN + query)
        assert answer.status_code == 303, answer.text
        return answer.headers["location"]

    async def ask(self, url: str) -> str:
        """Sign in there; the path to come back by."""
        answer = await self.away.get(url)
        assert answer.status_code == 302, answer.text
        back = answer.headers["location"]
        assert back.startswith(f"{self.world.base_url}{CALLBACK}?")
        return back.removeprefix(self.world.base_url)

    async def come_back(self, path: str) -> httpx2.Response:
        """As a browser does that was sent by another site."""
        return await self.visitor.get(path, headers={"sec-fetch-site": "cross-site"})

    async def sign_in(self, query: str = "") -> httpx2.Response:
        return await self.come_back(await self.ask(await self.leave(query)))


@asynccontextmanager
async def open_scene(**changes: Any) -> AsyncIterator[Scene]:
    async with open_oidc_server() as server, httpx2.AsyncClient(verify=TRUST) as client:
        settings: dict[str, Any] = {
            "name": "codehost",
            "label": "Code Host",
            "client_id": CLIENT_ID,
            "client_secret": CLIENT_SECRET,
            "admit": ("*",),
            "issuer": server.issuer,
        }
        known = ProviderSettings(**{**settings, **changes})
        provider = OAuthProvider(known, Elsewhere(client), trio.current_time)
        async with open_http_world(providers=(provider,)) as world, visiting(world) as visitor:
            server.clock = lambda: world.actors_world.now_ms() / 1000
            yield Scene(world, server, visitor, client)


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    async with open_scene() as opened:
        yield opened


async def turned_away(scene: Scene, answer: httpx2.Response, status: int, words: str) -> None:
    assert answer.status_code == status, answer.text
    assert words in text_of(answer.text)
    assert "sexton" not in scene.visitor.cookies
    assert not scene.world.memory.tables.browser_sessions
    assert not await scene.visitor.is_signed_in()


# --- the whole way ------------------------------------------------------------------------------------------


async def test_who_signs_in_elsewhere_gets_a_tenant_of_his_own(scene: Scene) -> None:
    assert 'href="/auth/login/codehost"' in (await scene.visitor.get("/")).text

    done = await scene.sign_in()
    assert done.status_code == 200
    assert 'http-equiv="refresh" content="0;url=/console"' in done.text
    assert scene.visitor.cookies.keys() == {"sexton"}

    tables = scene.world.memory.tables
    (user,) = [row for row in tables.users.values() if row.subject == f"{scene.server.issuer}#p-1"]
    tenant = tables.tenants[user.tenant_id]
    assert (user.role, user.platform_admin, user.name) == (Role.ADMIN, False, "Pat Example")
    assert (tenant.name, tenant.plan_tier) == ("Pat Example", PlanTier.FREE)
    assert tenant.balance_nanos == STARTER_CREDIT_NANOS

    home = text_of((await scene.visitor.get("/")).text)
    assert "Pat Example" in home

    token = await scene.visitor.token()
    listed = (await scene.world.get("/v1/tenants/me/workspaces", token)).json()
    assert [row["name"] for row in listed["items"]] == ["default"]
    assert listed["items"][0]["plan_tier"] == "free"


async def test_who_comes_again_comes_to_the_same_tenant(scene: Scene) -> None:
    await scene.sign_in()
    before = len(scene.world.memory.tables.tenants)
    scene.server.person["name"] = "Pat Renamed"
    await scene.visitor.post("/auth/sign-out")
    await scene.sign_in()
    assert len(scene.world.memory.tables.tenants) == before

    scene.server.person["sub"] = "p-2"
    await scene.sign_in()
    assert len(scene.world.memory.tables.tenants) == before + 1


async def test_two_first_sign_ins_at_once_make_one_tenant(scene: Scene) -> None:
    before = len(scene.world.memory.tables.tenants)
    statuses: list[int] = []

    async def sign_in() -> None:
        async with visiting(scene.world) as visitor:
            other = Scene(scene.world, scene.server, visitor, scene.away)
            statuses.append((await other.sign_in()).status_code)

    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(sign_in)

    assert statuses == [200] * 4
    assert len(scene.world.memory.tables.tenants) == before + 1


async def test_the_request_to_the_provider_is_as_the_standards_have_it(scene: Scene) -> None:
    asked = query_of(await scene.leave())
    assert asked["response_type"] == "code"
    assert asked["redirect_uri"] == f"{scene.world.base_url}{CALLBACK}"
    assert asked["scope"] == "openid email profile"
    assert (asked["code_challenge_method"], len(asked["code_challenge"])) == ("S256", 43)

    again = query_of(await scene.leave())
    for name in ("state", "nonce", "code_challenge"):
        assert asked[name] != again[name]
    (attempt, *_) = scene.world.memory.tables.sign_in_attempts.values()
    assert asked["nonce"].encode() not in attempt.sealed


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA"])
async def test_id_tokens_of_each_algorithm_are_taken(scene: Scene, algorithm: str) -> None:
    scene.server.keys = [SigningKey(algorithm, "k")]
    assert (await scene.sign_in()).status_code == 200


@pytest.mark.parametrize("wanted", [DEVICE, "/keys", "/workspaces"])
async def test_after_a_sign_in_one_goes_on_to_the_page_that_was_asked_for(scene: Scene, wanted: str) -> None:
    page = (await scene.visitor.get(wanted)).text
    assert f'href="/auth/login/codehost?next={wanted}"' in page

    done = await scene.sign_in(f"?next={wanted}")
    assert f'content="0;url={wanted}"' in done.text
    assert (await scene.visitor.get(wanted)).status_code in {200, 404}


@pytest.mark.parametrize(
    "following",
    [
        "//evil.example.com",
        "https://evil.example.com",
        "/\\evil",
        "/docs",
        f"{DEVICE}/../x",
        "x",
        "/keys@evil.example.com",
        "/keys%0d%0alocation:%20//evil.example.com",
        "//keys",
        "/keys?next=//evil.example.com",
        "/Keys",
    ],
)
async def test_nobody_is_sent_on_to_another_site(scene: Scene, following: str) -> None:
    done = await scene.sign_in(f"?next={following}")
    assert 'content="0;url=/console"' in done.text


async def test_a_secret_can_go_in_the_form(scene: Scene) -> None:
    async with open_scene(client_auth="post") as posting:
        assert (await posting.sign_in()).status_code == 200


async def test_a_code_host_without_openid_says_who_it_is_when_asked() -> None:
    async with open_scene() as scene:
        at = scene.server.issuer
        addresses: dict[str, Any] = {
            "authorize_url": f"{at}/authorize",
            "token_url": f"{at}/token",
            "userinfo_url": f"{at}/userinfo",
        }
        known = ProviderSettings(
            name="plain",
            label="Plain",
            client_id=CLIENT_ID,
            client_secret=CLIENT_SECRET,
            admit=("4711",),
            subject_field="id",
            name_field="login",
            scopes=("read:user",),
            **addresses,
        )
        plain = OAuthProvider(known, Elsewhere(scene.away), trio.current_time)
        redirect_uri = f"{scene.world.base_url}/auth/callback/plain"
        scene.server.person = {"id": 4711, "login": "pat"}
        verifier = "v" * 43
        from_here = await plain.depart(
            state="s",
            nonce="n",
            challenge=challenge_of(verifier),
            redirect_uri=redirect_uri,
        )
        assert "nonce" not in query_of(from_here)

        back = (await scene.away.get(from_here)).headers["location"]
        person = await plain.arrive(
            code=query_of(back)["code"],
            verifier=verifier,
            nonce="n",
            redirect_uri=redirect_uri,
            now_s=0,
        )
        assert (person.subject, person.name) == ("plain#4711", "pat")


# --- places at which it must end ----------------------------------------------------------------------------


async def test_a_state_is_good_once(scene: Scene) -> None:
    back = await scene.ask(await scene.leave())
    assert (await scene.come_back(back)).status_code == 200

    await scene.visitor.post("/auth/sign-out")
    await turned_away(scene, await scene.come_back(back), 403, "was used before")


async def test_a_state_is_for_the_browser_that_left(scene: Scene) -> None:
    back = await scene.ask(await scene.leave())
    async with visiting(scene.world) as other:
        stolen = Scene(scene.world, scene.server, other, scene.away)
        await turned_away(stolen, await stolen.come_back(back), 403, "began in another browser")
        await stolen.leave()
        await turned_away(stolen, await stolen.come_back(back), 403, "began in another browser")


async def test_a_state_is_good_for_ten_minutes(scene: Scene) -> None:
    back = await scene.ask(await scene.leave())
    rows = scene.world.memory.tables.sign_in_attempts
    for key, row in rows.items():
        rows[key] = replace(row, expires_at=scene.world.actors_world.now_ms())
    await turned_away(scene, await scene.come_back(back), 403, "took too long")


@pytest.mark.parametrize("state", ["", "x", "A" * 64, "A" * 5000, "%0A", "é"])
async def test_a_state_that_was_not_signed_here_is_not_looked_up(scene: Scene, state: str) -> None:
    await scene.leave()
    answer = await scene.come_back(f"{CALLBACK}?code=c&state={state}")
    if len(state) > 4096:
        assert answer.json()["error_code"] == "UZ-REQ-001"
    else:
        await turned_away(scene, answer, 403, "was used before")

    assert len(scene.world.memory.tables.sign_in_attempts) == 1


async def test_a_changed_state_is_none(scene: Scene) -> None:
    back = await scene.ask(await scene.leave())
    state = query_of(back)["state"]
    changed = ("B" if state[0] == "A" else "A") + state[1:]
    await turned_away(scene, await scene.come_back(back.replace(state, changed)), 403, "was used before")

    assert (await scene.come_back(back)).status_code == 200


async def test_who_refuses_at_the_provider_is_not_signed_in(scene: Scene) -> None:
    scene.server.refuses = "access_denied"
    await turned_away(scene, await scene.sign_in(), 403, "access_denied")
    scene.server.refuses = "<script>alert(1)</script>"
    answer = await scene.sign_in()
    assert "<script>alert" not in answer.text

    await turned_away(scene, answer, 403, "an error")


async def test_a_code_that_the_provider_did_not_give_is_none(scene: Scene) -> None:
    back = await scene.ask(await scene.leave())
    code = query_of(back)["code"]
    await turned_away(scene, await scene.come_back(back.replace(code, "made-up")), 502, "did not accept")
    back = await scene.ask(await scene.leave())
    empty = back.replace(f"code={query_of(back)['code']}", "code=")
    await turned_away(scene, await scene.come_back(empty), 403, "no code")


async def test_a_code_of_another_sign_in_does_not_fit(scene: Scene) -> None:
    first, second = await scene.ask(await scene.leave()), await scene.ask(await scene.leave())
    swapped = second.replace(query_of(second)["code"], query_of(first)["code"])
    await turned_away(scene, await scene.come_back(swapped), 502, "did not accept")


async def test_an_answer_of_another_provider_is_none(scene: Scene) -> None:
    back = await scene.ask(await scene.leave())
    other = httpx2.URL(back).copy_set_param("iss", "https://evil.example.com")
    await turned_away(scene, await scene.come_back(str(other)), 403, "Another provider")

    assert (await scene.visitor.get("/auth/login/nobody")).json()["error_code"] == "UZ-REQ-003"
    assert (await scene.visitor.get("/auth/callback/nobody")).json()["error_code"] == "UZ-REQ-003"


@pytest.mark.parametrize(
    ("lies", "words"),
    [
        ({"nonce": "another"}, "another sign-in"),
        ({"nonce": None}, "another sign-in"),
        ({"exp": 1}, "expired"),
        ({"exp": None}, "not valid"),
        ({"aud": "another"}, "not valid"),
        ({"aud": [CLIENT_ID, "another"]}, "another client"),
        ({"azp": "another"}, "another client"),
        ({"iss": "https://evil.example.com"}, "not valid"),
        ({"sub": None}, "not valid"),
        ({"sub": ""}, "who it is"),
        ({"sub": "x" * 256}, "who it is"),
    ],
)
async def test_an_id_token_that_lies_signs_nobody_in(scene: Scene, lies: dict[str, Any], words: str) -> None:
    scene.server.lies = lies
    await turned_away(scene, await scene.sign_in(), 403, words)


async def test_an_id_token_of_another_key_signs_nobody_in(scene: Scene) -> None:
    await scene.sign_in()
    await scene.visitor.post("/auth/sign-out")
    scene.server.raw["/jwks"] = b"{}"
    scene.server.keys = [SigningKey("RS256", scene.server.keys[0].key_id)]
    await turned_away(scene, await scene.sign_in(), 403, "not valid")


async def test_a_provider_that_is_down_is_named(scene: Scene) -> None:
    scene.server.down = True
    answer = await scene.visitor.get(LOGIN)
    assert answer.status_code == 502
    assert "Code Host cannot be reached now" in text_of(answer.text)

    scene.server.down = False
    back = await scene.ask(await scene.leave())
    scene.server.down = True
    await turned_away(scene, await scene.come_back(back), 502, "Code Host")


@pytest.mark.parametrize(
    ("admit", "person", "status"),
    [
        (("*@example.com",), {}, 200),
        (("*@example.com",), {"email": "PAT@EXAMPLE.COM"}, 200),
        (("*@example.com",), {"email_verified": False}, 403),
        (("*@example.com",), {"email_verified": "true"}, 403),
        (("*@example.com",), {"email": "pat@example.com.evil.example"}, 403),
        (("*@example.com",), {"email": None}, 403),
        (("p-1",), {"email": None}, 200),
        (("p-2", "p-3"), {}, 403),
    ],
)
async def test_only_those_who_are_admitted_come_in(
    admit: tuple[str, ...], person: dict[str, Any], status: int
) -> None:
    async with open_scene(admit=admit) as scene:
        scene.server.person.update(person)
        answer = await scene.sign_in()
        assert answer.status_code == status

        if status == 403:
            await turned_away(scene, answer, 403, "does not admit you")
            assert len(scene.world.memory.tables.tenants) == 1


async def test_departures_are_counted_by_address(scene: Scene) -> None:
    answers = [await scene.visitor.get(LOGIN) for _ in range(21)]
    assert [answer.status_code for answer in answers] == [303] * 20 + [429]


async def test_a_program_is_turned_away_in_a_document(scene: Scene) -> None:
    answer = await scene.visitor.get("/auth/callback/codehost?state=x&code=y", headers={"accept": "*/*"})

    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.status_code, answer.json()["error_code"]) == (403, "UZ-AUTH-001")
