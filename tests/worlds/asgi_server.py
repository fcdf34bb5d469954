"""Serves an ASGI app on a free port of loopback, and speaks to it in bytes."""

import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from sexton_http.wire.open_connections import OpenConnections
from sexton_http.wire.server import Doors, open_doors, serve
from sexton_http.wire.tls import Tls

App = Callable[..., Awaitable[None]]


@asynccontextmanager
async def serving(
    app: App,
    *,
    tls: Tls | None = None,
    connections: OpenConnections | None = None,
    grace_s: float = 1.0,
) -> AsyncIterator[Doors]:
    doors = await open_doors("127.0.0.1", 0, secure=tls is not None)
    stop = trio.Event()
    async with trio.open_nursery() as nursery:

        async def run(task_status: trio.TaskStatus[None]) -> None:
            await serve(
                app,
                doors,
                stop=stop,
                tls=tls,
                connections=connections,
                grace_s=grace_s,
                task_status=task_status,
            )

        await nursery.start(run)
        try:
            yield doors
        finally:
            stop.set()


async def echo(scope: dict[str, Any], receive: Callable[[], Any], send: Callable[[Any], Any]) -> None:
    """Answers with the body it was sent, once it has all of it."""
    body = b""
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body += message["body"]
        more = message["more_body"]
    await answer(send, 200, body)


async def deaf(scope: dict[str, Any], receive: Callable[[], Any], send: Callable[[Any], Any]) -> None:
    """Answers at once and never looks at the body."""
    await answer(send, 401, b"no")


async def sized(scope: dict[str, Any], _receive: Callable[[], Any], send: Callable[[Any], Any]) -> None:
    """Answers with as many bytes as the path names."""
    await answer(send, 200, bytes(int(scope["path"][1:])))


async def answer(send: Callable[[Any], Any], status: int, body: bytes) -> None:
    head = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body, "more_body": False})


Stream = trio.SocketStream | trio.SSLStream[trio.SocketStream]


async def dial(doors: Doors, *, alpn: str | None = None) -> Stream:
    """A connection to the doors, over TLS if they are secure; whoever answers there is believed."""
    plain = await dial_port(doors.port)
    if not doors.secure:
        return plain
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if alpn is not None:
        context.set_alpn_protocols([alpn])
    stream = trio.SSLStream(plain, context, https_compatible=True)
    await stream.do_handshake()
    return stream


async def dial_port(port: int) -> trio.SocketStream:
    return await trio.open_tcp_stream("127.0.0.1", port)


def socket_of(stream: Stream) -> trio.SocketStream:
    """What is beneath TLS, if there is TLS."""
    return stream.transport_stream if isinstance(stream, trio.SSLStream) else stream


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def settle(is_done: Callable[[], bool] = lambda: False) -> None:
    """Let what the clients have left behind come to its end; bounded."""
    for _ in range(200):
        if is_done():
            return
        await trio.sleep(0.01)


async def let_the_server_read() -> None:
    """Real sockets under a clock that stands: give the loop a few real turns."""
    for _ in range(20):
        await trio.lowlevel.checkpoint()
        await trio.to_thread.run_sync(_nap)


def _nap() -> None:
    """One turn of another thread, so that the loop polls its sockets in between."""
    os.sched_yield()


class Reader:
    """Reads answers off a stream; what follows one is kept for the next."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.rest = b""

    async def answer(self) -> tuple[int, bytes, bytes]:
        """Status, head and body of one answer; status 0 when the other side has closed before its end."""
        while b"\r\n\r\n" not in self.rest:
            if not await self._more():
                return 0, self.rest, b""
        head, _, self.rest = self.rest.partition(b"\r\n\r\n")
        fields = dict(line.split(b": ", 1) for line in head.lower().split(b"\r\n")[1:])
        length = int(fields.get(b"content-length", b"0"))
        while len(self.rest) < length:
            if not await self._more():
                return 0, head, self.rest
        body, self.rest = self.rest[:length], self.rest[length:]
        return int(head.split(b" ")[1]), head, body

    async def is_closed(self) -> bool:
        return not await self._more()

    async def _more(self) -> bool:
        try:
            data = await self.stream.receive_some(65536)
        except trio.BrokenResourceError:
            return False
        self.rest += data
        return bool(data)
