"""Hypercorn's protocols with their sharp ends covered: no upgrades, one write an answer."""

from collections.abc import Awaitable, Callable
from typing import Any

import h2.events
import h11
from hypercorn.config import Config
from hypercorn.events import Closed, Event, RawData
from hypercorn.protocol.events import (
    Body,
    EndBody,
    Event as StreamEvent,
    Request,
    Response,
    StreamClosed,
)
from hypercorn.protocol.h2 import H2Protocol
from hypercorn.protocol.h11 import STREAM_ID, H2ProtocolAssumedError, H11Protocol
from hypercorn.protocol.http_stream import HTTPStream
from hypercorn.typing import ConnectionState

from sexton_http.wire.heads import check_head, is_host
from sexton_http.wire.malformed import malformed

OK = 200
BAD_REQUEST = 400
Send = Callable[[Event], Awaitable[None]]


class _BadHead(Exception):
    """What h11 reads, and this server does not."""


class Http1(H11Protocol):
    """HTTP/1.1 without WebSockets and without h2c upgrades, both of which the product does not speak.

    An upgrade is an offer that a server may pass over (RFC 9110, 7.8), so such a request is
    answered as it is.
    """

    _head: bytes | None = None
    """The head of the answer, until its first bytes of body go out with it: one write, one packet."""
    _why = "this is no request of HTTP/1.1 that can be read in one way only"

    async def handle(self, event: Event) -> None:
        try:
            await super().handle(event)
        except _BadHead:  # As with what h11 itself cannot read: it is answered, and the connection ends.
            await self._send_error_response(BAD_REQUEST)
            await self.send(Closed())

    async def stream_send(self, event: StreamEvent) -> None:
        match event:
            case Response() if event.status_code >= OK:
                await self._flush()
                headers = [*event.headers, *self.config.response_headers("h11")]
                if self.keep_alive_requests >= self.config.keep_alive_max_requests:
                    headers.append((b"connection", b"close"))
                self._head = self._encode(h11.Response(headers=headers, status_code=event.status_code))
            case Body():
                await self._write(self._encode(h11.Data(data=event.data)))
            case EndBody():
                await self._write(self._encode(h11.EndOfMessage()))
            case StreamClosed():
                await self._flush()
                await self._maybe_recycle()
            case _:
                await super().stream_send(event)

    def _encode(self, event: Any) -> bytes:
        try:
            return self.connection.send(event) or b""
        except h11.LocalProtocolError:
            # The peer broke the protocol first; whatever we owed it cannot be said any more.
            if self.connection.their_state is not h11.ERROR:
                raise
            return b""

    async def _write(self, data: bytes) -> None:
        head, self._head = self._head, None
        data = data if head is None else head + data
        if data:
            await self.send(RawData(data=data))

    async def _flush(self) -> None:
        if self._head is not None:
            await self._write(b"")

    async def _send_error_response(self, status_code: int) -> None:
        answer = malformed(self.app, self._why)
        del status_code  # h11 gives hints of its own; one code is enough for what cannot be read.
        headers = [
            *answer.headers,
            (b"content-length", b"%d" % len(answer.body)),
            (b"connection", b"close"),
            *self.config.response_headers("h11"),
        ]
        head = self._encode(h11.Response(headers=headers, status_code=answer.status))
        body = self._encode(h11.Data(data=answer.body)) + self._encode(h11.EndOfMessage())
        await self.send(RawData(data=head + body))

    async def _check_protocol(self, event: h11.Request) -> None:
        if event.method == b"PRI" and event.target == b"*" and event.http_version == b"2.0":
            raise H2ProtocolAssumedError(b"PRI * HTTP/2.0\r\n\r\n" + self.connection.trailing_data[0])
        why = check_head(event.method, event.target, event.http_version.decode(), list(event.headers))
        if why:
            self._why = why
            raise _BadHead

    async def _create_stream(self, request: h11.Request) -> None:
        self.stream = HTTPStream(
            self.app,
            self.config,
            self.context,
            self.task_group,
            self.ssl,
            self.client,
            self.server,
            self.stream_send,
            STREAM_ID,
        )
        await self.stream.handle(
            Request(
                stream_id=STREAM_ID,
                headers=list(request.headers),
                http_version=request.http_version.decode(),
                method=request.method.decode("ascii").upper(),
                raw_path=request.target,
                state=self.connection_state,
            )
        )
        self.keep_alive_requests += 1
        await self.context.mark_request()


class Http2(H2Protocol):
    """HTTP/2 without CONNECT, where a stream that is over does not take the others with it."""

    async def _handle_events(self, events: list[h2.events.Event]) -> None:
        for event in events:
            if isinstance(event, h2.events.DataReceived) and event.stream_id not in self.streams:
                # The answer went out before all of the body came in: give the window back, drop the bytes.
                self.connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            else:
                await super()._handle_events([event])
        await self._flush()

    async def _create_stream(self, request: h2.events.RequestReceived) -> None:
        pseudo = dict(request.headers)
        path = pseudo.get(b":path", b"")
        method = pseudo.get(b":method", b"CONNECT")
        if (
            method == b"CONNECT"
            or not path.startswith(b"/")
            or not path.isascii()
            or not is_host(pseudo.get(b":authority", b""))
        ):
            self.connection.reset_stream(request.stream_id)
        else:
            await super()._create_stream(request)


class Spoken:
    """The one that a connection speaks: by ALPN, or by HTTP/2's preface on a plain one."""

    def __init__(self, config: Config, alpn: str, *rest: Any) -> None:
        self._config = config
        self._rest = rest
        self._protocol: Http1 | Http2 = self._make(Http2 if alpn == "h2" else Http1)

    def _make(self, kind: type[Http1] | type[Http2]) -> Http1 | Http2:
        app, context, tasks, secure, client, server, send = self._rest
        return kind(app, self._config, context, tasks, ConnectionState({}), secure, client, server, send)

    @property
    def is_http2(self) -> bool:
        return isinstance(self._protocol, Http2)

    async def initiate(self) -> None:
        await self._protocol.initiate()

    async def handle(self, event: Event) -> None:
        try:
            await self._protocol.handle(event)
        except H2ProtocolAssumedError as assumed:
            self._protocol = self._make(Http2)
            await self._protocol.initiate()
            await self._protocol.handle(RawData(data=assumed.data))
