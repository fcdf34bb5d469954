"""How long a sign-in lasts where the operator allows less than is usual."""

from sexton_actors.protocol.auth_session import Open
from sexton_http.identity.sign_in_terms import HOUR_MS, SignInTerms
from tests.fakes.login_terminal import Party
from tests.http.test_http_browser import age
from tests.http.test_http_sign_ins import device_token, lasting, renewed
from tests.worlds.browser import text_of, visiting
from tests.worlds.http import open_http_world

MINUTE_MS = 60_000
STRICT = SignInTerms(life_ms=12 * HOUR_MS, idle_ms=30 * MINUTE_MS)


async def test_a_browser_is_signed_out_after_half_an_hour_without_use() -> None:
    async with open_http_world(sign_ins=STRICT) as world, visiting(world) as visitor:
        await visitor.sign_in()
        age(world, 29 * MINUTE_MS)
        used = await visitor.is_signed_in()
        age(world, 29 * MINUTE_MS)
        used_again = await visitor.is_signed_in()
        age(world, 31 * MINUTE_MS)
        unused = await visitor.is_signed_in()

    assert (used, used_again, unused) == (True, True, False)


async def test_use_keeps_a_browser_signed_in_for_twelve_hours_and_no_longer() -> None:
    async with open_http_world(sign_ins=STRICT) as world, visiting(world) as visitor:
        await visitor.sign_in()
        stays = list[bool]()
        for _ in range(12 * 3 - 1):
            age(world, 20 * MINUTE_MS)
            stays.append(await visitor.is_signed_in())
        age(world, 20 * MINUTE_MS)
        over = await visitor.is_signed_in()

    assert all(stays)
    assert not over


async def test_a_terminal_is_held_to_the_same_terms_and_is_told_when_it_ends() -> None:
    async with open_http_world(sign_ins=STRICT) as world, visiting(world) as visitor:
        await visitor.sign_in()
        began = world.actors_world.now_ms()
        kept = await lasting(world, await device_token(world, visitor))
        age(world, 29 * MINUTE_MS)
        in_time, _ = await renewed(world, kept["refresh_token"])
        age(world, 31 * MINUTE_MS)
        late, told = await renewed(world, kept["refresh_token"])

    assert 30 * MINUTE_MS <= kept["expires_at"] - began < 31 * MINUTE_MS
    assert (in_time, late, told["error_code"]) == (200, 401, "UZ-AUTH-002")


async def test_whoever_approves_a_terminal_is_told_how_long_it_stays_signed_in() -> None:
    said = dict[str, str]()
    for name, terms in (("usual", SignInTerms()), ("strict", STRICT)):
        async with open_http_world(sign_ins=terms) as world, visiting(world) as visitor:
            await visitor.sign_in()
            session_id = world.actors_world.new_id()
            await world.system.ask("session", session_id, Open(Party().public_key, "laptop"))
            said[name] = text_of((await visitor.get(f"/auth/device/{session_id}")).text)

    assert "not used for 30 days, or has been signed in for 365 days" in said["usual"]
    assert "not used for 30 minutes, or has been signed in for 12 hours" in said["strict"]


async def test_what_a_terminal_asks_with_its_user_token_is_use() -> None:
    five = SignInTerms(idle_ms=5 * MINUTE_MS)
    async with open_http_world(sign_ins=five) as world, visiting(world) as visitor:
        await visitor.sign_in()
        kept = await lasting(world, await device_token(world, visitor))
        tokens = list[str]()
        for _ in range(4):  # One for each question: who has just asked is not looked up again.
            world.pass_ms(1_000)
            _, fresh = await renewed(world, kept["refresh_token"])
            tokens.append(fresh["token"])
        asked = list[int]()
        for token in tokens[:3]:
            age(world, 4 * MINUTE_MS)
            asked.append((await world.get("/v1/whoami", token)).status_code)
        age(world, 6 * MINUTE_MS)
        late = await world.get("/v1/whoami", tokens[3])

    assert asked == [200, 200, 200]
    assert (late.status_code, late.json()["error_code"]) == (401, "UZ-AUTH-002")


async def test_a_page_that_is_left_open_does_not_keep_its_browser_signed_in() -> None:
    async with open_http_world(sign_ins=STRICT) as world, visiting(world) as visitor:
        await visitor.sign_in()
        here = f"/console/{world.installation.workspace_id}"
        by_itself = {"sexton-as-of": "0-0", "sexton-shown": "0"}
        age(world, 20 * MINUTE_MS)
        shown = await visitor.get(f"{here}/events", headers=by_itself)
        async with visitor.client.stream("GET", f"{here}/changes") as changes:
            followed = changes.status_code
        age(world, 20 * MINUTE_MS)
        left_open = await visitor.is_signed_in()

    assert (shown.status_code, followed) == (200, 200)
    assert not left_open


async def test_sign_ins_of_before_the_terms_were_set_are_held_to_them_too() -> None:
    async with open_http_world() as world, visiting(world) as visitor:
        await visitor.sign_in()
        (session,) = world.memory.tables.browser_sessions.values()

    assert session.idle_ends_at - session.seen_at > STRICT.idle_of(session.kind)
    assert STRICT.ends_at(session) == session.seen_at + 30 * MINUTE_MS
