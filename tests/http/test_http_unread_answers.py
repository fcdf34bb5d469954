"""Answers that nobody takes: what they hold is bounded, and costs only those who leave them there."""

from collections import Counter
from contextlib import AsyncExitStack
from urllib.parse import urlsplit

from trio.testing import MockClock

from sexton_http.gateway.services import Services
from sexton_http.wire.open_connections import OpenConnections
from sexton_http.wire.timeouts import WATCH_S
from sexton_http.wire.unread_answers import OWN_BYTES
from tests.worlds.asgi_server import dial_port, let_the_server_read, serving, sized
from tests.worlds.http import HttpWorld, open_http_world
from tests.worlds.http2_client import (
    ACK,
    HEADERS,
    INITIAL_WINDOW,
    PREFACE,
    RST_STREAM,
    SETTINGS,
    Frame,
    Http2Client,
    get,
    settings,
    speaking,
    window,
)

MANY = 100
STREAMS = [2 * number + 1 for number in range(MANY)]
SMALL = 15_000
"""An answer that is not counted as a large one."""
ASKED = 80
"""Within what one address may ask for at once."""


async def ask_and_read_nothing(world: HttpWorld, path: str, count: int) -> tuple[Http2Client, Counter[str]]:
    """A client whose windows are closed, and how many answers of each status wait for it."""
    port = urlsplit(world.base_url).port
    assert port is not None
    client = Http2Client(await dial_port(port))
    await client.send(PREFACE, settings((INITIAL_WINDOW, 0)))
    await client.until(lambda got: got.kind == SETTINGS and bool(got.flags & ACK))
    streams = [2 * number + 1 for number in range(count)]
    await client.send(*(get(stream_id, path) for stream_id in streams))
    while set(streams) - client.heads.keys():
        [*_, got] = await client.until(lambda got: got.kind == HEADERS)
        assert got.kind == HEADERS
    return client, Counter(map(client.status, streams))


async def leave_unread(client: Http2Client) -> None:
    """Ask for many small answers, and let none of them come."""
    await client.send(*(get(stream_id, f"/{SMALL}") for stream_id in STREAMS))
    while set(STREAMS) - client.heads.keys():
        assert await client.frame() is not None


def last(got: Frame) -> bool:
    return got.stream_id == STREAMS[-1]


async def test_a_stranger_who_reads_nothing_takes_nothing_from_those_who_are_known(
    services: list[Services],
) -> None:
    async with open_http_world() as world:
        stranger, statuses = await ask_and_read_nothing(world, "/openapi.json", ASKED)
        [inside] = services
        held = inside.answer_bytes.now

        listed = await world.get(f"{world.ws}/events")
        changed = await world.post(f"{world.ws}/credentials", {"name": "one", "data": {"a": "b"}})
        began = await world.post("/v1/auth/sessions", None, None)
        await stranger.stream.aclose()

    assert statuses.keys() == {"200", "503"}, statuses
    assert 0 < held <= inside.answer_bytes.limit // 4, "all strangers together have one caller's share"
    assert (listed.status_code, changed.status_code, began.status_code) == (200, 201, 201)


async def test_answers_that_wait_longest_are_given_up_when_too_many_wait(mock_clock: MockClock) -> None:
    """Their handlers are done, so no ceiling of requests and no budget of answers counts them."""
    connections = OpenConnections()
    connections.unread.most = 2 * MANY * (SMALL + OWN_BYTES)
    async with serving(sized, connections=connections) as doors, AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(speaking(doors, (INITIAL_WINDOW, 0), alpn="h2")) for _ in range(3)
        ]
        held = list[int]()
        for client in clients:
            await leave_unread(client)
            held.append(connections.unread.now())
            mock_clock.jump(WATCH_S + 0.1)
            await let_the_server_read()
        kept = connections.unread.now()
        ended = [
            got.outcome() for got in await clients[0].until(lambda got: got.kind == RST_STREAM and last(got))
        ]
        await clients[2].send(*(window(stream_id, SMALL) for stream_id in STREAMS))
        answered = [len((await clients[2].answer(stream_id))[1]) for stream_id in STREAMS[:1]]

    assert held[2] > connections.unread.most >= held[1]
    assert 0 < kept <= connections.unread.most // 2
    assert Counter(ended)["reset CANCEL"] == MANY
    assert answered == [SMALL], "whoever has only begun to wait is spared"
