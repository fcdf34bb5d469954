"""Knows the open connections of a server, and cuts those that keep it waiting too long."""

from typing import Protocol

import trio

from sexton_http.wire import timeouts


class Watched(Protocol):
    """A connection, as far as its time is concerned."""

    def due(self) -> float:
        """Until when it may wait for its client; ``math.inf`` while the client waits for us."""
        ...

    def cut(self) -> None:
        """End it."""
        ...

    def close_if_idle(self) -> None:
        """End it if no request is under way."""
        ...


class OpenConnections:
    """All connections of one server, those in their TLS handshake included."""

    __slots__ = ("_open",)

    def __init__(self) -> None:
        self._open: set[Watched] = set()

    def __repr__(self) -> str:
        return f"<OpenConnections {len(self._open)}>"

    def add(self, connection: Watched) -> None:
        self._open.add(connection)

    def discard(self, connection: Watched) -> None:
        self._open.discard(connection)

    def close_idle(self) -> None:
        """The server stops: connections that wait for nothing end now."""
        for connection in tuple(self._open):
            connection.close_if_idle()

    async def watch(self) -> None:
        """Cut those whose time is up: one round a second for all, not a timer for each request."""
        while True:
            await trio.sleep(timeouts.WATCH_S)
            now = trio.current_time()
            for connection in tuple(self._open):
                if now >= connection.due():
                    connection.cut()
