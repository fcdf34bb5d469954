"""What HTTP is spoken over: a plain socket here, TLS beside it."""

import os
import socket
from collections.abc import Sequence
from typing import ClassVar, Final, Protocol

import trio

from sexton_http.wire import timeouts

RECEIVE_BYTES: Final = 64 * 1024
PART_BYTES: Final = 64 * 1024
"""Whoever takes less in ``WRITE_S`` is not reading."""
FRAME_BYTES: Final = 16 * 1024 + 9
"""The largest frame of HTTP/2 that nobody has to ask for. A buffer of several would be copied as it grows."""

End = tuple[str, int]
Ends = tuple[End, End]
"""The client's host and port, and the server's."""


class Transport(Protocol):
    """Bytes in both directions, in order. At most one task reads at a time, and at most one writes."""

    secure: ClassVar[bool]
    piece_bytes: ClassVar[int]
    """A large answer is best given to it in pieces of this size."""

    @property
    def descriptor(self) -> int:
        """The socket's; -1 once it is closed."""
        ...

    def ends(self) -> Ends:
        """Raises OSError when the client has gone already."""
        ...

    async def receive(self) -> bytes:
        """Wait for some bytes; none at the end, however it came."""
        ...

    def send_now(self, data: bytes) -> bool:
        """Give the kernel what it takes at once; whether that was all. Else call ``flush`` before the next.

        Raises OSError.
        """
        ...

    def send_pieces_now(self, pieces: Sequence[bytes]) -> bool:
        """The same of several, in this order; a few dozen at most."""
        ...

    async def flush(self) -> None:
        """Wait until the rest is sent. Cut short it leaves a torn stream, fit only to be closed.

        Raises OSError, trio.BrokenResourceError, trio.ClosedResourceError, and trio.TooSlowError when the
        client has taken less than ``PART_BYTES`` in ``WRITE_S``.
        """
        ...

    def finish(self) -> None:
        """Tell the client that nothing more comes. Reading goes on with ``discard``. Raises OSError."""
        ...

    async def discard(self) -> bool:
        """Wait for bytes and throw them away; False at the end."""
        ...

    async def close(self) -> None:
        """Close the socket, at once and for both directions."""
        ...


class PlainTransport:
    """A socket."""

    __slots__ = ("_fresh", "_rest", "_socket", "_stream")

    secure: ClassVar[bool] = False
    piece_bytes: ClassVar[int] = FRAME_BYTES

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._socket = stream.socket
        self._rest = b""
        self._fresh = True

    @property
    def descriptor(self) -> int:
        return self._socket.fileno()

    def ends(self) -> Ends:
        return ends_of(self._socket)

    async def receive(self) -> bytes:
        if self._fresh:
            # The first request has often come by the time that its connection is taken.
            self._fresh = False
            first = read_now(self._socket)
            if first is not None:
                return first
        return await receive_raw(self._socket)

    def send_now(self, data: bytes) -> bool:
        taken = write_now(self._socket, data)
        if taken == len(data):
            return True
        self._rest = data[taken:]
        return False

    def send_pieces_now(self, pieces: Sequence[bytes]) -> bool:
        taken = write_pieces_now(self._socket, pieces)
        if taken == sum(map(len, pieces)):
            return True
        self._rest = b"".join(pieces)[taken:]
        return False

    async def flush(self) -> None:
        rest, self._rest = self._rest, b""
        await send_while_taken(self._stream, rest)

    def finish(self) -> None:
        self._socket.shutdown(socket.SHUT_WR)

    async def discard(self) -> bool:
        return bool(await receive_raw(self._socket))

    async def close(self) -> None:
        await trio.aclose_forcefully(self._stream)


async def send_while_taken(stream: trio.SocketStream, data: bytes) -> None:
    """Send all of it, however long that takes, while the client goes on taking some. Raises as ``flush``."""
    view = memoryview(data)
    for start in range(0, len(view), PART_BYTES):
        with trio.fail_after(timeouts.WRITE_S):
            await stream.send_all(view[start : start + PART_BYTES])


def ends_of(sock: trio.socket.SocketType) -> Ends:
    """Hosts and ports; of IPv6 the other two numbers are left out."""
    peer, own = sock.getpeername(), sock.getsockname()
    return (peer[0], peer[1]), (own[0], own[1])


async def receive_raw(sock: trio.socket.SocketType) -> bytes:
    """Bytes as they came; none at the end, a reset included."""
    # `sock.recv` would try first, which is in vain whenever an answer has just been sent.
    while True:
        try:
            await trio.lowlevel.wait_readable(sock)
        except (OSError, ValueError, trio.ClosedResourceError):
            return b""  # It is closed, before or meanwhile.
        data = read_now(sock)
        if data is not None:
            return data


def read_now(sock: trio.socket.SocketType) -> bytes | None:
    """What is here; none at the end, a reset included. None: nothing is here yet."""
    try:
        return os.read(sock.fileno(), RECEIVE_BYTES)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def write_now(sock: trio.socket.SocketType, data: bytes) -> int:
    """How many bytes the kernel took at once. Raises OSError."""
    # An answer nearly always fits. `os.write` on the descriptor costs no checkpoint, where `sock.send` would.
    try:
        return os.write(sock.fileno(), data)
    except BlockingIOError:
        return 0


def write_pieces_now(sock: trio.socket.SocketType, pieces: Sequence[bytes]) -> int:
    """The same of several, one after the other. Raises OSError."""
    try:
        return os.writev(sock.fileno(), pieces)
    except BlockingIOError:
        return 0
