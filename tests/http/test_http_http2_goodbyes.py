"""A client of HTTP/2 that leaves: what it is told, and that its connection ends in order."""

import struct

import pytest
from structlog.testing import capture_logs

from tests.worlds.asgi_server import echo, serving
from tests.worlds.http2_client import (
    END_HEADERS,
    GOAWAY,
    HEADERS,
    POST,
    RST_STREAM,
    Field,
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
    "after one whose body it takes back": headers(1, POST, end=False) + frame(0, 0, 1, b"abc") + TAKEN_BACK,
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
            await client.send(frame(0, 1, 1, b"abc"))

            assert told.outcome() == "goaway NO_ERROR"
            assert await client.answer(1) == ("200", b"abc")
            rest = await client.until(lambda _: False)

    assert {got.outcome() for got in rest} <= {"goaway NO_ERROR"}
    assert not logs
