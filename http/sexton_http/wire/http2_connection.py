"""Carries HTTP/2 over a transport, with every fault of a connection kept inside of it."""

import math
from collections.abc import Awaitable, Callable
from typing import Any, Final

import structlog
import trio
from hypercorn.config import Config
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.trio.worker_context import WorkerContext

from sexton_http.wire import timeouts
from sexton_http.wire.asgi import App
from sexton_http.wire.hang_ups import UNLESS_GONE
from sexton_http.wire.http2 import Http2
from sexton_http.wire.http2_body import IncomingBody
from sexton_http.wire.masking import masked
from sexton_http.wire.transport import Transport

MANY_OPEN: Final = 64
"""Beyond this many requests since it was last idle, a connection forgets those whose bodies are all here."""

log = structlog.get_logger()


class Tasks:
    """What Hypercorn's protocol starts tasks with: one nursery a connection, one body a request."""

    def __init__(self, nursery: trio.Nursery, connection: "Http2Connection") -> None:
        self._nursery = nursery
        self._connection = connection

    async def spawn_app(
        self, app: App, config: Config, scope: dict[str, Any], send: Callable[[Any], Awaitable[None]]
    ) -> Callable[[dict[str, Any]], Awaitable[None]]:
        del config
        body = IncomingBody()
        scope["extensions"][UNLESS_GONE] = body.unless_gone
        self._connection.opened(body)
        self._nursery.start_soon(_serve, app, scope, body, send)
        return body.put

    def spawn(self, func: Callable[..., Awaitable[None]], *args: Any) -> None:
        self._nursery.start_soon(func, *args)


async def _serve(
    app: App, scope: dict[str, Any], body: IncomingBody, send: Callable[[Any], Awaitable[None]]
) -> None:
    settled = False

    async def answer(message: dict[str, Any]) -> None:
        nonlocal settled
        if not settled:
            settled = True
            await body.settle()
        # A write waits for the client's window, which no deadline of the socket sees.
        with trio.fail_after(timeouts.WRITE_S):
            await send(message)

    try:
        await app(scope, body.receive, answer)
    except* Exception as group:  # noqa: BLE001 - the border: a fault ends its exchange, not the server
        if not body.gone:
            faults = [repr(fault) for fault in group.exceptions]
            log.warning("request_failed", faults=faults, path=masked(scope["path"]))
    finally:
        body.discard()
        if not body.gone:
            # This is bounded by WRITE_S; cut short it would leave the stream half open.
            with trio.CancelScope(shield=True):
                await send(None)


class Http2Connection:
    """Speaks HTTP/2 until either side is done. The transport is the caller's to close."""

    def __init__(self, app: App, config: Config, context: WorkerContext, transport: Transport) -> None:
        self._app = app
        self._config = config
        self._context = context
        self._transport = transport
        self._sending = trio.Lock()
        self._reading = trio.CancelScope()
        self._open: dict[IncomingBody, float] = {}
        self._idle = True
        self._since = trio.current_time()
        self._head_since: float | None = None
        self._over = False
        self._linger_until = math.inf

    async def run(self, first: bytes = b"") -> None:
        """``first``: what was read before. Raises ExceptionGroup of whatever went wrong."""
        client, server = self._transport.ends()
        async with trio.open_nursery() as nursery:
            tasks = Tasks(nursery, self)
            self._protocol = Http2(
                self._app,
                self._config,
                self._context,
                tasks,
                self._transport.secure,
                client,
                server,
                self._send,
            )
            await self._protocol.initiate()
            if first:
                await self._protocol.handle(RawData(first))
            await self._read()
            await self._protocol.handle(Closed())
            nursery.cancel_scope.deadline = trio.current_time() + timeouts.GONE_S

    async def _read(self) -> None:
        with self._reading:
            while data := await self._transport.receive():
                if not self._over:
                    if self._idle and self._head_since is None:
                        self._head_since = trio.current_time()
                    await self._protocol.handle(RawData(data))
                if self._over:
                    # Our end is sent. What the client has on the way is taken for a moment: see `due`.
                    while await self._transport.discard():
                        pass
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
                self._say_goodbye()
                await self._protocol.handle(Closed())
            case _:
                raise TypeError(event)

    async def _send_bytes(self, data: bytes) -> None:
        try:
            if self._sending.locked():
                with trio.CancelScope(shield=True), trio.fail_after(timeouts.WRITE_S):
                    await self._sending.acquire()
            else:
                self._sending.acquire_nowait()
            try:
                if not self._transport.send_now(data):
                    # A write torn in two cannot be continued: it is finished or given up, never cancelled.
                    with trio.CancelScope(shield=True), trio.fail_after(timeouts.WRITE_S):
                        await self._transport.flush()
            finally:
                self._sending.release()
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError):
            await self._transport.close()
            await self._protocol.handle(Closed())

    def _say_goodbye(self) -> None:
        """Send our end, and leave the reader to take what the client still has on the way, for a moment."""
        if self._over:
            return
        self._over = True
        try:
            self._transport.finish()
        except OSError:
            self._reading.cancel()
        if self._idle or any(not body.is_over() for body in self._open):
            self._linger_until = trio.current_time() + timeouts.LINGER_S
        else:
            self._reading.cancel()

    def opened(self, body: IncomingBody) -> None:
        """A request has begun whose body is still to come."""
        if len(self._open) > MANY_OPEN:
            self._open = {one: since for one, since in self._open.items() if not one.is_over()}
        self._open[body] = trio.current_time() if self._head_since is None else self._head_since

    def due(self) -> float:
        """Until when the reader may wait."""
        if self._over:
            return self._linger_until
        for body, since in self._open.items():
            if not body.is_over():
                return since + timeouts.READ_S
        if not self._idle:
            return math.inf
        if self._head_since is None:
            return self._since + timeouts.KEEP_ALIVE_S
        return self._head_since + timeouts.READ_S

    def cut(self) -> None:
        """Stop reading, and with that end all that is left."""
        self._reading.cancel()

    def close_if_idle(self) -> None:
        if self._idle:
            self._reading.cancel()
