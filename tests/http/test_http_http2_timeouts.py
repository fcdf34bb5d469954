"""Clients of HTTP/2 that stand still are ended in time, and hold up nobody."""

from contextlib import AsyncExitStack
from typing import Any

import trio
from trio.testing import MockClock

from sexton_http.wire.timeouts import KEEP_ALIVE_S, READ_S, WRITE_S
from sexton_http.wire.tls import Tls
from tests.worlds.asgi_server import echo, let_the_server_read, serving, sized
from tests.worlds.http2_client import (
    DATA,
    END_STREAM,
    GOAWAY,
    INITIAL_WINDOW,
    PING,
    POST,
    RST_STREAM,
    Http2Client,
    frame,
    get,
    headers,
    speaking,
    window,
)

LARGE = 64 * 1024
CALM = "goaway ENHANCE_YOUR_CALM"


async def test_a_stream_that_is_not_read_is_reset_and_the_others_go_on(
    mock_clock: MockClock, tls: Tls | None
) -> None:
    async with (
        serving(sized, tls=tls) as doors,
        speaking(doors, (INITIAL_WINDOW, 0), alpn="h2") as client,
    ):
        await client.send(get(1, f"/{LARGE}"), get(3, "/1000"))
        while {1, 3} - client.heads.keys():
            await client.frame()
        mock_clock.jump(WRITE_S - 1)
        await client.send(window(3, 1000))
        assert (await client.answer(3))[1] == bytes(1000)

        mock_clock.jump(2)
        [*_, got] = await client.until(lambda got: got.kind in {RST_STREAM, GOAWAY})
        assert (got.outcome(), got.stream_id) == ("reset CANCEL", 1)

        await client.send(get(5, "/0"))
        assert (await client.answer(5))[0] == "200"


async def test_a_connection_that_is_not_read_is_ended(mock_clock: MockClock) -> None:
    async with serving(sized) as doors, speaking(doors, (INITIAL_WINDOW, 1 << 30)) as client:
        await client.send(get(1, f"/{4 * LARGE}"), get(3, f"/{4 * LARGE}"))
        # Both heads are out, and as much of the bodies as the connection's window takes.
        while {1, 3} - client.heads.keys():
            await client.frame()
        mock_clock.jump(WRITE_S + 2)
        frames = await client.until(lambda got: got.kind == GOAWAY)

        assert frames[-1].outcome() == CALM
        assert await client.frame() is None


async def test_a_client_whose_kernel_takes_nothing_is_cut(mock_clock: MockClock, tls: Tls | None) -> None:
    ended = trio.Event()

    async def flood(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        try:
            for _ in range(1000):
                await send({"type": "http.response.body", "body": bytes(1 << 20), "more_body": True})
        finally:
            ended.set()

    async with (
        serving(flood, tls=tls) as doors,
        speaking(doors, (INITIAL_WINDOW, (1 << 31) - 1), alpn="h2") as client,
    ):
        await client.send(window(0, (1 << 31) - 1 - 65_535), headers(1))
        for _ in range(50):
            await let_the_server_read()
            if ended.is_set():
                break
            mock_clock.jump(WRITE_S + 1)

        assert ended.is_set()


async def test_a_body_that_does_not_come_ends_its_stream_only(mock_clock: MockClock) -> None:
    async with serving(echo) as doors, speaking(doors) as client:
        await client.send(headers(1, POST, end=False), frame(DATA, 0, 1, b"half"), headers(5))
        assert (await client.answer(5))[0] == "200"

        mock_clock.jump(READ_S - 1)
        await client.send(headers(7))
        assert (await client.answer(7))[0] == "200"

        mock_clock.jump(2)

        assert await client.answer(1) == ("reset CANCEL", b"")


async def test_a_head_that_does_not_come_ends_the_connection(mock_clock: MockClock) -> None:
    async with serving(echo) as doors, speaking(doors) as client:
        await client.send(frame(PING, 0, 0, bytes(8)), headers(1)[:12])
        await client.until(lambda got: got.kind == PING)
        mock_clock.jump(READ_S + 2)
        frames = await client.until(lambda got: got.kind == GOAWAY)

        assert frames[-1].outcome() == "goaway NO_ERROR"


async def test_clients_that_stand_still_within_a_frame_hold_up_nobody_and_are_ended(
    mock_clock: MockClock,
) -> None:
    """As frozen programs do: the connection stays, and the rest of the frame never comes."""
    begun = headers(1, POST, end=False) + frame(DATA, END_STREAM, 1, bytes(1000))
    async with serving(echo) as doors, AsyncExitStack() as stack:
        frozen = [await stack.enter_async_context(speaking(doors)) for _ in range(8)]
        for number, client in enumerate(frozen):
            await client.send(frame(PING, 0, 0, bytes(8)), begun[: -1 - 120 * number])
            await client.until(lambda got: got.kind == PING)
        async with speaking(doors) as client:
            beside = [await answer_of(client, stream_id) for stream_id in (1, 3, 5)]
        mock_clock.jump(READ_S + 2)
        ends = [(await client.until(lambda got: got.kind in {RST_STREAM, GOAWAY}))[-1] for client in frozen]

    assert beside == [("200", b"")] * 3
    assert {end.outcome() for end in ends} <= {"reset CANCEL", "goaway NO_ERROR"}


async def answer_of(client: Http2Client, stream_id: int) -> tuple[str, bytes]:
    await client.send(headers(stream_id))
    return await client.answer(stream_id)


async def test_an_idle_connection_is_kept_for_a_while_and_told_when_it_ends(mock_clock: MockClock) -> None:
    async with serving(echo) as doors, speaking(doors) as client:
        for number in range(3):
            mock_clock.jump(KEEP_ALIVE_S - 1)
            await client.send(headers(2 * number + 1))
            assert (await client.answer(2 * number + 1))[0] == "200"
        mock_clock.jump(KEEP_ALIVE_S + 1)
        frames = await client.until(lambda got: got.kind == GOAWAY)

        assert frames[-1].outcome() == "goaway NO_ERROR"
