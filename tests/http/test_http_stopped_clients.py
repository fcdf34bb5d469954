"""A client that stops in the midst of what it says is cut in time, and its neighbours notice nothing."""

import pytest
import trio
from trio.testing import MockClock

from sexton_http.wire.server import Doors
from sexton_http.wire.timeouts import READ_S
from sexton_http.wire.tls import Tls
from tests.worlds.asgi_server import Reader, dial, echo, let_the_server_read, serving
from tests.worlds.http2_client import DATA, POST, PREFACE, Http2Client, frame, headers, settings

STOPPED = 4
"""Clients that stop, of each kind."""
HEAD = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
MIDST = {
    "of a head": (None, HEAD[:20]),
    "of a body": (None, b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf"),
    "of the head of a frame": ("h2", PREFACE + settings() + headers(1)[:5]),
    "of a frame of a head": ("h2", PREFACE + settings() + headers(1)[:15]),
    "of a frame of a body": (
        "h2",
        PREFACE + settings() + headers(1, POST, end=False) + frame(DATA, 0, 1, bytes(1000))[:500],
    ),
    "of the preface": ("h2", PREFACE[:10]),
}


async def neighbours_are_served(doors: Doors) -> None:
    """One of each version, on connections that are open already and on new ones."""
    async with await dial(doors) as stream:
        await stream.send_all(HEAD)
        assert (await Reader(stream).answer())[0] == 200
    async with await dial(doors, alpn="h2") as stream:
        client = Http2Client(stream)
        await client.send(PREFACE, settings(), headers(1))
        assert (await client.answer(1))[0] == "200"


async def until_closed(stream: trio.abc.ReceiveStream) -> None:
    try:
        while await stream.receive_some():
            pass
    except trio.BrokenResourceError:
        pass


@pytest.mark.parametrize("where", MIDST)
async def test_whoever_stops_in_the_midst_is_cut_and_neighbours_go_on(
    where: str, mock_clock: MockClock, tls: Tls | None
) -> None:
    alpn, said = MIDST[where]
    async with serving(echo, tls=tls) as doors:
        stopped = [await dial(doors, alpn=alpn) for _ in range(STOPPED)]
        for stream in stopped:
            await stream.send_all(said)
        async with await dial(doors) as old:
            await old.send_all(HEAD)
            reader = Reader(old)
            assert (await reader.answer())[0] == 200

            mock_clock.jump(READ_S - 1)
            await neighbours_are_served(doors)
            await old.send_all(HEAD)
            assert (await reader.answer())[0] == 200

            mock_clock.jump(2)
            async with trio.open_nursery() as nursery:
                for stream in stopped:
                    nursery.start_soon(until_closed, stream)
                # A stream that is late ends first, and its connection when that is looked at again.
                for _ in range(4):
                    await let_the_server_read()
                    mock_clock.jump(1)
                nursery.start_soon(neighbours_are_served, doors)
            await old.send_all(HEAD)
            assert (await reader.answer())[0] == 200
        for stream in stopped:
            await trio.aclose_forcefully(stream)
