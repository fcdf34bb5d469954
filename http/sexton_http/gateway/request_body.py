"""Reads the body of a request, as much of it as its route takes."""

from collections.abc import Mapping
from typing import Any, Final

from sexton_http.bodies.numbers import read_number
from sexton_http.wire.asgi import Receive

GONE: Final = b"\0gone"
"""What ``read_body`` gives for a client that left; told apart by identity."""


async def read_body(scope: Mapping[str, Any], receive: Receive, limit: int) -> bytes | None:
    """The whole body; None when it is over the limit, and then no more of it is kept."""
    if is_over(scope, limit):
        return None
    message = await receive()
    if message["type"] != "http.request":
        return GONE
    body: bytes = message["body"]
    if not message["more_body"]:
        return body if len(body) <= limit else None
    chunks, size = [body], len(body)
    while message["more_body"]:
        if size > limit:
            return None
        message = await receive()
        if message["type"] != "http.request":
            return GONE
        chunks.append(message["body"])
        size += len(message["body"])
    return b"".join(chunks) if size <= limit else None


def is_over(scope: Mapping[str, Any], limit: int) -> bool:
    """Whether the body says itself that it is too large: then it need not come."""
    for name, value in scope["headers"]:
        if name == b"content-length":
            return bool(value.isdigit()) and read_number(value.decode("ascii"), limit) is None
    return False
