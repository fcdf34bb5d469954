"""HTTP/1.1 on a plain connection in one task: the quick way, for nearly all that comes."""

import math
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from http import HTTPStatus
from typing import Any, Final, TypeVar

import structlog
import trio

from sexton_http.wire.hang_ups import HangUps
from sexton_http.wire.http1_parser import Parser, Request
from sexton_http.wire.malformed import malformed
from sexton_http.wire.masking import masked

T = TypeVar("T")
App = Callable[..., Awaitable[None]]
Header = tuple[bytes, bytes]

RECEIVE_BYTES: Final = 64 * 1024
READ_S: Final = 30.0
KEEP_ALIVE_S: Final = 75.0
WRITE_S: Final = 20.0
DRAIN_BYTES: Final = 4 * 1024 * 1024
DRAIN_S: Final = 5.0
LINGER_S: Final = 2.0
MAX_PIPELINED: Final = 64
"""With so many requests waiting, no more is read until they are answered."""
PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

_STATUS: Final = {
    status.value: b"HTTP/1.1 %d %b\r\n" % (status.value, status.phrase.encode()) for status in HTTPStatus
}
_BODILESS: Final = frozenset({204, 304})
_FAULT: Final = b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_GO: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_DISCONNECT: Final[dict[str, Any]] = {"type": "http.disconnect"}
UNLESS_GONE: Final = "sexton.unless_gone"
"""An extension of the scope: asks, and withdraws the question when the client hangs up."""

log = structlog.get_logger()


