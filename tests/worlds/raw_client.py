"""Requests as bytes over a connection of one's own, to a server process: cheap enough for a flood."""

import httpx2
import trio

from bench.product import Site
from bench.wire import parse
from tests.worlds.server_process import ServerProcess

RECEIVE = 65_536


class Gone(Exception):
    """The server has closed the connection without an answer."""


class Line:
    """One sender's keep-alive connection."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._buffer = bytearray()

    async def ask(self, data: bytes) -> tuple[int, bytes]:
        """Status and body of the answer. Raises Gone."""
        await self.send(data)
        return await self.hear()

    async def send(self, data: bytes) -> None:
        """Without waiting for the answer; answers come in turn. Raises Gone."""
        try:
            await self._stream.send_all(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError) as fault:
            raise Gone from fault

    async def hear(self) -> tuple[int, bytes]:
        """The next answer. Raises Gone."""
        try:
            while (found := parse(self._buffer)) is None:
                part = await self._stream.receive_some(RECEIVE)
                if not part:
                    raise Gone
                self._buffer += part
        except (trio.BrokenResourceError, trio.ClosedResourceError) as fault:
            raise Gone from fault
        status, body, length = found
        del self._buffer[:length]
        return status, body


def site_of(server: ServerProcess) -> Site:
    url, ready = httpx2.URL(server.ready["base_url"]), server.ready
    names = ("tenant_id", "workspace_id", "api_key", "admin_token")
    return Site((url.host, url.port or 0), *(ready.get(name, "") for name in names))
