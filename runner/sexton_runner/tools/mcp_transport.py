"""Carries the requests of an MCP client to the proxy that holds the secrets of its server."""

import ssl
from collections.abc import Iterable
from typing import Any, cast

import httpcore2
import httpx2

from sexton_runner.network import ServerNetwork

BAD_REQUEST = 400
_PROXY = httpcore2.URL(scheme=b"http", host=b"proxy", port=None, target=b"/")
"""Never looked up: whatever the address, the connection goes to the proxy's socket."""


class _ToSocket(httpcore2.AsyncNetworkBackend):
    def __init__(self, path: str) -> None:
        self._path = path
        # Where trio is not installed the package puts a class of that name that is no backend.
        self._trio = cast("httpcore2.AsyncNetworkBackend", httpcore2.TrioBackend())

    async def sleep(self, seconds: float) -> None:
        await self._trio.sleep(seconds)

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        del host, port, local_address, socket_options
        return await self._trio.connect_unix_socket(self._path, timeout)


class ProxyTransport(httpx2.AsyncHTTPTransport):
    """As the client's own transport, over the proxy's socket and nowhere else."""

    def __init__(self, network: ServerNetwork) -> None:
        trusted = ssl.create_default_context(cadata=network.certificates.decode("ascii"))
        super().__init__(verify=trusted, trust_env=False)
        self._network = network
        self._pool = httpcore2.AsyncHTTPProxy(
            proxy_url=_PROXY, ssl_context=trusted, network_backend=_ToSocket(network.socket)
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send it; what a server refuses is noted, since the client of the protocol does not say it."""
        answer = await super().handle_async_request(request)
        if request.method == "POST" and answer.status_code >= BAD_REQUEST:
            why = f"it answered HTTP {answer.status_code}"
            self._network.refusals.setdefault(request.url.host, why)
        return answer
