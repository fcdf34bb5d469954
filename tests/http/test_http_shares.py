"""Nobody takes what others need: shares of streams and bodies, and guesses at runners' tokens."""

import json
from contextlib import AsyncExitStack
from typing import Any

import pytest
import trio
from hypothesis import HealthCheck, given, settings, strategies as st

from sexton_http.ceilings import Bound, Ceiling, Claim, Full, Place, Shares, Standing, room
from sexton_storage.records.users import Role
from tests.worlds.asgi_server import Reader
from tests.worlds.event_stream import listening
from tests.worlds.http import HttpWorld, open_http_world

KIB = 1024
STREAMS = 40
SHARE = 10
"""A quarter of them is the most that one caller below an admin gets."""


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 2), st.booleans()), max_size=60)
)
def test_whoever_comes_no_bound_is_passed_and_all_is_given_back(
    steps: list[tuple[int, int, int, bool]],
) -> None:
    limit, shares = 20, Shares()
    ceiling, places = Ceiling(limit, shares), list[Place]()
    wrongly = 0
    for who, tenant, standing, goes in steps:
        if goes and places:
            places.pop().leave()
            continue
        claim = Claim(f"a{who}", tenant, (tenant, who), Standing(standing))
        try:
            places.append(ceiling.enter(claim))
        except Full as full:
            count = ceiling.now if full.bound is Bound.ALL else held_in(ceiling, claim, full.bound)
            wrongly += count < room(full.bound, claim.standing, limit, shares)
    assert not wrongly
    assert ceiling.now == len(places) <= limit

    for place in places:
        place.leave()
    assert ceiling.now == 0
    assert not ceiling._held


def held_in(ceiling: Ceiling, claim: Claim, bound: Bound) -> int:
    return next(ceiling._held.get(key, 0) for key in claim.keys if key[0] is bound)


def test_one_who_turns_out_to_be_somebody_else_holds_his_place_as_that() -> None:
    ceiling = Ceiling(4, Shares(principal=25, tenant=100, address=100, reserve=0))
    ceiling.enter(Claim("a", "t", "key"))
    place = ceiling.enter(Claim("a", standing=Standing.ADMIN))

    with pytest.raises(Full) as full:
        place.rename(Claim("a", "t", "key"))

    assert full.value.bound is Bound.PRINCIPAL
    assert ceiling.now == 1


async def test_one_user_s_streams_leave_room_for_others_and_for_the_admin() -> None:
    async with open_http_world(max_streams=STREAMS, max_in_flight=STREAMS) as world, AsyncExitStack() as held:
        zombie = await world.install()
        path = f"{world.ws}/zombies/{zombie['zombie_id']}/events/stream"
        user = world.user_token(Role.USER)
        for _ in range(SHARE):
            stream = await held.enter_async_context(listening(world.base_url, path, user))
            assert stream.status == 200

        refused = await world.get(path, user)
        assert (refused.status_code, refused.json()["error_code"]) == (503, "UZ-API-002")
        assert refused.json()["detail"].startswith("the caller has as many streams")
        assert int(refused.headers["retry-after"]) >= 1
        # His other requests, and everybody else's streams, go on.
        assert (await world.get(f"{world.ws}/zombies", user)).status_code == 200

        for _ in range(SHARE + 1):
            stream = await held.enter_async_context(listening(world.base_url, path, world.api_key))
            assert stream.status == 200
        full = sample(world, "sexton_http_full_total", what="streams", whose="principal")
        assert full == 1


async def test_guesses_at_runners_tokens_are_slowed_down_and_runners_beside_them_are_not() -> None:
    async with open_http_world(address_rate=1) as world:
        token = await world.enrol()
        guesses = [await world.get("/v1/runners/me", f"zmb_r_{number:064x}") for number in range(4)]

        assert [answer.status_code for answer in guesses] == [401, 401, 429, 429]
        assert int(guesses[3].headers["retry-after"]) >= 1

        for _ in range(4):
            assert (await world.get("/v1/runners/me", token)).status_code == 200
        # Nor do they count against other strangers there.
        assert (await world.get("/v1/api-keys", f"zmb_t_{7:064x}")).status_code == 401


def sample(world: HttpWorld, name: str, **labels: str) -> float:
    return world.registry.get_sample_value(name, labels) or 0.0


def post(world: HttpWorld, path: str, token: str, size: int) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: x", "Content-Type: application/json", f"Content-Length: {size}"]
    return "\r\n".join([*lines, *([f"Authorization: Bearer {token}"] if token else []), "", ""]).encode()


async def until_kept(world: HttpWorld, size: int) -> None:
    while sample(world, "sexton_http_body_bytes") != size:
        await trio.sleep(0.01)


async def dial(world: HttpWorld) -> trio.SocketStream:
    return await trio.open_tcp_stream("127.0.0.1", int(world.base_url.rpartition(":")[2]))


async def test_bodies_have_one_budget_of_which_nobody_takes_all_and_strangers_nothing() -> None:
    async with open_http_world(max_body_memory=240 * KIB) as world:
        path, operator = f"{world.ws}/credentials", world.user_token(Role.OPERATOR)
        size, part = 64 * KIB, b"x" * (40 * KIB)
        async with await dial(world) as one, await dial(world) as two, await dial(world) as stranger:
            await stranger.send_all(post(world, path, "", size) + part)
            await one.send_all(post(world, path, operator, size) + part)
            await until_kept(world, len(part))
            await two.send_all(post(world, path, operator, size) + part)
            status, head, body = await told(two, b"x" * (size - len(part)))
            assert (status, json.loads(body)["error_code"]) == (503, "UZ-API-004")
            assert b"retry-after: " in head.lower()

            await until_kept(world, len(part))

            kept = {"name": "large", "data": {"text": "y" * 30 * KIB}}
            assert (await world.post(path, kept)).json()["error_code"] == "UZ-VAULT-002"
        await until_kept(world, 0)


async def told(stream: trio.SocketStream, rest: bytes) -> Any:
    """The answer, which comes when the body has."""
    await stream.send_all(rest)
    return await Reader(stream).answer()


async def test_an_agent_that_does_not_exist_is_told_before_a_body_is_read(world: HttpWorld) -> None:
    head = post(world, "/v1/webhooks/019363b0-0000-7000-8000-00000000ffff", "", 9)
    async with await dial(world) as stream:
        await stream.send_all(head.replace(b"Host: x", b"Host: x\r\nExpect: 100-continue"))
        status, _, body = await Reader(stream).answer()

    assert (status, json.loads(body)["error_code"]) == (404, "UZ-WH-001")


async def test_strangers_send_small_bodies_and_a_body_that_nobody_reads_is_dropped(world: HttpWorld) -> None:
    large = await world.http.post("/v1/auth/sessions", content=b"x" * (16 * KIB + 1))
    assert (large.status_code, large.json()["error_code"]) == (413, "UZ-REQ-002")
    assert "16384" in large.json()["detail"]

    gone = await world.http.post("/v1/specs", content=b"x" * (200 * KIB))
    assert gone.status_code == 410
