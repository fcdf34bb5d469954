"""What the services that the demo stands up beside its server share: reading, answering, being served."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, ClassVar, NamedTuple

import trio

from sexton_http.wire.server import open_doors, serve
from sexton_http.wire.stop_signal import Stop
from sexton_http.wire.tls import Tls

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class Request(NamedTuple):
    """One that was made, and the status of its answer."""

    method: str
    path: str
    status: int


class Reply(NamedTuple):
    status: int
    headers: list[tuple[bytes, bytes]]
    content: bytes


class StandIn(ABC):
    """An ASGI application that answers whole requests; each is in ``asked``."""

    max_body_bytes: ClassVar[int] = 1 << 20

    def __init__(self) -> None:
        self.base_url = ""
        self.asked: list[Request] = []

    @abstractmethod
    async def answer(self, scope: Mapping[str, Any], headers: Mapping[str, str], body: bytes) -> Reply:
        """Answer one request."""

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Read one request, and send its answer."""
        if scope["type"] != "http":
            return
        body = bytearray()
        while (piece := await receive())["type"] == "http.request" and len(body) <= self.max_body_bytes:
            body += piece.get("body", b"")
            if not piece.get("more_body"):
                break
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        reply = await self.answer(scope, headers, bytes(body))
        self.asked.append(Request(scope["method"], scope["path"], reply.status))
        head = [*reply.headers, (b"content-length", str(len(reply.content)).encode())]
        await send({"type": "http.response.start", "status": reply.status, "headers": head})
        await send({"type": "http.response.body", "body": reply.content})


@asynccontextmanager
async def serving(service: StandIn, tls: Tls | None = None) -> AsyncIterator[None]:
    """Serve it on a free port of loopback, by the name localhost; ``base_url`` says where."""
    stop = Stop()
    doors = await open_doors("127.0.0.1", 0, secure=tls is not None)
    service.base_url = f"http{'s' if tls else ''}://localhost:{doors.port}"
    async with trio.open_nursery() as nursery:
        await nursery.start(partial(serve, service, doors, stop=stop, tls=tls, grace_s=0))
        try:
            yield
        finally:
            stop.set()
