"""Opens the doors, serves until told to stop, and lets what has begun come to its end."""

import ipaddress
from dataclasses import dataclass
from functools import partial
from typing import Final

import structlog
import trio

from sexton_http.wire import timeouts
from sexton_http.wire.asgi import App
from sexton_http.wire.date_header import DateHeader
from sexton_http.wire.hang_ups import CAN_TELL, HangUps
from sexton_http.wire.http1 import Http1Connection
from sexton_http.wire.http2 import Http2Connection
from sexton_http.wire.live_certificate import LiveCertificate
from sexton_http.wire.open_connections import OpenConnections, Place
from sexton_http.wire.relay import Relay
from sexton_http.wire.stop_signal import Stop
from sexton_http.wire.tls import HTTP1, Handshake, Tls, TlsTransport
from sexton_http.wire.transport import PlainTransport

BACKLOG: Final = 2048

log = structlog.get_logger()


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
    tls: Tls | LiveCertificate | None = None,
    connections: OpenConnections | None = None,
    relay: Relay | None = None,
    grace_s: float = timeouts.GRACE_S,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve ``app`` until ``stop``; then take nothing new, and end what is left after ``grace_s``.

    ``connections`` knows how many there may be. ``relay``: the way to the other workers. Streams and long
    polls are to watch ``stop`` themselves: this only waits for them. Raises OSError when the files of ``tls``
    cannot be used.
    """
    server = _Server(app, tls, connections or OpenConnections())
    try:
        async with trio.open_nursery() as watching:
            watching.start_soon(server.open.watch)
            if server.certificate is not None:
                watching.start_soon(server.certificate.watch)
            if server.hang_ups is not None:
                watching.start_soon(server.hang_ups.watch)
            async with trio.open_nursery() as handlers:
                async with trio.open_nursery() as accepting:
                    for listener in doors.listeners:
                        accepting.start_soon(
                            partial(trio.serve_listeners, server.handle, [listener], handler_nursery=handlers)
                        )
                    if relay is not None:
                        accepting.start_soon(relay.run)
                    task_status.started()
                    await stop.wait()
                    accepting.cancel_scope.cancel()
                server.stop()
                handlers.cancel_scope.deadline = trio.current_time() + grace_s
            watching.cancel_scope.cancel()
    finally:
        if server.hang_ups is not None:
            server.hang_ups.close()


class _Server:
    """What all connections of one server share."""

    def __init__(self, app: App, tls: Tls | LiveCertificate | None, connections: OpenConnections) -> None:
        self.open = connections
        self.hang_ups = HangUps() if CAN_TELL else None
        self._app = app
        self.certificate = LiveCertificate(tls) if isinstance(tls, Tls) else tls
        self._date = DateHeader()
        self._stopping = Stop()

    def stop(self) -> None:
        self._stopping.set()
        self.open.close_idle()

    async def handle(self, stream: trio.SocketStream) -> None:
        """Serve one connection to its last descriptor, with every fault of it kept inside."""
        shown = self.certificate
        transport = PlainTransport(stream) if shown is None else TlsTransport(stream, shown.context)
        try:
            place = self.open.enter(transport.ends()[0][0])
        except OSError:
            await transport.close()  # The client has gone again.
            return
        try:
            await self._speak(transport, place)
        except* Exception as group:  # noqa: BLE001 - the border: a fault ends its connection, not the server
            log.info("connection_dropped", faults=[repr(fault) for fault in group.exceptions])
        finally:
            self.open.leave(place)
            with trio.CancelScope(shield=True):
                await transport.close()

    async def _speak(self, transport: PlainTransport | TlsTransport, place: Place) -> None:
        first = b""
        spoken: str | None = HTTP1
        if isinstance(transport, TlsTransport):
            handshake = Handshake(transport)
            with place.watching(handshake):
                spoken = await handshake.run()
        if spoken is None:
            return
        if spoken == HTTP1:
            connection = Http1Connection(
                self._app,
                transport,
                date=self._date,
                is_stopping=self._stopping.is_set,
                hang_ups=self.hang_ups,
                reserved=place.is_reserved,
            )
            with place.watching(connection):
                first = await connection.run()
            if not first:
                return
        protocol = Http2Connection(
            self._app,
            transport,
            date=self._date,
            is_stopping=self._stopping.is_set,
            reserved=place.is_reserved,
        )
        with place.watching(protocol):
            await protocol.run(first)
