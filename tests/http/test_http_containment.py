"""What a hostile or clumsy client does to one connection stays in that connection."""

import os
import random
import socket
import struct
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from sexton_http.wire.server import Doors
from sexton_http.wire.timeouts import DRAIN_BYTES, KEEP_ALIVE_S, READ_S, WRITE_S
from sexton_http.wire.tls import Tls
from tests.worlds.asgi_server import (
    Reader,
    deaf,
    descriptors,
    dial,
    echo,
    let_the_server_read,
    serving,
    settle,
    socket_of,
)

GET = b"GET /a HTTP/1.1\r\nHost: x\r\n"
POST = b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
WEBSOCKET = GET + (
    b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
H2C = GET + (
    b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n\r\n"
)
FRAGMENTS = (
    GET + b"\r\n",
    GET + b"Connection: close\r\n\r\n",
    POST + b"Content-Length: 20\r\n\r\n",
    POST + b"Transfer-Encoding: chunked\r\n\r\n",
    POST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
    POST + b"Content-Length: -1\r\n\r\n",
    b"5\r\nhello\r\n",
    b"0\r\n\r\n",
    b"ffffffffffffffffff\r\n",
    b'{"a":1}',
    b"\x00\xff\r\n\r\n",
    b"TRACE / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n",
    b"CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET http://x/a HTTP/1.1\r\nHost: x\r\n\r\n",
    GET + b"Expect: 100-continue\r\nContent-Length: 4\r\n\r\n",
    b"abcd",
    WEBSOCKET,
    b"\x81\x85\x00\x00\x00\x00hello",
    H2C,
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
    b"\x00\x00\x04\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00",
    b"HEAD / HTTP/1.0\r\n\r\n",
    GET + b"X: " + b"y" * 70_000,
)
ROUNDS = int(os.environ.get("SEXTON_HOSTILE", "250"))
"""Connections that are opened and abused; a hundred thousand take some minutes."""


async def is_alive(doors: Doors) -> bool:
    async with await dial(doors) as stream:
        await stream.send_all(GET + b"\r\n")
        status, _, _ = await Reader(stream).answer()
        return status in {200, 401}


@pytest.mark.parametrize("app", [echo, deaf])
async def test_a_server_outlives_whatever_bytes_it_is_sent_and_keeps_no_descriptor(
    app: Any, tls: Tls | None
) -> None:
    rng = random.Random(20)
    async with serving(app, tls=tls) as doors:
        assert await is_alive(doors)

        await settle()
        before = descriptors()
        for _ in range(ROUNDS):
            await be_hostile(doors, rng)
        assert await is_alive(doors)

        await settle(lambda: descriptors() <= before)
        assert descriptors() <= before


async def be_hostile(doors: Doors, rng: random.Random) -> None:
    stream = await dial(doors)
    try:
        for fragment in rng.choices(FRAGMENTS, k=rng.randint(1, 5)):
            await stream.send_all(fragment)
            if rng.random() < 0.5:
                await trio.lowlevel.checkpoint()
            if rng.random() < 0.3:
                with trio.move_on_after(0.002):
                    await stream.receive_some(4096)
        if rng.random() < 0.3:
            await socket_of(stream).send_eof()
        if rng.random() < 0.4:
            socket_of(stream).setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    except (trio.BrokenResourceError, OSError):
        pass
    finally:
        await trio.aclose_forcefully(stream)


async def test_an_upgrade_to_a_websocket_is_passed_over_and_its_junk_closes_only_itself(
    tls: Tls | None,
) -> None:
    async with serving(echo, tls=tls) as doors:
        async with await dial(doors) as stream:
            await stream.send_all(WEBSOCKET + b"\x81\x85\x00junk!")
            status, _, _ = await Reader(stream).answer()

            assert status == 200
        assert await is_alive(doors)


async def test_an_upgrade_to_h2c_is_answered_in_http_1(tls: Tls | None) -> None:
    async with serving(echo, tls=tls) as doors:
        async with await dial(doors) as stream:
            await stream.send_all(H2C)
            status, head, _ = await Reader(stream).answer()

            assert status == 200
            assert head.startswith(b"HTTP/1.1")
        assert await is_alive(doors)


async def test_a_body_is_read_although_its_request_offers_h2c(tls: Tls | None) -> None:
    offer = H2C.removeprefix(GET)
    async with serving(echo, tls=tls) as doors:
        async with await dial(doors) as stream:
            await stream.send_all(POST + b"Content-Length: 5\r\n" + offer)
            await stream.send_all(b"hello")
            status, head, body = await Reader(stream).answer()

            assert (status, body) == (200, b"hello")
            assert b"connection: close" in head.lower()
        assert await is_alive(doors)


@pytest.mark.parametrize("app", [echo, deaf])
async def test_a_body_that_comes_after_its_head_does_not_hang_the_connection(
    app: Any, tls: Tls | None
) -> None:
    body = b'{"a":1}'
    head = POST + b"Content-Length: %d\r\n\r\n" % len(body)
    async with serving(app, tls=tls) as doors:
        for _ in range(20):
            async with await dial(doors) as stream:
                reader = Reader(stream)
                for _ in range(2):
                    await stream.send_all(head)
                    await trio.sleep(0.002)
                    await stream.send_all(body)
                    status, _, _ = await reader.answer()
                    assert status in {200, 401}


async def test_an_early_answer_to_an_endless_body_arrives_and_closes_the_connection(tls: Tls | None) -> None:
    async with serving(deaf, tls=tls) as doors, await dial(doors) as stream:
        reader = Reader(stream)
        answers: list[tuple[int, bytes, bytes]] = []

        async def send_for_ever() -> None:
            await stream.send_all(POST + b"Content-Length: 1000000000\r\n\r\n")
            try:
                for _ in range(4 * DRAIN_BYTES // 65536):
                    await stream.send_all(bytes(65536))
            except trio.BrokenResourceError:
                pass

        async with trio.open_nursery() as nursery:
            nursery.start_soon(send_for_ever)
            answers.append(await reader.answer())
            nursery.cancel_scope.cancel()

    [(status, head, body)] = answers

    assert (status, body) == (401, b"no")
    assert b"connection: close" in head.lower()


async def test_pipelined_requests_are_answered_in_order(tls: Tls | None) -> None:
    async with serving(echo, tls=tls) as doors, await dial(doors) as stream:
        reader = Reader(stream)
        for word in (b"one", b"two"):
            await stream.send_all(POST + b"Content-Length: 3\r\n\r\n" + word)

        assert [(await reader.answer())[2] for _ in range(2)] == [b"one", b"two"]


async def test_a_handler_that_crashes_costs_its_client_the_answer_and_nobody_else(tls: Tls | None) -> None:
    async def broken(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/crash":
            raise RuntimeError("handler")
        await echo(scope, receive, send)

    async with serving(broken, tls=tls) as doors:
        async with await dial(doors) as stream:
            await stream.send_all(b"GET /crash HTTP/1.1\r\nHost: x\r\n\r\n")
            status, _, _ = await Reader(stream).answer()

            assert status == 500
        assert await is_alive(doors)


@pytest.mark.parametrize(
    "beginning",
    [b"GET /a HT", POST + b"Content-Length: 9\r\n\r\nhalf"],
    ids=["in its head", "in its body"],
)
async def test_a_sender_that_stalls_is_cut(beginning: bytes, mock_clock: MockClock, tls: Tls | None) -> None:
    async with serving(echo, tls=tls) as doors, await dial(doors) as stream:
        await stream.send_all(beginning)
        await let_the_server_read()
        mock_clock.jump(READ_S - 1)
        await stream.send_all(b"T")
        await let_the_server_read()
        mock_clock.jump(2)

        assert await Reader(stream).is_closed()


async def test_an_idle_connection_is_kept_for_a_while_and_then_closed(
    mock_clock: MockClock, tls: Tls | None
) -> None:
    async with serving(echo, tls=tls) as doors, await dial(doors) as stream:
        reader = Reader(stream)
        for _ in range(3):
            mock_clock.jump(KEEP_ALIVE_S - 1)
            await stream.send_all(GET + b"\r\n")
            status, _, _ = await reader.answer()
            assert status == 200
        await let_the_server_read()
        mock_clock.jump(KEEP_ALIVE_S + 1)

        assert await reader.is_closed()


async def test_a_request_that_takes_long_to_answer_is_no_stalled_sender(
    mock_clock: MockClock, tls: Tls | None
) -> None:
    begun, go = trio.Event(), trio.Event()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        begun.set()
        await go.wait()
        await echo(scope, receive, send)

    async with serving(slow, tls=tls) as doors, await dial(doors) as stream:
        await stream.send_all(GET + b"\r\n")
        await begun.wait()
        await let_the_server_read()
        mock_clock.jump(10 * READ_S)
        go.set()
        status, _, _ = await Reader(stream).answer()

        assert status == 200


async def test_a_client_that_reads_nothing_is_cut(mock_clock: MockClock, tls: Tls | None) -> None:
    ended = trio.Event()

    async def flood(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        try:
            while True:
                await send({"type": "http.response.body", "body": bytes(1 << 20), "more_body": True})
        finally:
            ended.set()

    async with serving(flood, tls=tls) as doors, await dial(doors) as stream:
        await stream.send_all(GET + b"\r\n")
        for _ in range(50):
            await let_the_server_read()
            if ended.is_set():
                break
            mock_clock.jump(WRITE_S + 1)

        assert ended.is_set()


async def test_a_stop_closes_idle_connections_at_once_and_lets_a_running_request_end(
    mock_clock: MockClock, tls: Tls | None
) -> None:
    begun, go = trio.Event(), trio.Event()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/slow":
            begun.set()
            await go.wait()
        await echo(scope, receive, send)

    async with trio.open_nursery() as nursery:
        async with serving(slow, tls=tls) as doors:
            idle, busy = await dial(doors), await dial(doors)
            await idle.send_all(GET + b"\r\n")
            assert (await Reader(idle).answer())[0] == 200

            await busy.send_all(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
            await begun.wait()

            async def let_go() -> None:
                assert await Reader(idle).is_closed()
                go.set()

            nursery.start_soon(let_go)
        status, _, _ = await Reader(busy).answer()
        assert status == 200
        assert await Reader(busy).is_closed()

        for stream in (idle, busy):
            await stream.aclose()
