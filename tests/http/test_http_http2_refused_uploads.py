"""Uploads that are refused before they have come cost nothing but themselves, however much is on its way."""

import struct
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from sexton_http.wire.http2_calm import IDLE_BURST
from sexton_http.wire.http2_session import CONNECTION_WINDOW_BYTES, MAX_STREAMS, STREAM_WINDOW_BYTES
from sexton_http.wire.timeouts import READ_S
from sexton_http.wire.tls import Tls
from tests.worlds.asgi_server import answer, echo, serving
from tests.worlds.http2_client import (
    DATA,
    END_STREAM,
    GET,
    GOAWAY,
    PING,
    POST,
    RST_STREAM,
    WINDOW_UPDATE,
    Frame,
    Http2Client,
    frame,
    headers,
    speaking,
)

FRAME = 16 * 1024
LARGE = (b"content-length", b"99999999")
PINGED = frame(PING, 0, 0, bytes(8))
CALM = "goaway ENHANCE_YOUR_CALM"


class Door:
    """An app that refuses uploads to all paths but ``/echo``, and answers a GET when it is let."""

    def __init__(self) -> None:
        self.begun = 0
        self.go = trio.Event()

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        self.begun += 1
        if scope["method"] == "GET":
            await self.go.wait()
            await answer(send, 200, b"done")
        elif scope["path"] == "/echo":
            await echo(scope, receive, send)
        else:
            await answer(send, 401, b"no")


def upload(stream_id: int) -> bytes:
    """The head of one that is refused without being read."""
    return headers(stream_id, (*POST, LARGE), end=False)


