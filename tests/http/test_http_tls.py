"""TLS: every fault of it ends one connection, and HTTP/1.1 over it is the HTTP/1.1 of a plain socket."""

import math
import ssl
from dataclasses import replace
from typing import Any

import pytest
import trio
import trio.testing
from prometheus_client import CollectorRegistry
from trio.testing import MockClock

from sexton_http.app import create_app
from sexton_http.wire.http2_session import PREFACE
from sexton_http.wire.server import Doors
from sexton_http.wire.timeouts import HANDSHAKE_S, KEEP_ALIVE_S
from sexton_http.wire.tls import PIECE_BYTES, Tls
from tests.worlds.asgi_server import (
    Reader,
    answer,
    descriptors,
    dial,
    dial_port,
    echo,
    let_the_server_read,
    serving,
    settle,
    socket_of,
)
from tests.worlds.event_stream import Listener
from tests.worlds.http import HttpWorld

HEAD = b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n"
GET = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
LARGE = 1024 * 1024
HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
"""How a handshake begins."""
RECORD = b"\x17\x03\x03\x00\x40"
"""The head of a record of 64 bytes."""


async def shake_hands(doors: Doors, **settings: Any) -> trio.SSLStream[trio.SocketStream]:
    """A client that insists on being told the end of the session, with these settings of its context."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    for name, value in settings.items():
        setattr(context, name, value)
    stream = trio.SSLStream(await dial_port(doors.port), context)
    await stream.do_handshake()
    return stream


async def is_closed(stream: trio.abc.ReceiveStream) -> bool:
    try:
        return not await stream.receive_some()
    except trio.BrokenResourceError:
        return True


@pytest.mark.parametrize("beginning", [b"", HELLO], ids=["nothing", "half of a hello"])
async def test_a_handshake_that_does_not_end_is_cut(
    certificate: Tls, beginning: bytes, mock_clock: MockClock
) -> None:
    async with serving(echo, tls=certificate) as doors, await dial_port(doors.port) as stream:
        await stream.send_all(beginning)
        await let_the_server_read()
        mock_clock.jump(HANDSHAKE_S - 1)
        await let_the_server_read()
        mock_clock.jump(3)

        assert await is_closed(stream)


async def test_a_stop_waits_for_no_handshake(certificate: Tls) -> None:
    async with serving(echo, tls=certificate, grace_s=math.inf) as doors:
        stream = await dial_port(doors.port)
        await stream.send_all(HELLO)
        async with await dial(doors) as other:
            await other.send_all(GET)
            assert (await Reader(other).answer())[0] == 200

    assert await is_closed(stream)

    await stream.aclose()


async def test_a_record_that_never_becomes_whole_counts_as_no_byte(
    certificate: Tls, mock_clock: MockClock
) -> None:
    async with serving(echo, tls=certificate) as doors, await dial(doors) as stream:
        await socket_of(stream).send_all(RECORD + b"drip")
        await let_the_server_read()
        mock_clock.jump(KEEP_ALIVE_S + 2)

        assert await is_closed(stream)


async def test_junk_between_records_ends_only_its_connection(certificate: Tls) -> None:
    async with serving(echo, tls=certificate) as doors, await dial(doors) as healthy:
        async with await dial(doors) as stream:
            await stream.send_all(GET[:9])
            await socket_of(stream).send_all(RECORD + bytes(64))

            assert await is_closed(stream)
        await healthy.send_all(GET)

        assert (await Reader(healthy).answer())[0] == 200


async def test_whoever_leaves_in_or_after_a_handshake_leaves_no_descriptor(certificate: Tls) -> None:
    async with serving(echo, tls=certificate) as doors:
        await trio.testing.wait_all_tasks_blocked()  # Its loop of accepts has a descriptor of its own.
        before = descriptors()
        for _ in range(20):
            beginner = await dial_port(doors.port)
            await beginner.send_all(HELLO)
            await trio.aclose_forcefully(beginner)
            await trio.aclose_forcefully(await dial(doors))
            silent = await dial(doors)
            await silent.send_all(GET[:9])
            await socket_of(silent).send_eof()
            assert await is_closed(silent)
            await trio.aclose_forcefully(silent)
        await settle(lambda: descriptors() <= before)

        assert descriptors() <= before


async def test_the_end_of_the_session_is_said_before_that_of_the_socket(certificate: Tls) -> None:
    async with serving(echo, tls=certificate) as doors:
        stream = await shake_hands(doors)
        await stream.send_all(GET[:-2] + b"Connection: close\r\n\r\n")
        reader = Reader(stream)
        assert (await reader.answer())[0] == 200

        # Without `close_notify` this would be a BrokenResourceError.
        assert await stream.receive_some() == b""

        await stream.aclose()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_large_bodies_go_both_ways_and_the_connection_goes_on(
    certificate: Tls, version: ssl.TLSVersion
) -> None:
    async with serving(echo, tls=certificate) as doors:
        stream = await shake_hands(doors, maximum_version=version)
        reader = Reader(stream)
        for fill in (b"a", b"b"):
            body = fill * LARGE
            async with trio.open_nursery() as nursery:
                nursery.start_soon(stream.send_all, HEAD % LARGE + b"\r\n" + body)
                status, _, echoed = await reader.answer()
            assert (status, echoed == body) == (200, True)
        await trio.aclose_forcefully(stream)


async def test_versions_before_1_2_are_refused_and_renegotiation_is_off(certificate: Tls) -> None:
    context = certificate.context()

    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert context.options & ssl.OP_NO_RENEGOTIATION
    assert context.options & ssl.OP_NO_COMPRESSION


async def test_a_slow_reader_gets_all_of_an_answer_in_order(certificate: Tls) -> None:
    parts = [bytes([number]) * (3 * PIECE_BYTES + number) for number in range(64)]

    async def tell(_scope: Any, _receive: Any, send: Any) -> None:
        size = sum(map(len, parts))
        head = [(b"content-length", b"%d" % size)]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        for part in parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async with serving(tell, tls=certificate) as doors, await dial(doors) as stream:
        await stream.send_all(GET)
        await trio.testing.wait_all_tasks_blocked(0.05)  # The kernel takes no more, and the server waits.
        _, _, body = await Reader(stream).answer()

    assert body == b"".join(parts)


@pytest.mark.parametrize(
    ("offered", "spoken"), [("http/1.1", b"1.1"), ("unheard-of", b"1.1"), (None, b"1.1"), ("h2", b"2")]
)
async def test_alpn_decides_what_is_spoken(certificate: Tls, offered: str | None, spoken: bytes) -> None:
    async def tell(scope: dict[str, Any], _receive: Any, send: Any) -> None:
        await answer(send, 200, f"{scope['scheme']} {scope['http_version']}".encode())

    async with serving(tell, tls=certificate) as doors, await dial(doors, alpn=offered) as stream:
        if offered == "h2":
            await stream.send_all(PREFACE + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00")
            assert (await stream.receive_some())[3:5] == b"\x04\x00"  # The server's settings.
            return
        await stream.send_all(GET)

        assert (await Reader(stream).answer())[2] == b"https " + spoken


async def test_whoever_offers_nothing_may_begin_with_the_preface_of_http_2(certificate: Tls) -> None:
    async with serving(echo, tls=certificate) as doors, await dial(doors) as stream:
        await stream.send_all(PREFACE + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00")

        assert (await stream.receive_some())[3:5] == b"\x04\x00"


async def test_a_body_that_is_announced_is_asked_for_or_refused_as_without_tls(
    world: HttpWorld, certificate: Tls
) -> None:
    app = create_app(replace(world.ctx, registry=CollectorRegistry()))
    body = b'{"name":"patient"}'
    head = b"POST /v1/workspaces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    head += b"Expect: 100-continue\r\nContent-Length: %d\r\n" % len(body)
    bearer = b"Authorization: Bearer " + world.api_key.encode() + b"\r\n"
    async with serving(app, tls=certificate) as doors:
        async with await dial(doors) as stream:
            reader = Reader(stream)
            await stream.send_all(head + bearer + b"\r\n")
            assert (await reader.answer())[0] == 100

            await stream.send_all(body)
            assert (await reader.answer())[0] == 201
        async with await dial(doors) as stream:
            await stream.send_all(head + b"\r\n")
            status, fields, _ = await Reader(stream).answer()

    assert (status, b"connection: close" in fields) == (401, True)


async def test_a_stream_of_events_arrives_frame_by_frame(world: HttpWorld, certificate: Tls) -> None:
    app = create_app(replace(world.ctx, registry=CollectorRegistry()))
    zombie, token, lease = await world.working()
    path = f"{world.ws}/zombies/{zombie['zombie_id']}/events/stream"
    lines = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {world.api_key}\r\n\r\n"
    async with serving(app, tls=certificate) as doors, await dial(doors) as stream:
        await stream.send_all(lines.encode())
        listener = Listener(stream)
        await listener.head()
        assert listener.status == 200

        for name in ("one", "two"):
            frames = [{"kind": "tool_call_progress", "name": name, "elapsed_ms": 1}]
            shown = await world.post(
                f"/v1/runners/me/leases/{lease['lease_id']}/activity", {"frames": frames}, token
            )
            assert shown.status_code == 202, shown.text
            while (frame := await listener.frame())["kind"] != "tool_call_progress":
                pass
            assert frame["name"] == name