class Http1Connection:
    """One connection. ``run`` ends with it, or with the first bytes of one that speaks HTTP/2."""

    def __init__(
        self,
        app: App,
        date: Callable[[], Sequence[Header]],
        is_stopping: Callable[[], bool],
        hang_ups: HangUps | None = None,
    ) -> None:
        self._app = app
        self._date = date
        self._is_stopping = is_stopping
        self._departures = hang_ups
        self._parser = Parser()
        self._scope = trio.CancelScope()
        self._one_reads = trio.Lock()
        self._fed = 0
        self._gone = False
        self._request: Request | None = None
        self._since = trio.current_time()
        self._begun: float | None = None
        self._linger_until: float | None = None

    async def run(self, stream: trio.SocketStream) -> bytes:
        """Raises nothing but a cancellation and faults of the stream. The stream is the caller's to close."""
        self._stream = stream
        peer, own = stream.socket.getpeername(), stream.socket.getsockname()
        self._ends = (tuple(peer[:2]), tuple(own[:2]))
        with self._scope:
            preface = await self._first()
            if preface:
                return preface
            while await self._turn():
                pass
            await self._goodbye()
        return b""

    # --- until when -----------------------------------------------------------------------------------------

    def due(self) -> float:
        """Until when this connection may wait for its client."""
        if self._linger_until is not None:
            return self._linger_until
        if self._request is not None and self._request.complete:
            return math.inf
        return self._since + KEEP_ALIVE_S if self._begun is None else self._begun + READ_S

    def cut(self) -> None:
        self._scope.cancel()

    def close_if_idle(self) -> None:
        if self._request is None:
            self._scope.cancel()

    # --- reading --------------------------------------------------------------------------------------------

    async def _first(self) -> bytes:
        """Look at the first bytes: whoever speaks HTTP/2 says so there."""
        data = b""
        while len(data) < len(PREFACE) and PREFACE.startswith(data):
            part = bytes(await self._stream.receive_some(RECEIVE_BYTES))
            if not part:
                break
            self._note_begin()
            data += part
        if data.startswith(PREFACE):
            return data
        self._feed(data)
        return b""

    def _note_begin(self) -> None:
        if self._begun is None:
            self._begun = trio.current_time()

    def _feed(self, data: bytes) -> None:
        self._fed += 1
        if data:
            self._parser.feed(data)
        else:
            self._gone = True

    async def _more(self) -> None:
        """Read once, or wait for another task that is reading."""
        before = self._fed
        async with self._one_reads:
            if self._fed == before and not self._gone:
                try:
                    data = bytes(await self._stream.receive_some(RECEIVE_BYTES))
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    data = b""
                self._feed(data)

    async def _turn(self) -> bool:
        """Answer one request; whether there can be another."""
        parser = self._parser
        while not parser.requests:
            if parser.broken:
                if not parser.upgraded:
                    await self.turn_down()
                return False
            if self._gone or (self._is_stopping() and parser.is_between):
                return False
            await self._more()
            self._note_begin()
        request = self._request = parser.requests[0]
        exchange = _Exchange(self, request)
        go_on = await exchange.run(self._app, self._ends)
        parser.requests.popleft()
        self._request = None
        self._since = trio.current_time()
        self._begun = None if parser.is_between and not parser.requests else self._since
        return go_on

    async def receive(self, request: Request) -> dict[str, Any]:
        while True:
            if request.body and not request.discarding:
                body = request.body[0] if len(request.body) == 1 else b"".join(request.body)
                request.body.clear()
                request.ended = request.complete
                return {"type": "http.request", "body": body, "more_body": not request.complete}
            if request.complete and not request.ended:
                request.ended = True
                return {"type": "http.request", "body": b"", "more_body": False}
            if self._gone or (self._parser.broken and not request.complete):
                return _DISCONNECT
            if request.ended and (len(self._parser.requests) > MAX_PIPELINED or self._parser.broken):
                await trio.sleep_forever()  # Until the answer is done: its task is cancelled then.
            if request.awaits_go and not request.complete:
                request.awaits_go = False
                await self._write(_GO)
            await self._more()

    @property
    def extensions(self) -> dict[str, Any]:
        """Of every request's scope."""
        hang_ups = self._departures
        return {} if hang_ups is None else {UNLESS_GONE: partial(self._unless_gone, hang_ups)}

    async def _unless_gone(self, hang_ups: HangUps, ask: Callable[[], Awaitable[T]]) -> T | None:
        """The answer; None when the client has hung up meanwhile, and then nothing more is sent to it."""
        descriptor = self._stream.socket.fileno()
        with trio.CancelScope() as scope:

            def left() -> None:
                self._gone = True
                scope.cancel()

            hang_ups.expect(descriptor, left)
            try:
                return await ask()
            finally:
                hang_ups.forget(descriptor)
        return None

    async def settle(self, request: Request) -> bool:
        """Before an answer: throw away what the body still brings, in bounds; True when all has come."""
        thrown = 0
        request.discarding = True
        if not request.complete and (request.awaits_go or request.declared > DRAIN_BYTES):
            return False  # It has not begun, or would be cut off anyhow: nobody waits for it.
        request.awaits_go = False
        with trio.move_on_after(DRAIN_S):
            while not (request.complete or self._gone or self._parser.broken or thrown > DRAIN_BYTES):
                thrown += sum(map(len, request.body))
                request.body.clear()
                await self._more()
        return request.complete

    # --- writing --------------------------------------------------------------------------------------------

    async def _write(self, data: bytes) -> None:
        """Give the kernel what it takes at once, wait for the rest; a client that takes nothing is cut."""
        if self._gone:
            await (
                trio.lowlevel.checkpoint()
            )  # A handler that does nothing but send must still come to its end.
            return
        try:
            try:
                taken = os.write(self._stream.socket.fileno(), data)
            except BlockingIOError:
                taken = 0
            if taken < len(data):
                with trio.CancelScope(shield=True), trio.fail_after(WRITE_S):
                    await self._stream.send_all(data[taken:])
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError):
            self._gone = True
            self._scope.cancel()

    def head(self, status: int, headers: Sequence[Header]) -> bytes:
        lines = [_STATUS.get(status) or b"HTTP/1.1 %d \r\n" % status]
        lines += [b"%b: %b\r\n" % header for header in self._date()]
        lines += [b"%b: %b\r\n" % header for header in headers]
        lines.append(b"\r\n")
        head = b"".join(lines)
        if head.count(b"\n") != len(lines) or head.count(b"\r") != len(lines):
            raise ValueError("a header has a line end in it")
        return head

    async def turn_down(self) -> None:
        """Say to bytes that are no request what is wrong with them."""
        answer = malformed(self._app, self._parser.why)
        headers = [*answer.headers, (b"content-length", b"%d" % len(answer.body)), (b"connection", b"close")]
        await self._write(self.head(answer.status, headers) + answer.body)

    async def _goodbye(self) -> None:
        """Send our end, and take what is on the way for a moment: a reset would destroy the answer."""
        if self._gone:
            return
        try:
            self._stream.socket.shutdown(socket.SHUT_WR)
        except OSError:
            return
        if self._parser.is_between and not self._parser.broken:
            return
        self._linger_until = trio.current_time() + LINGER_S
        while not self._gone:
            try:
                if not await self._stream.receive_some(RECEIVE_BYTES):
                    return
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return


