"""Builds the first message of a TLS client, also such as no honest client sends."""

import os


def client_hello(
    *,
    name: str | None,
    second: str | None = None,
    twice: bool = False,
    encrypted: bool = False,
    record: int = 1 << 14,
) -> bytes:
    """Give a ClientHello in records of at most ``record`` bytes."""
    names = [one for one in (name, second) if one is not None]
    entries = b"".join(b"\0" + vector(2, one.encode("latin-1")) for one in names)
    extensions = b""
    if names:
        extensions += b"\0\0" + vector(2, vector(2, entries))
        extensions *= 2 if twice else 1
    if encrypted:
        extensions += b"\xfe\x0d" + vector(2, os.urandom(40))
    extensions += b"\x00\x2b" + vector(2, vector(1, b"\x03\x04"))
    body = b"\x03\x03" + os.urandom(32) + vector(1, b"") + vector(2, b"\x13\x01") + vector(1, b"\0")
    body += vector(2, extensions)
    message = b"\x01" + vector(3, body)
    pieces = (message[at : at + record] for at in range(0, len(message), record))
    return b"".join(b"\x16\x03\x01" + vector(2, piece) for piece in pieces)


def vector(length_bytes: int, data: bytes) -> bytes:
    return len(data).to_bytes(length_bytes) + data