def window_full(stream_id: int) -> bytes:
    """As much body as a client may send before it hears of anything."""
    return frame(DATA, 0, stream_id, bytes(FRAME)) * (STREAM_WINDOW_BYTES // FRAME)


async def until_reset(client: Http2Client, streams: Sequence[int]) -> list[Frame]:
    """All frames until each of these streams was reset."""
    left = set(streams)

    def is_last(got: Frame) -> bool:
        if got.kind == RST_STREAM:
            left.discard(got.stream_id)
        return not left or got.kind == GOAWAY

    return await client.until(is_last)


async def until_taken(client: Http2Client) -> list[Frame]:
    """All frames until the server has looked at what was sent."""
    await client.send(PINGED)
    return await client.until(lambda got: got.kind in {PING, GOAWAY})


def given_back(frames: Sequence[Frame]) -> int:
    """How many bytes more the connection may carry."""
    updates = [got for got in frames if got.kind == WINDOW_UPDATE and got.stream_id == 0]
    return sum(struct.unpack(">I", got.payload)[0] for got in updates)


async def test_uploads_that_are_refused_at_once_do_no_harm_to_their_neighbour(tls: Tls | None) -> None:
    """Each has sent what its window allows before it hears that it is refused."""
    door, refused = Door(), (3, 5, 7)
    async with serving(door, tls=tls) as doors, speaking(doors, alpn="h2") as client:
        await client.send(headers(1, GET), *map(upload, refused))
        resets = await until_reset(client, refused)
        await client.send(*map(window_full, refused))
        [*_, last] = await until_taken(client)
        door.go.set()
        neighbour = await client.answer(1)

    assert len(refused) * STREAM_WINDOW_BYTES > IDLE_BURST
    assert [got.outcome() for got in resets if got.outcome()] == ["reset NO_ERROR"] * len(refused)
    assert last.kind == PING
    assert neighbour == ("200", b"done")


async def test_uploads_beyond_the_bound_of_streams_may_be_on_their_way_too() -> None:
    door, good = Door(), [2 * number + 1 for number in range(MAX_STREAMS)]
    refused = [good[-1] + 2 * number for number in (1, 2, 3)]
    async with serving(door) as doors, speaking(doors) as client:
        await client.send(*(headers(stream_id, GET) for stream_id in good), *map(upload, refused))
        resets = await until_reset(client, refused)
        await client.send(*map(window_full, refused))
        [*_, last] = await until_taken(client)
        door.go.set()
        neighbour = await client.answer(1)

    assert [got.outcome() for got in resets if got.outcome()] == ["reset REFUSED_STREAM"] * len(refused)
    assert last.kind == PING
    assert neighbour[0] == "200"


async def test_what_was_on_its_way_gives_the_connections_window_back() -> None:
    rounds, frames = 6, list[Frame]()
    async with serving(Door()) as doors, speaking(doors) as client:
        for number in range(rounds):
            refused = (4 * number + 1, 4 * number + 3)
            await client.send(*map(upload, refused))
            frames += await until_reset(client, refused)
            await client.send(*map(window_full, refused))
            frames += await until_taken(client)

    sent = 2 * rounds * STREAM_WINDOW_BYTES

    assert frames[-1].kind == PING
    assert sent - given_back(frames) <= CONNECTION_WINDOW_BYTES // 2


@pytest.mark.parametrize("came", [9, 5_000, FRAME + 8], ids=["nothing", "a part", "all but a byte"])
async def test_an_upload_that_is_refused_within_a_frame_gives_all_of_it_back(came: int) -> None:
    """``came``: bytes of the frame, its head included, before the server has answered."""
    rounds, frames = 40, list[Frame]()
    async with serving(Door()) as doors, speaking(doors) as client:
        for number in range(rounds):
            stream_id = 2 * number + 1
            body = frame(DATA, 0, stream_id, bytes(FRAME))
            await client.send(upload(stream_id), body[:came])
            frames += await client.until(lambda got: got.kind in {DATA, GOAWAY})
            await client.send(body[came:])
            frames += await until_reset(client, (stream_id,))
            frames += await until_taken(client)
        last = 2 * rounds + 1
        await client.send(headers(last, [*POST[:2], (b":path", b"/echo"), POST[3]], end=False))
        await client.send(frame(DATA, END_STREAM, last, b"whole"))
        echoed = await client.answer(last)

    assert rounds * FRAME > 2 * CONNECTION_WINDOW_BYTES
    assert frames[-1].kind == PING
    assert rounds * FRAME - given_back(frames) <= CONNECTION_WINDOW_BYTES // 2
    assert echoed == ("200", b"whole")


async def test_an_upload_is_reset_at_the_end_of_the_frame_under_way_and_not_later() -> None:
    """The next frame has begun with the same bytes: a client that goes on sending is stopped all the same."""
    body = frame(DATA, 0, 1, bytes(FRAME))
    async with serving(Door()) as doors, speaking(doors) as client:
        await client.send(upload(1), body[:100])
        await client.until(lambda got: got.kind == DATA)
        await client.send(body[100:], body[:100])
        [*_, last] = await client.until(lambda got: bool(got.outcome()))

    assert (last.outcome(), last.stream_id) == ("reset NO_ERROR", 1)


async def test_an_upload_that_ends_with_the_frame_under_way_is_not_reset() -> None:
    body = frame(DATA, END_STREAM, 1, b"short")
    async with serving(Door()) as doors, speaking(doors) as client:
        await client.send(headers(1, (*POST, (b"expect", b"100-continue")), end=False), body[:10])
        await client.until(lambda got: got.kind == DATA)
        await client.send(body[10:])
        frames = await until_taken(client)

    assert [got.outcome() for got in frames if got.outcome()] == []


async def test_a_client_that_stands_still_within_a_frame_of_a_refused_upload_is_ended(
    mock_clock: MockClock,
) -> None:
    async with serving(Door()) as doors, speaking(doors) as client:
        await client.send(upload(1), frame(DATA, 0, 1, bytes(FRAME))[:100])
        assert await client.answer(1) == ("401", b"no")

        mock_clock.jump(READ_S + 2)
        [*_, last] = await client.until(lambda got: got.kind == GOAWAY)

        assert last.outcome() == "goaway NO_ERROR"


@pytest.mark.parametrize("used", [0, 3], ids=["an open window", "a window that was used"])
async def test_whoever_sends_more_than_could_be_on_its_way_is_told_to_calm_down(
    used: int, mock_clock: MockClock
) -> None:
    """``used``: frames of body that nobody has read, so that much less could be on its way. Time stands."""
    body, go = frame(DATA, 0, 1, bytes(FRAME)), trio.Event()

    async def unmoved(_scope: Any, _receive: Any, _send: Any) -> None:
        await go.wait()

    async with serving(unmoved) as doors, speaking(doors) as client:
        await client.send(upload(1), body * used)
        await until_taken(client)
        mock_clock.jump(READ_S + 1)
        [*_, reset] = await until_reset(client, (1,))
        await client.send(body * (STREAM_WINDOW_BYTES // FRAME - used))
        await client.send(body * (int(IDLE_BURST) // len(body)))
        [*_, within] = await until_taken(client)
        await client.send(body)
        [*_, beyond] = await until_taken(client)
        go.set()

    assert reset.outcome() == "reset CANCEL"
    assert within.kind == PING
    assert beyond.outcome() == CALM


FLOODS = {
    "pings": PINGED,
    "DATA without data": frame(DATA, 0, 1),
    "DATA of a whole body": frame(DATA, 0, 3, bytes(100)),
    "unknown frames": frame(0xEE, 0, 1, bytes(100)),
}


@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS)
async def test_nothing_but_the_body_that_was_refused_is_allowed_for(flood: bytes) -> None:
    """The body of stream 1 may be on its way; that of stream 3 has come, and is answered."""
    batch = flood * (int(IDLE_BURST) // len(flood) // 2)
    async with serving(Door()) as doors, speaking(doors) as client, trio.open_nursery() as nursery:
        await client.send(upload(1))
        await until_reset(client, (1,))
        await client.send(headers(3, POST))
        assert await client.answer(3) == ("401", b"no")

        last: list[str] = []

        async def hear() -> None:
            last.append((await client.until(lambda got: got.kind == GOAWAY))[-1].outcome())

        nursery.start_soon(hear)
        with suppress(trio.BrokenResourceError):
            await client.send(*[batch] * 3)

    assert last == [CALM]
