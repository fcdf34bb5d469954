"""One connection from its first byte to its last descriptor, with every fault of it kept inside."""

import math
import os
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import structlog
import trio
from hypercorn.config import Config
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.utils import parse_socket_addr

from sexton_http.wire.hang_ups import CAN_TELL, HangUps
from sexton_http.wire.http2 import Spoken
from sexton_http.wire.http2_intake import Intake
from sexton_http.wire.masking import masked

RECEIVE_BYTES: Final = 64 * 1024
READ_S: Final = 30.0
"""A request must have arrived whole within this time of its first byte."""
KEEP_ALIVE_S: Final = 75.0
WRITE_S: Final = 20.0
"""A client that takes no bytes for so long is cut."""
MANY_OPEN: Final = 64
"""Beyond so many requests since it was last idle, a connection forgets those whose bodies are all here."""
WATCH_S: Final = 1.0
"""How late a connection may be cut."""
LINGER_S: Final = 2.0
"""So long the rest of an unread body is read after the last answer, which a reset would otherwise destroy."""
GONE_S: Final = 5.0
"""After the client has gone nothing of its connection lives longer than this."""

log = structlog.get_logger()

Stream = trio.SocketStream | trio.SSLStream[trio.SocketStream]
App = Callable[..., Awaitable[None]]


class Watched(Protocol):
    """A connection, as far as its time is concerned."""

    def due(self) -> float: ...
    def cut(self) -> None: ...
    def close_if_idle(self) -> None: ...


@dataclass(slots=True)
class Live:
    """The connections of one server."""

    connections: set[Watched] = field(default_factory=set)
    hang_ups: HangUps | None = field(default_factory=lambda: HangUps() if CAN_TELL else None)

    def close_idle(self) -> None:
        """The server stops: who waits for nothing is let go."""
        for connection in tuple(self.connections):
            connection.close_if_idle()

    async def watch(self) -> None:
        """Cut those whose time is up: one round a second for all, and not a timer a request."""
        while True:
            await trio.sleep(WATCH_S)
            now = trio.current_time()
            for connection in tuple(self.connections):
                if now >= connection.due():
                    connection.cut()


class Tasks:
    """What Hypercorn's protocols start tasks with: one nursery a connection, one intake a request."""

    def __init__(self, nursery: trio.Nursery, connection: "Connection") -> None:
        self._nursery = nursery
        self._connection = connection

    async def spawn_app(
        self, app: App, config: Config, scope: dict[str, Any], send: Callable[[Any], Awaitable[None]]
    ) -> Callable[[dict[str, Any]], Awaitable[None]]:
        del config
        intake = Intake()
        self._connection.opened(intake)
        self._nursery.start_soon(self._serve, app, scope, intake, send)
        return intake.put

    def spawn(self, func: Callable[..., Awaitable[None]], *args: Any) -> None:
        self._nursery.start_soon(func, *args)

    async def _serve(
        self, app: App, scope: dict[str, Any], intake: Intake, send: Callable[[Any], Awaitable[None]]
    ) -> None:
        settled = False
        http2 = scope["http_version"] >= "2"

        async def answer(message: dict[str, Any]) -> None:
            nonlocal settled
            if not settled:
                settled = True
                if not await intake.settle() and not http2:
                    message = {**message, "headers": [*message.get("headers", ()), (b"connection", b"close")]}
            if http2:  # There a write waits for the client's window, which no deadline of the socket sees.
                with trio.fail_after(WRITE_S):
                    await send(message)
            else:
                await send(message)

        try:
            await app(scope, intake.receive, answer)
        except* Exception as group:  # noqa: BLE001 - the border: a fault ends its exchange, not the server
            if not intake.gone:
                log.warning("request_failed", faults=_spell(group), path=masked(scope["path"]))
        finally:
            intake.discard()
            if not intake.gone:
                # This is bounded by WRITE_S; cut short it would leave the stream half open.
                with trio.CancelScope(shield=True):
                    await send(None)


