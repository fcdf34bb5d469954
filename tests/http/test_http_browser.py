"""Signing in with a browser: links, cookies, tokens, streams, and what other sites may not make it do."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest
import trio
from msgspec.structs import replace

from sexton_actors.protocol.auth_session import Open
from sexton_http.answers import RequestHead
from sexton_http.identity.browsers import LINK_MS, TOUCH_MS, Browsers
from sexton_http.identity.same_origin import is_same_origin
from sexton_http.identity.sign_in_terms import IDLE_MS, LIFE_MS
from sexton_storage.records.tenants import PlanTier, Tenant
from sexton_storage.records.users import Role, User
from sexton_storage.records.workspaces import Workspace
from tests.fakes.login_terminal import Party
from tests.patience import PATIENCE_S
from tests.worlds.answer_checks import check_answer
from tests.worlds.browser import Visitor, text_of, visiting
from tests.worlds.event_stream import listening
from tests.worlds.http import HttpWorld, open_http_world

UNKNOWN = "019363b0-0000-7000-8000-00000000ffff"


@pytest.fixture
async def visitor(world: HttpWorld) -> AsyncIterator[Visitor]:
    async with visiting(world) as browser:
        yield browser


def age(world: HttpWorld, ms: int) -> None:
    """Make all that signs in so much older."""
    tables = world.memory.tables
    for key, session in tables.browser_sessions.items():
        tables.browser_sessions[key] = replace(
            session,
            created_at=session.created_at - ms,
            seen_at=session.seen_at - ms,
            idle_ends_at=session.idle_ends_at - ms,
            ends_at=session.ends_at - ms,
        )
    for hashed, link in tables.sign_in_links.items():
        tables.sign_in_links[hashed] = replace(link, expires_at=link.expires_at - ms)


# --- links ------------------------------------------------------------------------------------------------


async def test_a_link_is_looked_at_as_often_as_one_likes_and_used_once(
    world: HttpWorld, visitor: Visitor
) -> None:
    link = await visitor.link()
    for _ in range(3):
        looked = await visitor.get(link)
        assert (looked.status_code, visitor.cookies) == (200, {})
        assert link.rsplit("/", 1)[1] not in looked.text
    assert (await visitor.client.head(link)).status_code == 200

    used = await visitor.post(link)
    assert (used.status_code, used.headers["location"]) == (303, "/console")
    assert await visitor.is_signed_in()

    async with visiting(world) as other:
        again = await other.post(link)

        assert (again.status_code, other.cookies) == (410, {})
        assert (await other.get(link)).status_code == 410
        assert not await other.is_signed_in()


@pytest.mark.parametrize("role", [Role.VIEWER, Role.ADMIN])
async def test_whoever_signs_in_comes_to_what_waits_now_and_finds_the_overview_by_his_name(
    world: HttpWorld, visitor: Visitor, role: Role
) -> None:
    now = f"/console/{world.installation.workspace_id}/now"
    made = await world.post("/v1/members", {"name": "Vic", "role": role.value}, world.admin_token())
    used = await visitor.post(made.json()["sign_in_url"].removeprefix(world.base_url))
    console = await visitor.get(used.headers["location"])
    shown = await visitor.get(console.headers["location"])
    overview = await visitor.get("/")

    assert (console.headers["location"], shown.status_code) == (now, 200)
    assert '<h1 id="heading" data-part>Now</h1>' in shown.text
    assert '<a href="/">Vic</a>' in shown.text
    assert f'<a href="{now}">default</a>' in overview.text


@pytest.mark.parametrize("token", ["0" * 64, "x", "%00", "a" * 4000])
async def test_a_link_that_nobody_made_signs_nobody_in(visitor: Visitor, token: str) -> None:
    for answer in (await visitor.get(f"/auth/sign-in/{token}"), await visitor.post(f"/auth/sign-in/{token}")):
        assert (answer.status_code, visitor.cookies) == (410, {})


async def test_a_link_is_good_for_an_hour(world: HttpWorld, visitor: Visitor) -> None:
    link = await visitor.link()
    age(world, LINK_MS)

    assert (await visitor.post(link)).status_code == 410
    assert "within an hour" in (await visitor.get(link)).text


async def test_many_who_use_a_link_at_once_are_one(world: HttpWorld) -> None:
    statuses: list[int] = []
    async with visiting(world) as first:
        link = await first.link()

    async def use() -> None:
        async with visiting(world) as browser:
            statuses.append((await browser.post(link)).status_code)

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(use)

    assert sorted(statuses) == [303, 410, 410, 410, 410]


async def test_guesses_at_links_are_slowed_down(visitor: Visitor) -> None:
    answers = [await visitor.get(f"/auth/sign-in/{number}") for number in range(31)]

    assert [answer.status_code for answer in answers] == [410] * 30 + [429]
    assert answers[-1].json()["error_code"] == "UZ-REQ-006"


# --- the cookie -------------------------------------------------------------------------------------------


async def test_the_cookie_is_for_this_server_and_no_script(world: HttpWorld, visitor: Visitor) -> None:
    answer = await visitor.post(await visitor.link())
    cookie = answer.headers["set-cookie"]
    name, _, value = cookie.partition(";")[0].partition("=")
    assert name == "sexton"
    assert cookie.endswith("; Path=/; Max-Age=2592000; HttpOnly; SameSite=Strict")
    assert value not in repr(world.memory.tables.browser_sessions)

    secure = Browsers(replaced(world, "https://sexton.example.com"))
    assert secure.cookie_name == "__Host-sexton"

    ended = await secure.sign_out(UUID(UNKNOWN))
    assert ended[1].endswith(b"; Path=/; Max-Age=0; HttpOnly; SameSite=Strict; Secure")


def replaced(world: HttpWorld, base_url: str) -> Any:
    ctx = world.ctx
    settings = type(ctx.settings)(base_url)
    return type(ctx)(ctx.system, ctx.world, ctx.issuer, ctx.registry, settings, ctx.stop, ctx.keys, ctx.nodes)


@pytest.mark.parametrize(
    "cookie",
    [
        "sexton=",
        "sexton=" + "0" * 64,
        "sexton=x; sexton",
        "=; ;;",
        'sexton="' + "0" * 64 + '"',
        "sexton=\xff",
        "other=1; " * 500 + "sexton=x",
    ],
)
async def test_a_cookie_that_nobody_was_given_is_nobody(visitor: Visitor, cookie: str) -> None:
    headers = {"cookie": cookie.encode("latin-1")}
    assert "Signed in as" not in (await visitor.get("/", headers=headers)).text

    answer = await visitor.post("/auth/token", headers=headers)
    assert (answer.status_code, answer.json()["error_code"]) == (401, "UZ-AUTH-002")


async def test_cookies_that_come_in_headers_of_their_own_are_one(world: HttpWorld, visitor: Visitor) -> None:
    await visitor.sign_in()
    mine = ("cookie", f"sexton={visitor.cookies['sexton']}")
    async with visiting(world) as bare:
        for headers in ([mine, ("cookie", "a=1")], [("cookie", "a=1"), mine]):
            assert "Signed in as" in (await bare.client.get("/", headers=headers)).text


async def test_signing_in_again_ends_the_session_that_the_browser_had(
    world: HttpWorld, visitor: Visitor
) -> None:
    await visitor.sign_in()
    old = visitor.cookies["sexton"]
    await visitor.sign_in()

    assert visitor.cookies["sexton"] != old
    assert len(world.memory.tables.browser_sessions) == 1
    assert await visitor.is_signed_in()


# --- the end ----------------------------------------------------------------------------------------------


async def test_signing_out_holds_at_once_for_pages_and_tokens(world: HttpWorld, visitor: Visitor) -> None:
    await visitor.sign_in()
    cookie, token = visitor.cookies["sexton"], await visitor.token()
    assert (await world.get("/v1/api-keys", token)).status_code == 200

    answer = await visitor.post("/auth/sign-out")
    assert (answer.status_code, answer.headers["location"], visitor.cookies) == (303, "/", {})

    refused = await world.get("/v1/api-keys", token)
    assert (refused.status_code, refused.json()["error_code"]) == (401, "UZ-AUTH-002")

    stolen = {"cookie": f"sexton={cookie}"}
    assert "Signed in as" not in (await visitor.get("/", headers=stolen)).text

    again = await visitor.post("/auth/sign-out", headers=stolen)
    assert again.json()["error_code"] == "UZ-AUTH-002"


async def test_a_browser_that_nobody_uses_is_signed_out(world: HttpWorld, visitor: Visitor) -> None:
    await visitor.sign_in()
    token = await visitor.token()
    age(world, IDLE_MS - 1000)
    assert await visitor.is_signed_in()

    age(world, IDLE_MS - 1000)
    assert await visitor.is_signed_in()

    age(world, IDLE_MS)
    assert not await visitor.is_signed_in()
    assert (await world.get("/v1/api-keys", token)).json()["error_code"] == "UZ-AUTH-002"


async def test_use_does_not_keep_a_browser_signed_in_for_ever(world: HttpWorld, visitor: Visitor) -> None:
    await visitor.sign_in()
    step = IDLE_MS - 1000
    for _ in range(LIFE_MS // step):
        age(world, step)
        assert await visitor.is_signed_in()
    age(world, step)

    assert not await visitor.is_signed_in()


async def test_use_is_written_once_a_minute(world: HttpWorld, visitor: Visitor) -> None:
    await visitor.sign_in()
    rows = world.memory.tables.browser_sessions
    (before,) = rows.values()
    await visitor.get("/")
    assert list(rows.values()) == [before]

    age(world, TOUCH_MS)
    await visitor.get("/")
    (after,) = rows.values()
    assert after.seen_at >= before.seen_at


async def test_a_session_outlives_a_restart(world: HttpWorld, visitor: Visitor) -> None:
    await visitor.sign_in()
    head = RequestHead("GET", "/", b"", {b"cookie": f"sexton={visitor.cookies['sexton']}".encode()}, "")
    who = await Browsers(world.ctx).find(head)

    assert who is not None
    assert who.user.subject == "local:admin"


# --- tokens -----------------------------------------------------------------------------------------------


async def test_a_signed_in_browser_mints_tokens_for_its_person(world: HttpWorld, visitor: Visitor) -> None:
    await visitor.sign_in()
    minted = (await visitor.post("/auth/token")).json()
    assert minted.keys() == {"token", "expires_at", "request_id"}

    left = minted["expires_at"] - world.actors_world.now_ms()
    assert 14 * 60_000 < left <= 15 * 60_000
    assert (await world.get("/v1/fleet/runners", minted["token"])).status_code == 200


async def test_a_terminals_token_outlives_the_browsers_sign_out(world: HttpWorld, visitor: Visitor) -> None:
    await visitor.sign_in()
    token = await visitor.token(session_id=UNKNOWN)
    await visitor.post("/auth/sign-out")

    assert (await world.get("/v1/api-keys", token)).status_code == 200


async def test_a_token_is_minted_for_nobody_else(world: HttpWorld, visitor: Visitor) -> None:
    for headers in ({}, {"authorization": f"Bearer {world.admin_token()}"}):
        answer = await visitor.post("/auth/token", headers=headers)
        assert (answer.status_code, answer.json()["error_code"]) == (401, "UZ-AUTH-002")
    await visitor.sign_in()
    for body, code in (({"session_id": "x"}, "UZ-UUIDV7-009"), ({"role": "admin"}, "UZ-REQ-001")):
        assert (await visitor.post("/auth/token", json=body)).json()["error_code"] == code


# --- other sites ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"sec-fetch-site": "same-origin"}, True),
        ({"sec-fetch-site": "same-origin", "origin": "null"}, True),
        ({"sec-fetch-site": "same-site", "origin": "http://h:1"}, False),
        ({"sec-fetch-site": "cross-site"}, False),
        ({"sec-fetch-site": "none"}, False),
        ({"sec-fetch-site": "none", "origin": "http://h:1"}, True),
        ({"sec-fetch-site": "nonsense", "origin": "http://h:1"}, False),
        ({"origin": "http://h:1"}, True),
        ({"origin": "HTTP://H:1"}, True),
        ({"origin": "https://sexton.example.com"}, True),
        ({"origin": "http://sexton.example.com"}, False),
        ({"origin": "http://h:2"}, False),
        ({"origin": "http://evil.example.com"}, False),
        ({"origin": "http://h:1.evil.example.com"}, False),
        ({"origin": "null"}, False),
        ({"origin": ""}, False),
        ({}, False),
    ],
)
def test_a_request_is_ours_when_the_browser_says_so(headers: dict[str, str], expected: bool) -> None:
    sent = {name.encode(): value.encode() for name, value in {"host": "h:1", **headers}.items()}
    head = RequestHead("POST", "/", b"", sent, "")

    assert is_same_origin(head, "https://sexton.example.com") is expected


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_another_site_can_make_a_browser_do_nothing(
    world: HttpWorld, visitor: Visitor, site: str
) -> None:
    link = await visitor.link()
    assert (await visitor.post(link, site)).json()["error_code"] == "UZ-AUTH-001"

    await visitor.sign_in()
    for path in ("/auth/token", "/auth/sign-out"):
        answer = await visitor.post(path, site)
        assert (answer.status_code, answer.json()["error_code"]) == (403, "UZ-AUTH-001")
    assert await visitor.is_signed_in()
    assert (await visitor.post(link)).status_code == 303, "the refused request did not use it up"


# --- the stream -------------------------------------------------------------------------------------------


async def test_a_stream_takes_the_cookie_and_ends_with_it(world: HttpWorld, visitor: Visitor) -> None:
    await world.keep_secret()
    zombie = await world.install()
    path = f"{world.ws}/zombies/{zombie['zombie_id']}/events/stream"
    assert (await visitor.get(path)).json()["error_code"] == "UZ-AUTH-002"

    await visitor.sign_in()
    cookie = f"sexton={visitor.cookies['sexton']}"
    async with listening(world.base_url, path, None, cookie=cookie) as stream:
        assert stream.status == 200

        await world.deliver(zombie["webhook_urls"]["github"])
        assert (await stream.frame())["kind"] == "event_received"

        await visitor.post("/auth/sign-out")
        with trio.fail_after(PATIENCE_S):
            while await stream.line() is not None:
                pass
        assert stream.ended


async def test_a_streams_end_is_that_of_its_session(world: HttpWorld, visitor: Visitor) -> None:
    zombie = await world.install()
    path = f"{world.ws}/zombies/{zombie['zombie_id']}/events/stream"
    await visitor.sign_in()
    rows = world.memory.tables.browser_sessions
    for key, row in rows.items():
        rows[key] = replace(row, idle_ends_at=world.actors_world.now_ms() + 300)
    cookie = f"sexton={visitor.cookies['sexton']}"
    async with listening(world.base_url, path, None, cookie=cookie) as stream:
        assert stream.status == 200
        with trio.fail_after(PATIENCE_S):
            while await stream.line() is not None:
                pass

    assert not await visitor.is_signed_in()


async def test_a_stream_ends_when_its_browser_is_signed_out_on_another_node() -> None:
    async with open_http_world(stream_heartbeat_s=0.1) as world, visiting(world) as visitor:
        zombie = await world.install()
        await visitor.sign_in()
        cookie = f"sexton={visitor.cookies['sexton']}"
        path = f"{world.ws}/zombies/{zombie['zombie_id']}/events/stream"
        async with listening(world.base_url, path, None, cookie=cookie) as stream:
            assert stream.status == 200

            (session_id,) = world.memory.tables.browser_sessions
            await Browsers(world.ctx).sign_out(session_id)
            with trio.fail_after(PATIENCE_S):
                while await stream.line() is not None:
                    pass

        assert not await visitor.is_signed_in()


async def test_another_tenants_browser_sees_nothing_of_ours(world: HttpWorld, visitor: Visitor) -> None:
    zombie = await world.install()
    now, new_id = world.actors_world.now_ms(), world.actors_world.new_id
    tenant = Tenant(new_id(), "<b>other</b>", PlanTier.FREE, 0, None, now, now)
    workspace = Workspace(new_id(), tenant.id, "<i>ws</i>", paused=True, created_at=now)
    user = User(new_id(), tenant.id, "x#<script>1</script>", Role.USER, platform_admin=False, created_at=now)
    await world.storage.tenants.create(tenant, workspace, user)
    link = (await Browsers(world.ctx).offer(user.id)).removeprefix(world.base_url)
    assert (await visitor.post(link)).status_code == 303

    home = (await visitor.get("/")).text
    for raw in ("<b>other", "<i>ws", "<script>1"):
        assert raw not in home
    assert "&lt;b&gt;other&lt;/b&gt;" in home
    assert "paused" in text_of(home)
    assert str(world.installation.workspace_id) not in home

    stream = await visitor.get(f"{world.ws}/zombies/{zombie['zombie_id']}/events/stream")
    assert stream.json()["error_code"] == "UZ-WORKSPACE-001"

    token = await visitor.token()
    assert (await world.get("/v1/fleet/runners", token)).json()["error_code"] == "UZ-AUTH-021"


# --- pages ------------------------------------------------------------------------------------------------


async def test_pages_load_nothing_from_elsewhere_and_stay_out_of_frames(
    world: HttpWorld, visitor: Visitor
) -> None:
    session_id = world.actors_world.new_id()
    await world.system.ask("session", session_id, Open(Party().public_key, "<script>x</script>"))
    pages = [await visitor.get("/"), await visitor.get(await visitor.link())]
    pages.append(await visitor.get(f"/auth/device/{session_id}"))
    await visitor.sign_in()
    pages += [await visitor.get("/"), await visitor.get(f"/auth/device/{session_id}")]
    for page in pages:
        policy = page.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; style-src 'self'; script-src 'self';")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert page.headers["cache-control"] == "no-store"
        assert page.headers["referrer-policy"] == "same-origin"
        assert "<style" not in page.text
        assert "style=" not in page.text
        assert "http://" not in page.text.replace("http://www.w3.org", "")
        assert "https://" not in page.text
        assert "<script>" not in page.text


async def test_the_files_of_the_pages_are_there_and_no_others(visitor: Visitor) -> None:
    for name, kind in (
        ("sexton.css", "text/css"),
        ("device.js", "text/javascript"),
        ("icon.svg", "image/svg"),
    ):
        answer = await visitor.get(f"/assets/{name}")
        assert answer.headers["content-type"].startswith(kind)
        assert answer.headers["x-content-type-options"] == "nosniff"
    for name in ("none.css", "assets.py", "%2e%2e%2fassets.py"):
        assert (await visitor.get(f"/assets/{name}")).status_code == 404


async def test_the_page_of_a_terminal_says_how_far_it_is(world: HttpWorld, visitor: Visitor) -> None:
    session_id = world.actors_world.new_id()
    path, at = f"/auth/device/{session_id}", f"/v1/auth/sessions/{session_id}"
    assert "Sign in" in text_of((await visitor.get(path)).text)

    await visitor.sign_in()
    gone = await visitor.get(path)
    assert (gone.status_code, "No terminal waits here" in gone.text) == (404, True)

    await world.system.ask("session", session_id, Open(Party().public_key, "laptop"))
    page = (await visitor.get(path)).text
    assert f'data-session-id="{session_id}"' in page
    assert "laptop" in page

    await world.call("PATCH", at, json={"token": "secret.token.here"})
    taken = (await visitor.get(path)).text
    assert "has its token already" in taken
    assert "secret.token.here" not in taken
    assert (await world.get(at, None)).json()["token"] == "secret.token.here", "looking took nothing"

    await world.call("DELETE", at, None)
    keyless = world.actors_world.new_id()
    await world.system.ask("session", keyless, Open(None, None))
    assert "sent no key" in (await visitor.get(f"/auth/device/{keyless}")).text
    assert (await visitor.get("/auth/device/x")).json()["error_code"] == "UZ-UUIDV7-009"


async def test_a_program_is_told_in_a_document_what_a_person_reads_on_a_page(world: HttpWorld) -> None:
    link, unknown = "/auth/sign-in/nothing", f"/auth/device/{UNKNOWN}"
    async with visiting(world) as visitor:
        await visitor.sign_in()
        cases = [
            ("GET", link, (410, "UZ-AUTH-012")),
            ("POST", link, (410, "UZ-AUTH-012")),
            ("GET", unknown, (404, "UZ-AUTH-005")),
        ]
        for method, path, said in cases:
            for accept in (
                "*/*",
                "application/json",
                "application/json, text/html;q=0.5",
                "text/html;q=0",
                "x;q=y",
            ):
                headers = {"accept": accept, "sec-fetch-site": "same-origin"}
                answer = await visitor.client.request(method, path, headers=headers)
                await check_answer(answer)
                assert answer.headers["content-type"] == "application/problem+json", (path, accept)
                assert (answer.status_code, answer.json()["error_code"]) == said
            for accept in (
                "text/html",
                "text/html,*/*;q=0.8",
                "application/xhtml+xml, application/json;q=0.9",
            ):
                headers = {"accept": accept, "sec-fetch-site": "same-origin"}
                answer = await visitor.client.request(method, path, headers=headers)
                assert answer.headers["content-type"].startswith("text/html"), (path, accept)
                assert answer.status_code == said[0]


async def test_the_address_that_older_command_lines_open_leads_to_the_approval_page(world: HttpWorld) -> None:
    session_id = "019363b0-0000-7000-8000-00000000ffff"
    answer = await world.http.get(f"/cli-auth/{session_id}")

    assert (answer.status_code, answer.headers["location"]) == (303, f"/auth/device/{session_id}")
    assert (await world.http.get("/cli-auth/nonsense")).status_code == 400
