"""As much of HTTP/1.1 as a load client needs: whole requests out, whole answers in."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

HEAD_LIMIT = 65_536
"""Bytes of an answer's head, at most."""


class Answer(NamedTuple):
    """An answer, and when it was asked for and had; ns of the monotonic clock."""

    status: int
    body: bytes
    due_ns: int
    """When the request was to go out. In a closed loop that is when it did."""
    received_ns: int

    def json(self) -> Any:
        return orjson.loads(self.body)


class NotUnderstood(Exception):
    """An answer that this client has no words for."""


def request(
    method: str, path: str, *, host: str, token: str | None = None, body: bytes = b"", **headers: str
) -> bytes:
    """The bytes of a request, body included; names of ``headers`` are written with ``-`` for ``_``."""
    lines = [f"{method} {path} HTTP/1.1", f"host: {host}"]
    if token is not None:
        lines.append(f"authorization: Bearer {token}")
    if body:
        lines += ["content-type: application/json", f"content-length: {len(body)}"]
    elif method != "GET":
        lines.append("content-length: 0")
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def post_json(path: str, value: Mapping[str, Any], *, host: str, token: str | None = None) -> bytes:
    return request("POST", path, host=host, token=token, body=orjson.dumps(value))


def parse(buffer: bytes | bytearray) -> tuple[int, bytes, int] | None:
    r"""``(status, body, length of the whole)`` of the first answer; None when it is not all there.

    >>> parse(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
    (200, b'{}', 40)
    >>> parse(b"HTTP/1.1 204 \r\nx: y\r\n\r\nHTTP")
    (204, b'', 23)
    >>> parse(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{") is None
    True
    """
    end = buffer.find(b"\r\n\r\n")
    if end < 0:
        if len(buffer) > HEAD_LIMIT:
            raise NotUnderstood("a head without an end")
        return None
    status = int(buffer[9:12])
    start = end + 4
    head = bytes(buffer[:end]).lower()
    at = head.find(b"\r\ncontent-length:")
    if at < 0:
        if status not in (204, 304):
            raise NotUnderstood(f"an answer of unknown length: {bytes(buffer[:end])!r}")
        return status, b"", start
    stop = head.find(b"\r\n", at + 2)
    length = int(head[at + 17 : stop if stop > 0 else end])
    if len(buffer) < start + length:
        return None
    return status, bytes(buffer[start : start + length]), start + length
