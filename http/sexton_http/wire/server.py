"""Opens the doors, serves until told to stop, and lets what has begun come to its end."""

import ipaddress
import os
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

import msgspec
import structlog
import trio

from sexton_http.wire import timeouts
from sexton_http.wire.accept_loop import accept_all
from sexton_http.wire.asgi import App
from sexton_http.wire.date_header import DateHeader
from sexton_http.wire.first_glance import FirstGlance
from sexton_http.wire.first_request import FirstRequest, token_of
from sexton_http.wire.hang_ups import CAN_TELL, HangUps
from sexton_http.wire.http1 import Http1Connection
from sexton_http.wire.http2 import Http2Connection
from sexton_http.wire.live_certificate import LiveCertificate
from sexton_http.wire.open_connections import OpenConnections, Place
from sexton_http.wire.relay import CONNECTION, FINISH, Handed, Relay, TunnelName
from sexton_http.wire.stop_signal import Stop
from sexton_http.wire.tls import HTTP1, Handshake, Tls, TlsTransport
from sexton_http.wire.transport import PlainTransport
from sexton_http.wire.tunnel import Tunnel, TunnelledTransport
from sexton_http.wire.worker_mail import Parcel

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
    server = _Server(app, tls, connections or OpenConnections(), relay)
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
                        glance = server.first_glance()
                        accepting.start_soon(accept_all, listener, server.handle, handlers, glance)
                    if relay is not None:
                        server.heed(relay, handlers)
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

    def __init__(
        self,
        app: App,
        tls: Tls | LiveCertificate | None,
        connections: OpenConnections,
        relay: Relay | None = None,
    ) -> None:
        self.open = connections
        self.hang_ups = HangUps() if CAN_TELL else None
        self._app = app
        self.certificate = LiveCertificate(tls) if isinstance(tls, Tls) else tls
        self._date = DateHeader()
        self._stopping = Stop()
        self._relay = relay
        self._tunnels: dict[TunnelName, tuple[Place, Stop]] = {}

    def stop(self) -> None:
        self._stopping.set()
        for _, stopping in self._tunnels.values():
            stopping.set()
        self.open.close_idle()

    def first_glance(self) -> FirstGlance | None:
        """Who goes first of those who come; None where that is not to be seen."""
        return None if self.certificate else FirstGlance(self._app, self._date, self._stopping.is_set)

    async def handle(self, stream: trio.SocketStream) -> None:
        """Serve one connection to its last descriptor, with every fault of it kept inside."""
        shown = self.certificate
        transport = PlainTransport(stream) if shown is None else TlsTransport(stream, shown.context)
        await self._keep(transport, partial(self._speak, transport))

    async def _keep(
        self, transport: PlainTransport | TlsTransport, speak: Callable[[Place], Awaitable[None]]
    ) -> None:
        try:
            place = self.open.enter(transport.ends()[0][0])
        except OSError:
            await transport.close()  # The client has gone again.
            return
        try:
            await speak(place)
        except* Exception as group:  # noqa: BLE001 - the border: a fault ends its connection, not the server
            log.info("connection_dropped", faults=[repr(fault) for fault in group.exceptions])
        finally:
            self.open.leave(place)
            with trio.CancelScope(shield=True):
                await transport.close()

    async def _speak(self, transport: PlainTransport | TlsTransport, place: Place) -> None:
        spoken: str | None = HTTP1
        if isinstance(transport, TlsTransport):
            handshake = Handshake(transport)
            with place.watching(handshake):
                spoken = await handshake.run()
        if spoken is None:
            return
        relay = self._relay
        if relay is None:
            await self._answer(transport, place, self._stopping, is_http1=spoken == HTTP1)
            return
        request = FirstRequest(transport)
        with place.watching(request):
            first = await request.run()
        if not first:
            return
        token = token_of(first)
        home = relay.home_of(token)
        if home == relay.slot or not await self._hand(transport, place, home, first):
            await self._answer(transport, place, self._stopping, first, token, is_http1=spoken == HTTP1)

    async def _answer(
        self,
        transport: PlainTransport | TlsTransport,
        place: Place,
        stopping: Stop,
        first: bytes | None = None,
        token: bytes = b"",
        *,
        is_http1: bool,
    ) -> None:
        """Serve a connection; ``first``: what has been read of it, if anything."""
        rest = first or b""
        if is_http1:
            may_go_on = self._relay is not None and not transport.secure
            connection = Http1Connection(
                self._app,
                transport,
                date=self._date,
                is_stopping=stopping.is_set,
                hang_ups=self.hang_ups,
                reserved=place.is_reserved,
                first=first,
                goes_on=may_go_on,
            )
            with place.watching(connection):
                rest = await connection.run()
            if connection.can_go_on:
                self._pass_on(transport, token)
            if not rest:
                return
        protocol = Http2Connection(
            self._app,
            transport,
            date=self._date,
            is_stopping=stopping.is_set,
            reserved=place.is_reserved,
        )
        with place.watching(protocol), self.open.unread.of(protocol):
            await protocol.run(rest)

    # --- between workers ------------------------------------------------------------------------------------

    async def _hand(
        self, transport: PlainTransport | TlsTransport, place: Place, slot: int, first: bytes
    ) -> bool:
        """Give a connection to the worker that it belongs to; False where that worker cannot be reached."""
        relay = self._relay
        if relay is None:
            return False
        if isinstance(transport, PlainTransport):
            return relay.hand(slot, transport.descriptor, "runner", Handed(first))
        # What TLS has agreed on cannot be given away: this worker goes on with that, and carries the bytes.
        tunnel = Tunnel(transport, relay, slot)
        near = tunnel.open(first)
        if near is None:
            return False
        with place.watching(tunnel):
            await tunnel.run(near)
        return True

    def _pass_on(self, transport: PlainTransport | TlsTransport, token: bytes) -> None:
        """As this worker stops: the connection is between two requests, and another goes on with it."""
        heir = None if self._relay is None else self._relay.heir_of(token)
        if self._relay is not None and heir is not None:
            self._relay.hand(heir, transport.descriptor, "drain", Handed(b""))

    def heed(self, relay: Relay, handlers: trio.Nursery) -> None:
        """Serve what other workers hand over."""

        def take(parcel: Parcel) -> None:
            handed = msgspec.msgpack.decode(parcel.body, type=Handed)
            handlers.start_soon(self._take_over, parcel.files[0], handed)

        def finish(parcel: Parcel) -> None:
            found = self._tunnels.get(msgspec.msgpack.decode(parcel.body, type=TunnelName))
            if found is not None:
                place, stopping = found
                stopping.set()
                if place.watched is not None:
                    place.watched.close_if_idle()

        relay.on(CONNECTION, take)
        relay.on(FINISH, finish)

    async def _take_over(self, file: int, handed: Handed) -> None:
        try:
            stream = trio.SocketStream(trio.socket.from_stdlib_socket(socket.socket(fileno=file)))
        except OSError:
            os.close(file)
            return
        if handed.ends is None or handed.tunnel is None:
            plain = PlainTransport(stream)
            token = token_of(handed.first)
            speak = partial(
                self._answer, plain, stopping=self._stopping, first=handed.first, token=token, is_http1=True
            )
            await self._keep(plain, speak)
            return
        transport = TunnelledTransport(stream, handed.ends)
        await self._keep(transport, partial(self._serve_tunnel, transport, handed, handed.tunnel))

    async def _serve_tunnel(
        self, transport: TunnelledTransport, handed: Handed, name: TunnelName, place: Place
    ) -> None:
        stopping = Stop()
        if self._stopping.is_set():
            stopping.set()
        self._tunnels[name] = place, stopping
        try:
            # Over HTTP/2 the first bytes say so themselves.
            await self._answer(transport, place, stopping, handed.first, is_http1=True)
        finally:
            del self._tunnels[name]
