"""Reads the name that a TLS client asks for, without ending its TLS."""

from dataclasses import dataclass

HANDSHAKE = 22
CLIENT_HELLO = 1
SERVER_NAME = 0
ENCRYPTED_HELLO = 0xFE0D
RECORD_HEAD = 5
MAX_RECORD_BYTES = 1 << 14
MAX_HELLO_BYTES = 1 << 16
UNRECOGNISED_NAME = bytes((21, 3, 3, 0, 2, 2, 112))
"""The fatal alert ``unrecognized_name``, as a record."""


class Malformed(Exception):
    """Raised for what is no ClientHello, or one that two readers could read differently."""


@dataclass(frozen=True, slots=True)
class Hello:
    """``server_name`` is None where none was sent. With ``encrypted`` the name is the outer one."""

    server_name: str | None
    encrypted: bool = False


def read_hello(data: bytes) -> Hello | None:
    r"""Read the first flight of a client; None when more is needed. Raises ``Malformed``.

    >>> read_hello(b"\x16\x03\x01\x00\x05\x01") is None
    True
    >>> read_hello(b"GET / HTTP/1.1")
    Traceback (most recent call last):
    sexton_runner.egress.client_hello.Malformed: no TLS handshake
    """
    message = _first_message(data)
    return None if message is None else _read_message(message)


def _first_message(data: bytes) -> bytes | None:
    """Put the records together, of which one message may take several."""
    message = b""
    at = 0
    while True:
        if at < len(data) and data[at] != HANDSHAKE:
            raise Malformed("no TLS handshake")
        if at + 1 < len(data) and data[at + 1] != 3:  # noqa: PLR2004  (the major version of every TLS)
            raise Malformed("an unknown version of TLS")
        if len(data) - at < RECORD_HEAD:
            return None
        length = int.from_bytes(data[at + 3 : at + RECORD_HEAD])
        if not 0 < length <= MAX_RECORD_BYTES:
            raise Malformed("a TLS record of a wrong length")
        message += data[at + RECORD_HEAD : at + RECORD_HEAD + length]
        if message[0:1] not in (b"", bytes((CLIENT_HELLO,))):
            raise Malformed("a handshake that begins with no ClientHello")
        wanted = 4 + int.from_bytes(message[1:4])
        if wanted > MAX_HELLO_BYTES:
            raise Malformed("a ClientHello that is too long")
        at += RECORD_HEAD + length
        if len(message) >= 4 and len(message) >= wanted:  # noqa: PLR2004  (type and length)
            if len(message) > wanted:
                raise Malformed("something after the ClientHello")
            return message[4:]
        if at > len(data):
            return None


def _read_message(message: bytes) -> Hello:
    body = _Reader(message)
    body.take(2 + 32)  # version and random
    body.vector(1)  # session
    body.vector(2)  # ciphers
    body.vector(1)  # compression
    name: str | None = None
    seen: set[int] = set()
    extensions = _Reader(body.vector(2) if body.left() else b"")
    body.expect_end()
    while extensions.left():
        kind = int.from_bytes(extensions.take(2))
        content = extensions.vector(2)
        if kind in seen:
            raise Malformed("an extension that comes twice")
        seen.add(kind)
        if kind == SERVER_NAME:
            name = _read_server_name(content)
    return Hello(name, ENCRYPTED_HELLO in seen)


def _read_server_name(content: bytes) -> str:
    outer = _Reader(content)
    names = _Reader(outer.vector(2))
    outer.expect_end()
    kind, name = names.take(1), names.vector(2)
    names.expect_end()  # The standard allows one name of each kind, and there is one kind.
    if kind != b"\0" or not name.isascii() or not name:
        raise Malformed("a server name of an unknown kind")
    return name.decode("ascii")


class _Reader:
    """Takes a message apart from the front."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def left(self) -> int:
        return len(self._data) - self._at

    def take(self, count: int) -> bytes:
        if self.left() < count:
            raise Malformed("a ClientHello that is cut short")
        self._at += count
        return self._data[self._at - count : self._at]

    def vector(self, length_bytes: int) -> bytes:
        return self.take(int.from_bytes(self.take(length_bytes)))

    def expect_end(self) -> None:
        if self.left():
            raise Malformed("a ClientHello with something left over")
