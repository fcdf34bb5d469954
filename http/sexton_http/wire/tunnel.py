"""Carries a connection whose TLS ends here to the worker that serves it, and what that worker answers."""

import math
import socket
from typing import ClassVar, Final

import trio

from sexton_http.wire import timeouts
from sexton_http.wire.relay import Handed, Relay
from sexton_http.wire.transport import Ends, PlainTransport, Transport

PIECE_BYTES: Final = 64 * 1024


class TunnelledTransport(PlainTransport):
    """The serving worker's end: plain bytes over a socket pair, of a client that speaks TLS elsewhere."""

    __slots__ = ("_ends",)

    secure: ClassVar[bool] = True

    def __init__(self, stream: trio.SocketStream, ends: Ends) -> None:
        super().__init__(stream)
        self._ends = ends

    def ends(self) -> Ends:
        return self._ends


class Tunnel:
    """The end of the worker that has the client. How long anything may take, the serving worker decides."""

    def __init__(self, transport: Transport, relay: Relay, slot: int) -> None:
        self._transport = transport
        self._relay = relay
        self._slot = slot
        self._name = relay.name_tunnel()
        self._scope = trio.CancelScope()

    def open(self, first: bytes) -> trio.SocketStream | None:
        """Our end of a socket pair, whose other end that worker has now; None where it cannot be given."""
        near, far = socket.socketpair()
        handed = Handed(first, self._transport.ends(), self._name)
        given = self._relay.hand(self._slot, far.fileno(), "runner", handed)
        far.close()
        if not given:
            near.close()
            return None
        return trio.SocketStream(trio.socket.from_stdlib_socket(near))

    async def run(self, near: trio.SocketStream) -> None:
        """Carry bytes both ways until one side is done."""
        with self._scope:
            async with near, trio.open_nursery() as nursery:
                nursery.start_soon(self._inward, near)
                await self._outward(near)
                nursery.cancel_scope.cancel()

    async def _inward(self, near: trio.SocketStream) -> None:
        try:
            while data := await self._transport.receive():
                await near.send_all(data)
            await near.send_eof()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return

    async def _outward(self, near: trio.SocketStream) -> None:
        try:
            while data := await near.receive_some(PIECE_BYTES):
                if not self._transport.send_now(data):
                    # A write torn in two cannot be continued: it is finished or given up.
                    await self._transport.flush()
            self._transport.finish()
            with trio.move_on_after(timeouts.LINGER_S):
                while await self._transport.discard():
                    pass
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError):
            return

    def due(self) -> float:
        return math.inf

    def idle_since(self) -> float:
        return math.inf

    def cut(self) -> None:
        self._scope.cancel()

    def close_if_idle(self) -> None:
        """As this worker stops: the other one lets the connection end, and with it our end does."""
        if not self._relay.finish(self._slot, self._name):
            self._scope.cancel()
