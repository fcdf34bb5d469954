"""A client of HTTP/2 that leaves: what it is told, and that its connection ends in order."""

import struct

import pytest
from structlog.testing import capture_logs

from tests.worlds.asgi_server import echo, serving
from tests.worlds.http2_client import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    POST,
    RST_STREAM,
    Field,
    Frame,
    block,
    frame,
    headers,
    speaking,
)

LEAVES = frame(GOAWAY, 0, 0, struct.pack(">II", 0, 0))
TAKEN_BACK = frame(RST_STREAM, 0, 1, struct.pack(">I", 8))
CONNECT: tuple[Field, ...] = ((b":method", b"CONNECT"), (b":authority", b"x:80"))
NOTHING_UNDER_WAY = {
    "at once": b"",
    "after a request that it takes back": headers(1) + TAKEN_BACK,
    "after one whose body it takes back": headers(1, POST, end=False)
    + frame(DATA, 0, 1, b"abc")
    + TAKEN_BACK,
    "after a CONNECT that it takes back": headers(1, CONNECT) + TAKEN_BACK,
}


@pytest.mark.parametrize("before", NOTHING_UNDER_WAY.values(), ids=NOTHING_UNDER_WAY)
async def test_a_client_that_leaves_with_nothing_under_way_is_told_goodbye(before: bytes) -> None:
    with capture_logs() as logs:
        async with serving(echo) as doors, speaking(doors) as client:
            await client.send(before + LEAVES)
            frames = await client.until(lambda got: got.kind == GOAWAY)

            assert [got.outcome() for got in frames] == ["goaway NO_ERROR"]
            assert await client.frame() is None

    assert not logs


async def test_what_is_under_way_is_answered_before_the_client_is_told_goodbye() -> None:
    with capture_logs() as logs:
        async with serving(echo) as doors, speaking(doors) as client:
            await client.send(frame(HEADERS, END_HEADERS, 1, block(POST)), LEAVES)
            [told] = await client.until(lambda got: got.kind == GOAWAY)
            await client.send(frame(DATA, END_STREAM, 1, b"abc"))

            answered = await client.answer(1)
            rest = await client.until(lambda _: False)

    assert told.outcome() == "goaway NO_ERROR"
    assert answered == ("200", b"abc")
    assert {got.outcome() for got in rest} <= {"goaway NO_ERROR"}
    assert not logs


async def test_a_second_goodbye_takes_no_later_stream_for_served() -> None:
    """RFC 9113, 6.8: else the client would not ask again for what was refused."""
    async with serving(echo) as doors, speaking(doors) as client:
        await client.send(headers(1, POST, end=False), LEAVES)
        [first] = await client.until(lambda got: got.kind == GOAWAY)
        await client.send(headers(3), frame(HEADERS, 0, 5), frame(CONTINUATION, 0, 5) * 40)
        [*_, last] = await client.until(lambda got: got.kind == GOAWAY)

    assert (first.outcome(), last.outcome()) == ("goaway NO_ERROR", "goaway ENHANCE_YOUR_CALM")
    assert last_stream_of(last) <= last_stream_of(first) == 1


def last_stream_of(goodbye: Frame) -> int:
    return int.from_bytes(goodbye.payload[:4])
