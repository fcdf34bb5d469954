"""Reads the body of a request, as much of it as its route takes and as there is room for."""

from collections.abc import Mapping
from typing import Any, Final

import trio

from sexton_http.bodies.numbers import read_number
from sexton_http.gateway.ticket import Ticket
from sexton_http.wire.asgi import Message, Receive, TakeBody

GONE: Final = b"\0gone"
"""What ``read_body`` gives for a client that left; told apart by identity."""
PROMPT_S: Final = 0.05
"""A body whose first part comes within this time of its head is not worth leaving one's place for."""
SHORT_DIGITS: Final = 9
"""A length of this many digits or fewer is read without a second look."""
UNCOUNTED_BYTES: Final = 16 * 1024
"""A body up to this size that came with its head is not worth counting: requests in flight are."""


async def read_body(
    receive: Receive, ticket: Ticket, limit: int, take: TakeBody | None = None
) -> bytes | None:
    """The whole body; None when it is over the limit, and then no more of it is kept.

    What came is counted with all other bodies until the ticket leaves. ``take`` spares those that came with
    their heads, which are nearly all, the waiting. Raises Full.
    """
    whole = None if take is None else take()
    if whole is not None:
        if len(whole) > limit:
            return None
        if len(whole) > UNCOUNTED_BYTES:
            ticket.keep(len(whole))
        return whole
    message: Message | None = None
    with trio.move_on_after(PROMPT_S):
        message = await receive()
    if message is None:
        ticket.pause()
        message = await receive()
    if message["type"] != "http.request":
        return GONE
    body: bytes = message["body"]
    if not message["more_body"] and len(body) <= UNCOUNTED_BYTES:
        return body if len(body) <= limit else None
    chunks, size = [body], len(body)
    while size <= limit:
        ticket.keep(len(chunks[-1]))
        if not message["more_body"]:
            return b"".join(chunks)
        ticket.pause()
        message = await receive()
        if message["type"] != "http.request":
            return GONE
        chunks.append(message["body"])
        size += len(message["body"])
    return None


def is_over(scope: Mapping[str, Any], limit: int) -> bool:
    """Whether the body says itself that it is too large: then it need not come."""
    for name, value in scope["headers"]:
        if name == b"content-length":
            if len(value) <= SHORT_DIGITS and value.isdigit():
                return int(value) > limit
            return bool(value.isdigit()) and read_number(value.decode("ascii"), limit) is None
    return False
