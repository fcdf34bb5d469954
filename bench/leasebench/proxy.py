"""A TCP proxy whose network can fail: bytes are held back, or connections are cut and refused."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import trio

RECEIVE = 65_536
Connect = Callable[[], Awaitable[trio.SocketStream]]


class Proxy:
    """Stands on a free port of the loopback before one server.

    ===========  ========================  =========================================================
    state        changed by                what becomes of bytes and connections
    ===========  ========================  =========================================================
    through      at the start, ``mend``    pass
    held         ``hold``                  wait, and are delivered late when it is mended; no error
    cut          ``cut``                   connections are closed, new ones as soon as they are made
    ===========  ========================  =========================================================
    """

    def __init__(self, connect: Connect, nursery: trio.Nursery) -> None:
        self._connect = connect
        self._nursery = nursery
        self._open = trio.Event()
        self._open.set()
        self._is_cut = False
        self._streams: set[trio.SocketStream] = set()
        self.port = 0

    def hold(self) -> None:
        """From now on nothing arrives, in both directions."""
        self._open = trio.Event()

    async def cut(self) -> None:
        """Close what is open and everything that comes."""
        self._is_cut = True
        for stream in list(self._streams):
            await trio.aclose_forcefully(stream)

    def mend(self) -> None:
        """Let everything through again, what was held back first."""
        self._is_cut = False
        self._open.set()

    async def listen(self) -> None:
        """Take a port."""
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        self.port = listener.socket.getsockname()[1]
        self._nursery.start_soon(trio.serve_listeners, self._serve, [listener])

    async def _serve(self, near: trio.SocketStream) -> None:
        if self._is_cut:
            await near.aclose()
            return
        self._streams.add(near)
        try:
            await self._open.wait()
            far = await self._connect()
            self._streams.add(far)
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._pass_on, near, far, nursery.cancel_scope)
                    nursery.start_soon(self._pass_on, far, near, nursery.cancel_scope)
            finally:
                self._streams.discard(far)
                await trio.aclose_forcefully(far)
        except OSError:
            pass
        finally:
            self._streams.discard(near)
            await trio.aclose_forcefully(near)

    async def _pass_on(
        self, source: trio.SocketStream, to: trio.SocketStream, over: trio.CancelScope
    ) -> None:
        try:
            while data := await source.receive_some(RECEIVE):
                await self._open.wait()
                await to.send_all(data)
            # What was sent before the end is delivered, so an end waits behind what is held back.
            await self._open.wait()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        over.cancel()


@asynccontextmanager
async def open_proxy(connect: Connect) -> AsyncIterator[Proxy]:
    """A proxy that listens, and nothing of it at the end."""
    async with trio.open_nursery() as nursery:
        proxy = Proxy(connect, nursery)
        await proxy.listen()
        yield proxy
        nursery.cancel_scope.cancel()