class Connection:
    """Speaks HTTP over one stream until either side is done; ``run`` raises nothing but a cancellation."""

    def __init__(
        self,
        app: App,
        config: Config,
        context: WorkerContext,
        live: Live,
        stream: Stream,
        *,
        first: bytes = b"",
    ) -> None:
        """``first``: what was read of the stream before."""
        self._app = app
        self._config = config
        self._context = context
        self._live = live
        self._stream = stream
        self._sending = trio.Lock()
        self._reading = trio.CancelScope()
        self._open: dict[Intake, float] = {}
        self._idle = True
        self._since = trio.current_time()
        self._head_since: float | None = None
        self._first = first
        self._over = False
        self._linger_until = math.inf

    async def run(self) -> None:
        self._live.connections.add(self)
        try:
            await self._run()
        except* Exception as group:  # noqa: BLE001 - the border: a fault ends its connection, not the server
            log.info("connection_dropped", faults=_spell(group))
        finally:
            self._live.connections.discard(self)
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(self._stream)

    async def _run(self) -> None:
        secure = isinstance(self._stream, trio.SSLStream)
        alpn = "http/1.1"
        if isinstance(self._stream, trio.SSLStream):
            try:
                with trio.fail_after(READ_S):
                    await self._stream.do_handshake()
            except (trio.BrokenResourceError, trio.TooSlowError):
                return
            alpn = self._stream.selected_alpn_protocol() or alpn
        sock = self._socket()
        client = parse_socket_addr(sock.family, sock.getpeername())
        server = parse_socket_addr(sock.family, sock.getsockname())
        async with trio.open_nursery() as nursery:
            tasks = Tasks(nursery, self)
            self._protocol = Spoken(
                self._config, alpn, self._app, self._context, tasks, secure, client, server, self._send
            )
            await self._protocol.initiate()
            if self._first:
                await self._protocol.handle(RawData(self._first))
            await self._read()
            await self._protocol.handle(Closed())
            nursery.cancel_scope.deadline = trio.current_time() + GONE_S

    def _socket(self) -> trio.socket.SocketType:
        stream = self._stream
        return stream.transport_stream.socket if isinstance(stream, trio.SSLStream) else stream.socket

    async def _read(self) -> None:
        with self._reading:
            while True:
                try:
                    data = bytes(await self._stream.receive_some(RECEIVE_BYTES))
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    return
                if not self._over:
                    if self._idle and self._head_since is None:
                        self._head_since = trio.current_time()
                    await self._protocol.handle(RawData(data))
                if not data:
                    return

    async def _send(self, event: Event) -> None:
        match event:
            case RawData(data=data):
                await self._send_bytes(data)
            case Updated(idle=idle):
                self._idle = idle
                self._head_since = None
                if idle:
                    self._since = trio.current_time()
                    self._open.clear()
                    if self._context.terminated.is_set():
                        self._reading.cancel()
            case Closed():
                await self._say_goodbye()
                await self._protocol.handle(Closed())
            case _:
                raise TypeError(event)

    async def _send_bytes(self, data: bytes) -> None:
        try:
            if self._sending.locked():
                with trio.CancelScope(shield=True), trio.fail_after(WRITE_S):
                    await self._sending.acquire()
            else:
                self._sending.acquire_nowait()
            try:
                rest = self._send_now(data)
                if rest:
                    # A write torn in two cannot be continued: it is finished or given up, never cancelled.
                    with trio.CancelScope(shield=True), trio.fail_after(WRITE_S):
                        await self._stream.send_all(rest)
            finally:
                self._sending.release()
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError):
            await trio.aclose_forcefully(self._stream)
            await self._protocol.handle(Closed())

    def _send_now(self, data: bytes) -> bytes:
        """What the kernel did not take at once; an answer nearly always fits, and nothing has to wait."""
        if isinstance(self._stream, trio.SSLStream):
            return data
        try:
            taken = os.write(self._stream.socket.fileno(), data)
        except BlockingIOError:
            return data
        return data[taken:]

    async def _say_goodbye(self) -> None:
        """Send our end, and leave the reader to take what the client still has on the way, for a moment."""
        if self._over:
            return
        self._over = True
        try:
            if isinstance(self._stream, trio.SSLStream):
                with trio.move_on_after(LINGER_S):
                    await self._stream.aclose()
            else:
                self._stream.socket.shutdown(socket.SHUT_WR)
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError, trio.BusyResourceError):
            self._reading.cancel()
        if self._idle or any(not intake.is_over() for intake in self._open):
            self._linger_until = trio.current_time() + LINGER_S
        else:
            self._reading.cancel()

    def opened(self, intake: Intake) -> None:
        """A request has begun whose body is still to come."""
        if len(self._open) > MANY_OPEN:
            self._open = {one: since for one, since in self._open.items() if not one.is_over()}
        self._open[intake] = trio.current_time() if self._head_since is None else self._head_since

    def due(self) -> float:
        """Until when the reader may wait."""
        if self._over:
            return self._linger_until
        for intake, since in self._open.items():
            if not intake.is_over():
                return since + READ_S
        if not self._idle:
            return math.inf
        return self._since + KEEP_ALIVE_S if self._head_since is None else self._head_since + READ_S

    def cut(self) -> None:
        """Stop reading, and with that end all that is left."""
        self._reading.cancel()

    def close_if_idle(self) -> None:
        if self._idle:
            self._reading.cancel()


def _spell(group: BaseExceptionGroup[Exception]) -> list[str]:
    return [repr(fault) for fault in group.exceptions]
