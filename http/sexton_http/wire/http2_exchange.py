"""One request of HTTP/2 and its answer, as ASGI has them."""

import math
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final, Protocol, TypeVar

import ngh2
import structlog
import trio

from sexton_http.answers import Answer
from sexton_http.wire import timeouts
from sexton_http.wire.asgi import RESERVED, WHOLE_ANSWER, WHOLE_BODY, App, Header, Message
from sexton_http.wire.gatekeeper import SKIPPED_BYTES, Refuse
from sexton_http.wire.hang_ups import UNLESS_GONE, until_told
from sexton_http.wire.http2_heads import Head
from sexton_http.wire.http2_patience import Patience
from sexton_http.wire.http2_session import take_turns
from sexton_http.wire.http2_turns import Turn
from sexton_http.wire.masking import masked
from sexton_http.wire.transport import Ends

T = TypeVar("T")

AHEAD_BYTES: Final = 16 * 1024
"""A handler goes on while this much of its answer waits for the client."""

_BODILESS: Final = frozenset({204, 304})
_STATUS: Final = {status.value: (b":status", b"%d" % status.value) for status in HTTPStatus}
_OF_HTTP1: Final = frozenset(
    {b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"}
)
"""Headers that a message of HTTP/2 may not have."""
_TELLING: Final = _OF_HTTP1 | {b"content-length", b"set-cookie"}
"""Headers that are not merely passed on."""
_LF, _CR, _NUL = b"\n\r\0"
_DISCONNECT: Final[Message] = {"type": "http.disconnect"}
_CONTINUE: Final = ((b":status", b"100"),)

log = structlog.get_logger()


class Line(Protocol):
    """The connection, as far as one exchange needs it."""

    session: ngh2.Connection
    reserved: bool
    """The server is full, and only its health may be asked after."""
    refuse: Refuse
    """Asked before the app."""

    def date(self) -> Sequence[Header]: ...
    def wrote(self, exchange: "Http2Exchange") -> None: ...
    def consumed(self, exchange: "Http2Exchange", size: int) -> None: ...
    def reset(self, exchange: "Http2Exchange", code: ngh2.ErrorCode) -> None: ...


class Http2Exchange:
    """Holds the body that came until the app wants it, and hands on what the app sends."""

    __slots__ = (
        "_arrived",
        "_begun",
        "_chunks",
        "_discarding",
        "_drained",
        "_head",
        "_held",
        "_left",
        "_left_to_send",
        "_line",
        "_taken_end",
        "_thrown",
        "begun",
        "complete",
        "ended",
        "gone",
        "handed_on",
        "handled",
        "id",
        "patience",
        "started",
        "stopped",
        "turn",
    )

    def __init__(self, line: Line, stream_id: int, head: Head, *, begun: float, complete: bool) -> None:
        self._line = line
        self._head = head
        self.id = stream_id
        self.begun = begun
        """When its first byte came."""
        self.complete = complete
        """All of the body has come."""
        self.gone = False
        """The stream is over, whoever ended it; nothing can be sent on it."""
        self.stopped = False
        """It is reset, as soon as a frame of its body that is under way has come."""
        self.handled = False
        """The app has come to its end."""
        self.started = False
        self.ended = False
        """The app has sent all of its answer; the client may still have to take it."""
        self.handed_on = 0
        """How many bytes of body libnghttp2 was given."""
        self.turn: Turn | None = None
        """Where it stands among those that wait for the client, once it does."""
        self.patience = Patience()
        self._chunks: list[bytes] = []
        self._begun = False
        """A part of the body was handed on."""
        self._discarding = False
        self._taken_end = False
        self._thrown = 0
        self._held: list[Header] | None = None
        """The head of the answer, until its first bytes of body go out with it."""
        self._left_to_send: int | None = None
        """How many bytes of body are still to come, if the answer says its length."""
        self._left: Callable[[], None] | None = None
        """Whom to tell that the client has gone."""
        self._arrived: trio.Event | None = None
        self._drained: trio.Event | None = None

    async def run(self, app: App, ends: Ends, *, secure: bool) -> None:
        """Let the app answer. Raises nothing but a cancellation."""
        if self.gone:
            self.discard()
            return
        head = self._head
        raw_path, _, query = head.target.partition(b"?")
        extensions: dict[str, Any] = {UNLESS_GONE: self.unless_gone}
        if self._line.reserved:
            extensions[RESERVED] = True
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "2",
            "method": head.method,
            "scheme": "https" if secure else "http",
            "path": head.path,
            "raw_path": raw_path,
            "query_string": query,
            "root_path": "",
            "headers": head.headers,
            "client": ends[0],
            "server": ends[1],
            "state": {},
            "extensions": extensions,
            WHOLE_BODY: self.take_whole,
            WHOLE_ANSWER: self.send_whole,
        }
        refused = None if self._line.reserved else self._line.refuse(scope)
        if refused is not None:
            await self.settle(SKIPPED_BYTES)
            self.answer(refused.status, refused.headers, refused.body)
            self.discard()
            return
        try:
            await app(scope, self.receive, self.send)
        except* Exception as group:  # noqa: BLE001 - the border: a fault ends its exchange, not the server
            if not self.gone:
                faults = [repr(fault) for fault in group.exceptions]
                log.warning("request_failed", faults=faults, path=masked(head.path))
        if not self.started and not self.gone:
            await self.settle()
            self.answer(500, (), b"")
        self.discard()

    def left_bytes(self) -> int:
        """How much of the answer's body waits for the client."""
        return int(self._line.session.queued_body_size(self.id))

    def taken(self, queued: int) -> int:
        """How many bytes of body are on their way to the client; ``queued`` still wait."""
        return self.handed_on - queued

    def look(self, now: float, queued: int, sent: int) -> None:
        """See what the client has taken. ``queued``: bytes of this answer; ``sent``: of all answers."""
        taken = self.taken(queued)
        self.patience.look(now, taken)
        if self.turn is not None and self.turn.look(taken, sent):
            take_turns(self._line.session, self.id, first=self.turn.is_first)

    def due(self, *, torn: bool) -> float:
        """Until when this stream may wait for its client. A write that is ``torn`` has a bound of its own."""
        awaits = not (self.complete or self.gone or self.stopped)
        read_due = self.begun + timeouts.READ_S if awaits else math.inf
        return read_due if torn else min(read_due, self.patience.due)

    # --- what the client sends ------------------------------------------------------------------------------

    def put(self, data: bytes, *, last: bool) -> None:
        """Take what the connection has read of the body."""
        self.complete = self.complete or last
        if data:
            if self._discarding:
                self._thrown += len(data)
                self._line.consumed(self, len(data))
            else:
                self._chunks.append(data)
        if self._arrived is not None:
            self._wake_reader()

    def close(self) -> None:
        """The stream is over: whoever waits for its client waits no longer."""
        self.gone = True
        self.patience.end()
        if self._left is not None:
            self._left()
        if self._arrived is not None:
            self._wake_reader()
        if self._drained is not None:
            self.wake_writer()

    async def receive(self) -> Message:
        """Give the app its next message, as ASGI has it."""
        while True:
            if self._chunks:
                body = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
                self._chunks.clear()
                self._line.consumed(self, len(body))
                self._begun, self._taken_end = True, self.complete
                return {"type": "http.request", "body": body, "more_body": not self.complete}
            if self.complete and not self._taken_end:
                self._taken_end = True
                return {"type": "http.request", "body": b"", "more_body": False}
            if self.gone:
                return _DISCONNECT
            if self._head.awaits_go and not self.complete and not self.started:
                self._go_on()
            await self._arrival()

    def take_whole(self) -> bytes | None:
        """The body, if all of it is here and nothing of it was handed on; then it is taken."""
        if not self.complete or self._begun or self._taken_end or self._discarding:
            return None
        body = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks.clear()
        self._taken_end = True
        if body:
            self._line.consumed(self, len(body))
        return body

    def _go_on(self) -> None:
        """Ask once for a body that is held back until it is wanted."""
        self._head = self._head._replace(awaits_go=False)
        self._line.session.send_informational_response(self.id, _CONTINUE)
        self._line.wrote(self)

    async def unless_gone(self, ask: Callable[[], Awaitable[T]]) -> T | None:
        """The answer; None when the client has gone meanwhile."""
        return None if self.gone else await until_told(ask, self._expect, self._forget)

    def _expect(self, left: Callable[[], None]) -> None:
        self._left = left

    def _forget(self) -> None:
        self._left = None

    async def settle(self, most: int = timeouts.DRAIN_BYTES) -> None:
        """Before an answer: throw the rest of the body away, within the bounds of HTTP/1.1."""
        if self._is_settled():
            return
        self.discard()
        if self._head.awaits_go or self._head.declared > most:
            return
        with trio.move_on_after(timeouts.DRAIN_S):
            while not self._is_settled() and self._thrown <= most:
                await self._arrival()

    def _is_settled(self) -> bool:
        return self.complete or self.gone

    def discard(self) -> None:
        """From here on nothing is kept: nobody will read it."""
        self._discarding = True
        if self._chunks:
            size = sum(map(len, self._chunks))
            self._chunks.clear()
            self._line.consumed(self, size)

    # --- what the app sends ---------------------------------------------------------------------------------

    async def send(self, message: Message) -> None:
        """Raises RuntimeError and ValueError when the app does what an answer cannot be made of."""
        if message["type"] == "http.response.start":
            if not self.complete:
                await self.settle()
            self._start(message["status"], message.get("headers", ()))
        elif not self.ended:
            await self._body(message.get("body", b""), more=message.get("more_body", False))

    async def send_whole(self, answer: Answer) -> None:
        """Head and body at once, as nearly all answers are; the same as two messages of ASGI."""
        if not self.complete:
            await self.settle()
        status, body = answer.status, answer.body
        if status in _BODILESS:
            self._start(status, answer.headers)
            await self._body(b"", more=False)
        else:
            self._start(status, (*answer.headers, (b"content-length", b"%d" % len(body))))
            await self._body(body, more=False)

    def answer(self, status: int, headers: Sequence[Header], body: bytes) -> None:
        """Say all at once, without the app."""
        if not self.gone:
            self._start(status, [*headers, (b"content-length", b"%d" % len(body))])
            # It may have been taken back with the bytes that brought it: that is the next event.
            with suppress(ngh2.StreamUnavailableError):
                self._hand_on(body, more=False)

    def join_turns(self) -> None:
        """The answer has to wait for the client. One that leaves at once needs no turn."""
        if self.turn is None:
            self.turn = Turn()
            take_turns(self._line.session, self.id)

    def _start(self, status: int, headers: Sequence[Header]) -> None:
        if self.started:
            raise RuntimeError("an answer begins once")
        told = b"".join([value for _, value in headers])
        # Looked for as numbers: as bytes each would raise an exception within, before it is looked for.
        if _LF in told or _CR in told or _NUL in told:
            raise ValueError("a header has a line end in it")
        fields: list[Header] = [_STATUS.get(status) or (b":status", b"%d" % status), *self._line.date()]
        for field in headers:
            name = field[0]
            if name not in _TELLING:
                fields.append(field)
            elif name == b"content-length":
                self._left_to_send = int(field[1])
                fields.append(field)
            elif name == b"set-cookie":
                fields.append(ngh2.NeverIndexedHeader(*field))
        if status in _BODILESS or self._head.method == "HEAD":
            self._left_to_send = 0
        self._held = fields
        self.started = True

    async def _body(self, body: bytes, *, more: bool) -> None:
        if not self.started:
            raise RuntimeError("an answer begins with its head")
        if self.gone:
            # A handler that does nothing but send must still come to its end.
            await trio.lowlevel.checkpoint()
            return
        self._hand_on(body, more=more)
        while self._is_ahead():
            if self._drained is None:
                self._drained = trio.Event()
            await self._drained.wait()

    def _is_ahead(self) -> bool:
        """More of the answer waits for the client than a handler may leave behind it."""
        return not self.gone and self._line.session.queued_body_size(self.id) > AHEAD_BYTES

    def _hand_on(self, body: bytes, *, more: bool) -> None:
        session = self._line.session
        if self._left_to_send is not None:
            body = body[: self._left_to_send]
            self._left_to_send -= len(body)
        self.ended = not more
        held, self._held = self._held, None
        if held is not None:
            # With no body the end goes with the head, for which no window need be open.
            at_once = self.ended and not body and not self._left_to_send
            session.send_response(self.id, held, end_stream=at_once)
            if at_once:
                self._line.wrote(self)
                return
        broken = self.ended and bool(self._left_to_send)
        session.send_data(self.id, body, end_stream=self.ended and not broken)
        self.handed_on += len(body)
        if broken:
            self._line.reset(self, ngh2.ErrorCode.INTERNAL_ERROR)  # It promised more than it gave.
        self._line.wrote(self)

    # --- waiting --------------------------------------------------------------------------------------------

    async def _arrival(self) -> None:
        if self._arrived is None:
            self._arrived = trio.Event()
        await self._arrived.wait()

    def _wake_reader(self) -> None:
        if self._arrived is not None:
            self._arrived.set()
            self._arrived = None

    def wake_writer(self) -> None:
        """The client has taken something of the answer."""
        if self._drained is not None:
            self._drained.set()
            self._drained = None
