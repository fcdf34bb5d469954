"""A body that came with its head is handed over without a wait, once, and never beside what was received."""

from typing import Any

import pytest

from sexton_http.gateway.request_body import UNCOUNTED_BYTES, read_body
from sexton_http.wire.http1_parser import Parser, Request

HEAD = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n"


def request_of(*parts: bytes) -> Request:
    """The first request of a connection that has brought these bytes so far."""
    parser = Parser()
    for part in parts:
        parser.feed(part)
    return parser.requests[0]


def test_a_body_that_is_here_is_taken_once() -> None:
    request = request_of(HEAD % 4 + b"ab", b"cd")

    assert [request.take_whole(), request.take_whole()] == [b"abcd", None]
    assert request.ended
    assert request_of(HEAD % 0).take_whole() == b""


def test_a_body_that_is_on_its_way_or_was_begun_is_not() -> None:
    begun = request_of(HEAD % 4 + b"abcd")
    begun.begun = True
    discarded = request_of(HEAD % 4 + b"abcd")
    discarded.discarding = True

    assert request_of(HEAD % 4 + b"abc").take_whole() is None
    assert begun.take_whole() is None
    assert discarded.take_whole() is None


class Kept:
    """The ticket, as far as the body is counted."""

    def __init__(self) -> None:
        self.size = 0

    def keep(self, size: int) -> None:
        self.size += size

    def pause(self) -> None:
        raise AssertionError("nothing is waited for")


@pytest.mark.parametrize(
    ("size", "limit", "read", "counted"),
    [
        (10, 10, True, 0),
        (11, 10, False, 0),
        (UNCOUNTED_BYTES + 1, UNCOUNTED_BYTES + 1, True, UNCOUNTED_BYTES + 1),
    ],
)
async def test_what_is_taken_is_bounded_and_counted_as_what_is_received(
    size: int, limit: int, *, read: bool, counted: int
) -> None:
    async def receive() -> dict[str, Any]:
        raise AssertionError("nothing is received")

    ticket: Any = Kept()
    body = await read_body(receive, ticket, limit, lambda: b"x" * size)

    assert (body == b"x" * size) is read
    assert ticket.size == counted
