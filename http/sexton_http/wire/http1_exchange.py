"""One request of HTTP/1.1 and its answer, as ASGI has them."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final, Protocol

import structlog
import trio

from sexton_http.answers import Answer
from sexton_http.wire import timeouts
from sexton_http.wire.asgi import WHOLE_ANSWER, WHOLE_BODY, App, Header, Message
from sexton_http.wire.gatekeeper import SKIPPED_BYTES, Refuse
from sexton_http.wire.http1_parser import Request
from sexton_http.wire.masking import masked
from sexton_http.wire.transport import Ends

_STATUS: Final = {
    status.value: b"HTTP/1.1 %d %b\r\n" % (status.value, status.phrase.encode()) for status in HTTPStatus
}
_BODILESS: Final = frozenset({204, 304})
_FAULT: Final = b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"

_spelled: Final = b": ".join

log = structlog.get_logger()


class Line(Protocol):
    """The connection, as far as one exchange needs it."""

    is_gone: bool
    """The client has hung up: nothing can be sent to it."""
    reserved: bool
    """The connection ends with this answer."""
    refuse: Refuse
    """Asked before the app."""

    extensions: dict[str, Any]

    def is_stopping(self) -> bool: ...
    def date(self) -> Sequence[Header]: ...
    async def receive(self, request: Request) -> Message: ...
    async def settle(self, request: Request, most: int = ...) -> bool: ...
    async def write(self, data: bytes) -> None: ...
    async def turn_down(self) -> None: ...


class Exchange:
    """Gives the request to the app, and writes what the app sends."""

    __slots__ = ("_chunked", "_close", "_ended", "_held", "_left", "_line", "_request", "_started")

    def __init__(self, line: Line, request: Request) -> None:
        self._line = line
        self._request = request
        self._held: bytes | None = None
        """The head of the answer, until its first bytes of body go out with it: one write, one packet."""
        self._chunked = False
        self._close = not request.keep_alive or line.reserved
        self._started = False
        self._ended = False
        self._left: int | None = None
        """How many bytes of body are still to come, if the answer says its length."""

    async def run(self, app: App, ends: Ends, *, secure: bool) -> bool:
        """Whether the connection can be used again."""
        request, line = self._request, self._line
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": request.version,
            "method": request.method,
            "scheme": "https" if secure else "http",
            "path": request.path,
            "raw_path": request.raw_path,
            "query_string": request.query,
            "root_path": "",
            "headers": request.headers,
            "client": ends[0],
            "server": ends[1],
            "state": {},
            "extensions": line.extensions,
            WHOLE_BODY: request.take_whole,
            WHOLE_ANSWER: self.send_whole,
        }
        refused = None if line.reserved else line.refuse(scope)
        if refused is not None:
            return await self._refuse(refused)
        try:
            await app(scope, self.receive, self.send)
        except* Exception as group:  # noqa: BLE001 - the border: a fault ends its exchange, not the server
            if not line.is_gone:
                faults = [repr(fault) for fault in group.exceptions]
                log.warning("request_failed", faults=faults, path=masked(request.path))
        if not self._started:
            await line.settle(request)
            if request.complete:
                await line.write(_FAULT)
            else:
                await line.turn_down()
            return False
        return self._ended and not self._close and request.complete

    async def receive(self) -> Message:
        return await self._line.receive(self._request)

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            await self._start(message["status"], message.get("headers", ()))
        elif not self._ended:
            await self._body(message.get("body", b""), more=message.get("more_body", False))

    async def send_whole(self, answer: Answer) -> None:
        """Head and body at once, as nearly all answers are; the same as two messages of ASGI."""
        request, line, status = self._request, self._line, answer.status
        body = b"" if status in _BODILESS else answer.body
        own = () if status in _BODILESS else (length_of(body),)
        if not request.complete or self._close or request.method == "HEAD" or line.is_stopping():
            await self._start(status, (*answer.headers, *own))
            await self._body(body, more=False)
            return
        if self._started:
            raise RuntimeError("an answer begins once")
        head = head_bytes(status, line.date(), (*answer.headers, *own))
        request.discarding = self._started = self._ended = True
        await line.write(head + body)

    async def _refuse(self, answer: Answer) -> bool:
        """Say no without the app; the connection goes on unless too much of a body is still to come."""
        headers = (*answer.headers, length_of(answer.body))
        await self._start(answer.status, headers, skipped=SKIPPED_BYTES)
        await self._body(answer.body, more=False)
        return self._ended and not self._close and self._request.complete

    async def _start(
        self, status: int, headers: Sequence[Header], *, skipped: int = timeouts.DRAIN_BYTES
    ) -> None:
        request, line = self._request, self._line
        if self._started:
            raise RuntimeError("an answer begins once")
        if not request.complete and not await line.settle(request, skipped):
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
                self._close = (
                    True  # HTTP/1.0 knows no chunks: the end of the connection is the end of the body.
                )
        if status in _BODILESS or request.method == "HEAD":
            self._left = 0
        if self._close or line.is_stopping():
            self._close = True
            headers.append((b"connection", b"close"))
        self._held = head_bytes(status, line.date(), headers)
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
            await self._line.write(data)
        else:
            await trio.lowlevel.checkpoint()


def length_of(body: bytes) -> Header:
    return b"content-length", b"%d" % len(body)


def _of_its_class(status: int) -> bytes:
    r"""The status line of a status without a phrase; some clients take a line without one for broken.

    >>> _of_its_class(499), _of_its_class(299)
    (b'HTTP/1.1 499 Bad Request\r\n', b'HTTP/1.1 299 OK\r\n')
    """
    first = _STATUS.get(status // 100 * 100, b"")
    return b"HTTP/1.1 %d %b\r\n" % (status, first[13:-2] or b"Unknown")


def head_bytes(status: int, date: Sequence[Header], headers: Sequence[Header]) -> bytes:
    """The head of an answer as it is sent. Raises ValueError when a header would end its line early."""
    line = _STATUS.get(status) or _of_its_class(status)
    head = line + b"\r\n".join([*map(_spelled, date), *map(_spelled, headers), b"\r\n"])
    ends = 2 + len(date) + len(headers)
    if head.count(b"\n") != ends or head.count(b"\r") != ends:
        raise ValueError("a header has a line end in it")
    return head
