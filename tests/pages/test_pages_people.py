"""The pages in a real browser: signing in, approving a terminal, going elsewhere and coming back."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
import trio

from sexton_http.identity.browsers import Browsers
from sexton_http.identity.oauth import OAuthProvider, ProviderSettings
from sexton_http.outbound.http import Elsewhere
from tests.fakes.identity_provider import CLIENT_ID, CLIENT_SECRET, OidcServer, open_oidc_server
from tests.fakes.login_terminal import Party
from tests.pages.checks import check_page, sign_in
from tests.pages.screen import FAR, Screen
from tests.patience import PATIENCE_S
from tests.worlds.http import HttpWorld, open_http_world
from tests.worlds.trust import TRUST

SESSIONS = "/v1/auth/sessions"


@pytest.fixture
async def world() -> AsyncIterator[HttpWorld]:
    async with open_http_world() as opened:
        yield opened


async def begin(world: HttpWorld, terminal: Party, name: str = "laptop, upstairs") -> dict[str, Any]:
    made = await world.post(SESSIONS, {"public_key": terminal.public_key, "token_name": name}, None)
    session: dict[str, Any] = made.json()
    return session


async def test_a_person_signs_in_by_link_and_out_again(screen: Screen, world: HttpWorld) -> None:
    await screen.open(world.base_url)
    await screen.sees("prints a sign-in link")
    await check_page(screen, "nobody")
    await screen.open(await Browsers(world.ctx).offer(world.installation.user_id))
    await check_page(screen, "link")
    await screen.press("Sign in")
    await screen.sees("Nothing waits for a person")
    assert await screen.url() == f"{world.base_url}/console/{world.installation.workspace_id}/now"
    assert await screen.run("return document.cookie") == ""

    await check_page(screen, "first-page")
    await screen.click("header a[href='/']")
    shown = await screen.sees("Signed in as")
    assert "local:admin" in shown
    assert str(world.installation.workspace_id) in shown

    await check_page(screen, "home")
    await screen.press("Sign out")
    await screen.sees("prints a sign-in link")
    assert not world.memory.tables.browser_sessions


async def test_a_terminal_is_approved_and_reads_what_the_page_encrypted(
    screen: Screen, world: HttpWorld
) -> None:
    terminal = Party()
    session = await begin(world, terminal)
    await sign_in(screen, world)
    await screen.open(session["login_url"])
    assert "laptop, upstairs" in await screen.sees("Did you start sexton login just now?")

    await check_page(screen, "device-ask")
    await screen.click("#approve")
    await screen.sees("Type this code")
    await check_page(screen, "device-code")
    digits = await screen.text("#code")
    at = f"{SESSIONS}/{session['session_id']}"
    given = (await world.post(f"{at}/verify", {"verification_code": digits}, None)).json()
    token = terminal.decrypt(given["ciphertext"], given["nonce"], given["dashboard_public_key"])
    assert (await world.get("/v1/fleet/runners", token)).status_code == 200

    await screen.sees("The terminal is signed in")
    await check_page(screen, "device-done")
    await screen.open(session["login_url"])
    await screen.sees("signed in already")
    await screen.open(f"{world.base_url}/")
    await screen.press("Sign out")
    await screen.sees("prints a sign-in link")
    assert (await world.get("/v1/fleet/runners", token)).status_code == 200


async def test_a_terminal_can_be_refused(screen: Screen, world: HttpWorld) -> None:
    session = await begin(world, Party(), "<img src=x onerror=alert(1)>")
    await sign_in(screen, world)
    await screen.open(session["login_url"])
    assert "<img src=x onerror=alert(1)>" in await screen.sees("Did you start")

    await screen.click("#refuse")
    await screen.sees("The terminal was refused")
    at = f"{SESSIONS}/{session['session_id']}"
    assert (await world.get(at, None)).json()["status"] == "aborted"


async def test_codes_differ_and_have_six_digits(screen: Screen, world: HttpWorld) -> None:
    await sign_in(screen, world)
    codes = []
    for _ in range(3):
        session = await begin(world, Party())
        await screen.open(session["login_url"])
        await screen.click("#approve")
        await screen.sees("Type this code")
        codes.append(await screen.text("#code"))

    assert all(len(code) == 6 and code.isascii() and code.isdigit() for code in codes)
    assert len(set(codes)) > 1


async def test_a_person_who_was_signed_out_elsewhere_is_told_so(screen: Screen, world: HttpWorld) -> None:
    session = await begin(world, Party())
    await sign_in(screen, world)
    await screen.open(session["login_url"])
    await screen.sees("Did you start")
    world.memory.tables.browser_sessions.clear()
    await screen.click("#approve")
    await screen.sees("this browser is not signed in (UZ-AUTH-002)")
    # The browser notes the refused request; nothing else.
    assert [text for text in screen.complaints if "401" not in text] == []

    screen.complaints.clear()


async def test_from_another_machine_one_signs_in_without_https_but_approves_nothing(
    screen: Screen, world: HttpWorld
) -> None:
    far = world.base_url.replace("127.0.0.1", FAR)
    session = await begin(world, Party())
    link = await Browsers(world.ctx).offer(world.installation.user_id)
    await screen.open(link.replace(world.base_url, far))
    await screen.press("Sign in")
    await screen.sees("Sign out")
    assert await screen.run("return window.isSecureContext") is False

    await screen.open(session["login_url"].replace(world.base_url, far))
    await screen.sees("A browser encrypts only on pages from HTTPS")
    await check_page(screen, "device-insecure")
    # That a header about isolation does nothing without HTTPS is noted.
    assert [text for text in screen.complaints if "Cross-Origin-Opener-Policy" not in text] == []

    screen.complaints.clear()


async def test_a_page_follows_an_agent_with_the_cookie_alone(screen: Screen, world: HttpWorld) -> None:
    await world.keep_secret()
    zombie = await world.install()
    await sign_in(screen, world)
    path = f"{world.ws}/zombies/{zombie['zombie_id']}/events/stream?last_event_id=0"
    await world.deliver(zombie["webhook_urls"]["github"])
    script = """
        const [path, done] = arguments;
        const source = new EventSource(path);
        source.addEventListener("event_received", (frame) => { source.close(); done(frame.data); });
    """
    with trio.fail_after(PATIENCE_S):
        assert '"event_received"' in await screen.run_async(script, path)


@asynccontextmanager
async def open_elsewhere() -> AsyncIterator[tuple[HttpWorld, OidcServer]]:
    """A provider under another name than ours: for a browser, another site."""
    async with open_oidc_server() as server, httpx2.AsyncClient(verify=TRUST) as client:
        server.issuer = server.issuer.replace("127.0.0.1", "localhost")
        server.asks = True
        known = ProviderSettings(
            name="codehost",
            label="Code Host",
            client_id=CLIENT_ID,
            client_secret=CLIENT_SECRET,
            admit=("*",),
            issuer=server.issuer,
        )
        provider = OAuthProvider(known, Elsewhere(client), trio.current_time)
        async with open_http_world(providers=(provider,)) as world:
            server.clock = lambda: world.actors_world.now_ms() / 1000
            yield world, server


async def test_a_person_signs_in_elsewhere_and_comes_back_to_the_terminal(screen: Screen) -> None:
    async with open_elsewhere() as (world, server):
        session = await begin(world, Party())
        await screen.open(session["login_url"])
        await screen.press("Sign in with Code Host")
        await screen.sees("Let Sexton know who you are?")
        assert (await screen.url()).startswith(f"{server.issuer}/authorize")

        await screen.press("Yes")
        await screen.sees("Did you start sexton login just now?")
        assert await screen.url() == session["login_url"]

        await screen.open(world.base_url)
        await screen.sees("Pat Example")
        await check_page(screen, "home-elsewhere")
        await screen.open("about:blank")


async def test_another_site_cannot_use_the_cookie(screen: Screen) -> None:
    async with open_elsewhere() as (world, server):
        await sign_in(screen, world)
        await screen.open(f"{server.issuer}/evil?at={world.base_url}")
        await screen.press("Send")
        shown = await screen.sees("UZ-AUTH")
        assert "UZ-AUTH-001" in shown
        assert len(world.memory.tables.browser_sessions) == 1

        await screen.open(f"{server.issuer}/frame?at={world.base_url}")
        await screen.open("about:blank")
        # That the frame was refused is noted, and so is the form's answer.
        assert any("frame-ancestors" in text for text in screen.complaints)

        screen.complaints.clear()
