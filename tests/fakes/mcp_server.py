"""A server of the Model Context Protocol over HTTP, by the official SDK: ``python mcp_server.py PORT``.

With a token in HERONS_TOKEN it lets in only who sends that as a bearer.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
server = MCPServer("herons")


@server.tool()
def count(place: str) -> str:
    """Count the herons of a place."""
    return f"{len(place)} herons in {place}"


@server.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("no herons today")


@server.tool()
def who_am_i(ctx: Context[Any, Any]) -> str:
    """Say back what came with the request, and how long that is."""
    said = (ctx.headers or {}).get("authorization", "nobody")
    return f"{said} ({len(said)} characters)"


class Bearers:
    """Lets in who knows the token."""

    def __init__(self, app: Any, token: str) -> None:
        self._app, self._expected = app, f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Any, send: Send) -> None:
        """Answer 401 to all others."""
        if scope["type"] != "http" or dict(scope["headers"]).get(b"authorization") == self._expected:
            await self._app(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 401, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})


@contextmanager
def open_mcp_server(token: str = "") -> Iterator[str]:
    """Start it as a process, and give its address; it may take a second to listen."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = {**os.environ, "HERONS_TOKEN": token}
    started = subprocess.Popen(
        [sys.executable, __file__, str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
    try:
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        started.kill()
        started.wait()


def is_up(address: str) -> bool:
    """Tell whether it listens."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", urlsplit(address).port or 0)) == 0


def main(port: int) -> None:
    """Serve on loopback."""
    token = os.environ.get("HERONS_TOKEN", "")
    app: Any = server.streamable_http_app()
    uvicorn.run(Bearers(app, token) if token else app, host="127.0.0.1", port=port)


if __name__ == "__main__":
    main(int(sys.argv[1]))
