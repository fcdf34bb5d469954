"""How long a sign-in lasts where the operator allows less than is usual."""

from sexton_http.identity.sign_in_terms import HOUR_MS, SignInTerms
from tests.http.test_http_browser import age
from tests.http.test_http_sign_ins import device_token, lasting, renewed
from tests.worlds.browser import visiting
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


async def test_sign_ins_of_before_the_terms_were_set_are_held_to_them_too() -> None:
    async with open_http_world() as world, visiting(world) as visitor:
        await visitor.sign_in()
        (session,) = world.memory.tables.browser_sessions.values()

    assert session.idle_ends_at - session.seen_at > STRICT.idle_of(session.kind)
    assert STRICT.ends_at(session) == session.seen_at + 30 * MINUTE_MS