class _Exchange:
    """One request and its answer, as ASGI has them."""

    __slots__ = ("_chunked", "_close", "_connection", "_ended", "_held", "_left", "_request", "_started")

    def __init__(self, connection: Http1Connection, request: Request) -> None:
        self._connection = connection
        self._request = request
        self._held: bytes | None = None
        self._chunked = False
        self._close = not request.keep_alive
        self._started = False
        self._ended = False
        self._left: int | None = None

    async def run(self, app: App, ends: tuple[Any, Any]) -> bool:
        """Whether the connection can be used again."""
        request, connection = self._request, self._connection
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": request.version,
            "method": request.method,
            "scheme": "http",
            "path": request.path,
            "raw_path": request.raw_path,
            "query_string": request.query,
            "root_path": "",
            "headers": request.headers,
            "client": ends[0],
            "server": ends[1],
            "state": {},
            "extensions": connection.extensions,
        }
        try:
            await app(scope, self.receive, self.send)
        except* Exception as group:  # noqa: BLE001 - the border: a fault ends its exchange, not the server
            if not connection._gone:  # noqa: SLF001 - two halves of one thing
                faults = [repr(fault) for fault in group.exceptions]
                log.warning("request_failed", faults=faults, path=masked(request.path))
        if not self._started:
            await connection.settle(request)
            broken = not request.complete
            if broken:
                await connection.turn_down()
            else:
                await connection._write(_FAULT)  # noqa: SLF001 - as above
            return False
        return self._ended and not self._close and request.complete

    async def receive(self) -> dict[str, Any]:
        return await self._connection.receive(self._request)

    async def send(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            await self._start(message["status"], message.get("headers", ()))
        elif not self._ended:
            await self._body(message.get("body", b""), more=message.get("more_body", False))

    async def _start(self, status: int, headers: Sequence[Header]) -> None:
        request = self._request
        if self._started:
            raise RuntimeError("an answer begins once")
        if not request.complete and not await self._connection.settle(request):
            self._close = True
        headers = list(headers)
        length = next((value for name, value in headers if name == b"content-length"), None)
        if length is not None:
            self._left = int(length)
        elif status not in _BODILESS and request.method != "HEAD":
            if request.version == "1.1":
                self._chunked = True
                headers.append((b"transfer-encoding", b"chunked"))
            else:
                self._close = True
        if status in _BODILESS or request.method == "HEAD":
            self._left = 0
        if self._close or self._connection._is_stopping():  # noqa: SLF001 - as above
            self._close = True
            headers.append((b"connection", b"close"))
        self._held = self._connection.head(status, headers)
        self._started = True

    async def _body(self, body: bytes, *, more: bool) -> None:
        if not self._started:
            raise RuntimeError("an answer begins with its head")
        if self._left is not None:
            body = body[: self._left]
            self._left -= len(body)
        elif self._chunked and body:
            body = b"%x\r\n%b\r\n" % (len(body), body)
        if not more:
            self._ended = True
            if self._chunked:
                body += b"0\r\n\r\n"
            if self._left:
                self._close = True  # It promised more than it gave.
        held, self._held = self._held, None
        data = body if held is None else held + body
        if data:
            await self._connection._write(data)  # noqa: SLF001 - as above
        else:
            await trio.lowlevel.checkpoint()
