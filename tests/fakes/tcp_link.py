"""A port before servers on loopback, whose connections break, or let nothing through, when a test says so."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import trio

LOOPBACK = "127.0.0.1"
PIECE_BYTES = 65_536

Address = tuple[str, int]


class Link:
    """Takes each connection to the server that ``choose`` names at that moment."""

    def __init__(self, choose: Callable[[], Address]) -> None:
        self._choose = choose
        self._open: dict[trio.CancelScope, Address] = {}
        self._flows = trio.Event()
        self._flows.set()
        self.port = 0

    @property
    def base_url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    def hang_up(self, of: Address | None = None) -> None:
        """Break every connection now, or those to one server."""
        for scope, address in tuple(self._open.items()):
            if of is None or of == address:
                scope.cancel()

    def hold(self) -> None:
        """Let nothing through any more, as a cut cable does: nobody is told."""
        self._flows = trio.Event()

    def let_go(self) -> None:
        """Let through what was held, and all that comes."""
        self._flows.set()

    async def serve(self, near: trio.SocketStream) -> None:
        address = self._choose()
        async with near:
            with trio.CancelScope() as scope:
                self._open[scope] = address
                with suppress(OSError):
                    async with await trio.open_tcp_stream(*address) as far:
                        await self._join(near, far)
            del self._open[scope]

    async def _join(self, near: trio.SocketStream, far: trio.SocketStream) -> None:
        async with trio.open_nursery() as nursery:

            async def pass_on(source: trio.SocketStream, sink: trio.SocketStream) -> None:
                with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                    while piece := await source.receive_some(PIECE_BYTES):
                        await self._flows.wait()
                        await sink.send_all(piece)
                nursery.cancel_scope.cancel()

            nursery.start_soon(pass_on, near, far)
            nursery.start_soon(pass_on, far, near)


@asynccontextmanager
async def open_link(choose: Callable[[], Address]) -> AsyncIterator[Link]:
    """A link that listens, on a port of its own."""
    link = Link(choose)
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host=LOOPBACK)
        link.port = listeners[0].socket.getsockname()[1]
        nursery.start_soon(trio.serve_listeners, link.serve, listeners)
        try:
            yield link
        finally:
            nursery.cancel_scope.cancel()
