"""Opens the doors, serves until told to stop, and lets what has begun come to its end."""

import ipaddress
import math
import ssl
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final
from wsgiref.handlers import format_date_time

import structlog
import trio
from hypercorn.config import Config
from hypercorn.trio.worker_context import WorkerContext

from sexton_http.wire.heads import MAX_HEAD_BYTES
from sexton_http.wire.http1 import Http1Connection
from sexton_http.wire.http2_connection import App, Connection, Live
from sexton_http.wire.stopping import Stop

GRACE_S: Final = 10.0
"""After the stop, requests that still run have so long."""
BACKLOG: Final = 2048
MAX_REQUESTS_PER_CONNECTION: Final = 100_000

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Tls:
    """PEM files; with TLS, HTTP/2 is offered by ALPN."""

    certificate: Path
    key: Path

    def problem(self) -> str | None:
        """Why no server can show this certificate, in words that name the file; None when one can."""
        for file in (self.certificate, self.key):
            try:
                file.read_bytes()
            except OSError as fault:
                return f"{file}: {fault.strerror}"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            # Without a password OpenSSL would ask for one at the terminal.
            context.load_cert_chain(self.certificate, self.key, password="")
        except (ssl.SSLError, ValueError) as fault:
            pair = f"{self.certificate} and {self.key}"
            return f"{pair} are no certificate and its key, without a password: {fault}"
        return None


@dataclass(frozen=True, slots=True)
class Doors:
    """Listening sockets and what they turned out to be bound to."""

    listeners: list[trio.SocketListener]
    host: str
    port: int
    secure: bool

    @property
    def base_url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.secure else 'http'}://{host}:{self.port}"

    @property
    def local_url(self) -> str:
        """Where the server is reached from its own machine, past any proxy."""
        if not ipaddress.ip_address(self.listeners[0].socket.getsockname()[0]).is_unspecified:
            return self.base_url
        host = "[::1]" if self.listeners[0].socket.family == trio.socket.AF_INET6 else "127.0.0.1"
        return f"{'https' if self.secure else 'http'}://{host}:{self.port}"


class ServerConfig(Config):
    """Hypercorn's settings as this server uses them; the date is spelled once a second."""

    errorlog = None
    accesslog = None
    h11_max_incomplete_size = MAX_HEAD_BYTES
    h2_max_concurrent_streams = 256
    keep_alive_max_requests = MAX_REQUESTS_PER_CONNECTION

    def __init__(self) -> None:
        self._second = -math.inf
        self._date: list[tuple[bytes, bytes]] = []

    def response_headers(self, protocol: str) -> list[tuple[bytes, bytes]]:
        del protocol
        now = time.time()
        if now - self._second >= 1:
            self._second = math.floor(now)
            self._date = [(b"date", format_date_time(now).encode("ascii"))]
        return self._date


async def open_doors(host: str, port: int, *, secure: bool = False) -> Doors:
    """Bind and listen; port 0 takes any that is free. Raises OSError when the address cannot be had."""
    listeners = await trio.open_tcp_listeners(port, host=host, backlog=BACKLOG)
    name = listeners[0].socket.getsockname()
    return Doors(listeners, host, name[1], secure)


async def serve(
    app: App,
    doors: Doors,
    *,
    stop: trio.Event | Stop,
    tls: Tls | None = None,
    grace_s: float = GRACE_S,
    quick: bool = True,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve ``app`` until ``stop``; then take nothing new, and end what is left after ``grace_s``.

    With ``quick`` HTTP/1.1 without TLS is read by llhttp and not by h11.

    Streams and long polls are to watch ``stop`` themselves: this only waits for them.
    """
    config = ServerConfig()
    if tls is not None:
        config.certfile, config.keyfile = str(tls.certificate), str(tls.key)
    ssl_context = config.create_ssl_context()
    context = WorkerContext(None)
    live = Live()

    async def handle(stream: trio.SocketStream | trio.SSLStream[trio.SocketStream]) -> None:
        first = b""
        if quick and isinstance(stream, trio.SocketStream):
            preface = await _serve_http1(app, config, context, live, stream)
            if preface is None:
                return
            first = preface
        await Connection(app, config, context, live, stream, first=first).run()

    async def accept(listener: trio.SocketListener) -> None:
        if ssl_context is None:
            await trio.serve_listeners(handle, [listener], handler_nursery=connections)
        else:
            door = trio.SSLListener(listener, ssl_context)
            await trio.serve_listeners(handle, [door], handler_nursery=connections)

    try:
        async with trio.open_nursery() as watching:
            watching.start_soon(live.watch)
            if live.hang_ups is not None:
                watching.start_soon(live.hang_ups.watch)
            async with trio.open_nursery() as connections:
                async with trio.open_nursery() as accepting:
                    for listener in doors.listeners:
                        accepting.start_soon(accept, listener)
                    task_status.started()
                    await stop.wait()
                    accepting.cancel_scope.cancel()
                await context.terminated.set()
                live.close_idle()
                connections.cancel_scope.deadline = trio.current_time() + grace_s
            watching.cancel_scope.cancel()
    finally:
        if live.hang_ups is not None:
            live.hang_ups.close()


async def _serve_http1(
    app: App, config: ServerConfig, context: WorkerContext, live: Live, stream: trio.SocketStream
) -> bytes | None:
    """None when the connection is done; else its first bytes, which are those of HTTP/2."""
    connection = Http1Connection(
        app, partial(config.response_headers, "h11"), context.terminated.is_set, live.hang_ups
    )
    live.connections.add(connection)
    preface = b""
    try:
        preface = await connection.run(stream)
    except* Exception as group:  # noqa: BLE001 - the border: a fault ends its connection, not the server
        log.info("connection_dropped", faults=[repr(fault) for fault in group.exceptions])
    finally:
        live.connections.discard(connection)
        if not preface:
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(stream)
    return preface or None
