"""HTTP/1.1 over a transport, in one task a connection: the way of nearly all requests."""

import math
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final, TypeVar

import trio

from sexton_http.wire import timeouts
from sexton_http.wire.asgi import RESERVED, App, Header, Message
from sexton_http.wire.gatekeeper import Prepared, byte_gatekeeper_of, gatekeeper_of
from sexton_http.wire.hang_ups import UNLESS_GONE, HangUps, until_told
from sexton_http.wire.http1_exchange import Exchange, head_bytes
from sexton_http.wire.http1_parser import Parser, Request
from sexton_http.wire.http2_session import PREFACE
from sexton_http.wire.malformed import malformed
from sexton_http.wire.transport import Transport

T = TypeVar("T")

MAX_PIPELINED: Final = 64
"""With this many requests waiting, no more is read until they are answered."""

_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_DISCONNECT: Final[Message] = {"type": "http.disconnect"}


def _never() -> bool:
    return False


class Http1Connection:
    """One connection. ``run`` ends with it, or with the first bytes of one that speaks HTTP/2.

    The app runs in the connection's own task, and reads by itself what it wants of a body. So a request costs
    no task and no channel, and a client that is ahead of the app is slowed down by TCP alone.
    """

    def __init__(
        self,
        app: App,
        transport: Transport,
        *,
        date: Callable[[], Sequence[Header]],
        is_stopping: Callable[[], bool],
        hang_ups: HangUps | None = None,
        reserved: bool = False,
        first: bytes | None = None,
        goes_on: bool = False,
    ) -> None:
        """``date`` gives the headers that every answer has. ``first``: what has been read already.

        ``goes_on``: when this process stops, another takes the connection over, between two requests.

        Without ``hang_ups`` an app that waits has to read to find out that its client has left. One that is
        ``reserved`` is for one request, and its app is told so.
        """
        self._app = app
        self._transport = transport
        self.date = date
        self._is_stopping = is_stopping
        self.is_stopping = _never if goes_on else is_stopping
        """Whether an answer says that it is the last."""
        self.can_go_on = False
        """At its end: nothing is under way, nothing was said, and another process may take it over."""
        self._goes_on = goes_on
        self._first_bytes = first
        self.is_gone = False
        """The client has hung up, or takes nothing."""
        self.reserved = reserved
        self.extensions: dict[str, Any] = {RESERVED: True} if reserved else {}
        """The part that every request's scope shares."""
        if hang_ups is not None:
            self.extensions[UNLESS_GONE] = partial(self._unless_gone, hang_ups)
        self.refuse = gatekeeper_of(app)
        self._refuse_bytes = byte_gatekeeper_of(app)
        self._client = ""
        self._refused: Prepared | None = None
        """What is to be said to a request that no parser has seen."""
        self._parser = Parser()
        self._scope = trio.CancelScope()
        self._is_reading = False
        self._others_wait = trio.lowlevel.ParkingLot()
        self._request: Request | None = None
        # The clock itself: trio.current_time looks it up by three calls, and a request asks for it twice.
        self._now = trio.lowlevel.current_clock().current_time
        self._since = self._now()
        """When the connection was opened, or the last answer was done."""
        self._begun: float | None = None
        """When the first byte of a request came; None while none has."""
        self._linger_until: float | None = None

    async def run(self) -> bytes:
        """Raises nothing but a cancellation and OSError. The transport is the caller's to close."""
        try:
            return await self._run()
        finally:
            self.extensions.clear()  # They hold this connection.

    async def _run(self) -> bytes:
        ends, secure = self._transport.ends(), self._transport.secure
        self._client = ends[0][0]
        with self._scope:
            preface = await self._first()
            if preface:
                return preface
            while (request := await self._next_request()) is not None:
                go_on = await Exchange(self, request).run(self._app, ends, secure=secure)
                self._forget()
                if not go_on:
                    await self._say_goodbye()
                    return b""
                if self._parser.requests:
                    # Those behind it are here already: answered without a wait, they would be one long turn.
                    await trio.lowlevel.checkpoint()
            if not self._is_handed_on():
                await self._say_goodbye()
            return b""
        self._is_handed_on()
        return b""

    def _is_handed_on(self) -> bool:
        parser = self._parser
        whole = parser.is_between and not (parser.requests or parser.broken or self.is_gone)
        self.can_go_on = self._goes_on and self._is_stopping() and whole
        return self.can_go_on

    # --- until when -----------------------------------------------------------------------------------------

    def due(self) -> float:
        """Until when this connection may wait for its client."""
        if self._linger_until is not None:
            return self._linger_until
        if self._request is not None and self._request.complete:
            return math.inf
        return self._since + timeouts.KEEP_ALIVE_S if self._begun is None else self._begun + timeouts.READ_S

    def idle_since(self) -> float:
        return self._since if self._request is None and self._begun is None else math.inf

    def cut(self) -> None:
        self._scope.cancel()

    def close_if_idle(self) -> None:
        if self._request is None:
            self._scope.cancel()

    # --- reading --------------------------------------------------------------------------------------------

    async def _first(self) -> bytes:
        """Look at the first bytes: whoever speaks HTTP/2 says so there."""
        data = self._first_bytes or b""
        if data:
            self._note_begin()
        elif self._first_bytes is not None:
            return b""  # It comes from another process, between two requests.
        while len(data) < len(PREFACE) and PREFACE.startswith(data):
            part = await self._transport.receive()
            if not part:
                break
            self._note_begin()
            data += part
        if data.startswith(PREFACE):
            return data
        self._take(data)
        return b""

    async def _next_request(self) -> Request | None:
        """The next one whose head is here; None when there can be none."""
        parser = self._parser
        while not parser.requests:
            if self._refused is not None:
                await self._turn_away(self._refused)
            # In this order: what came before the fault was answered, so now the fault is; and whoever has
            # hung up is told nothing. A stop ends a connection only between requests, never within one.
            if parser.broken:
                if not parser.upgraded:
                    await self.turn_down()
                return None
            if self.is_gone or (self._is_stopping() and parser.is_between):
                return None
            await self._read()
            # Not earlier: a connection that waits for a request is idle, and has KEEP_ALIVE_S for that.
            self._note_begin()
        request = self._request = parser.requests[0]
        return request

    async def _turn_away(self, answer: Prepared) -> None:
        self._refused = None
        date = b"".join([b"%b: %b\r\n" % header for header in self.date()])
        await self.write(b"%b%b%b" % (answer.line, date, answer.rest))
        self._since, self._begun = trio.current_time(), None

    def _forget(self) -> None:
        """The answer is done: the clock of the next one starts."""
        parser = self._parser
        parser.requests.popleft()
        self._request = None
        self._since = self._now()
        # A part of the next request may be here already; its time is counted from now, not from when it came,
        # since until now nobody would have read it.
        self._begun = None if parser.is_between and not parser.requests else self._since

    async def receive(self, request: Request) -> Message:
        """The next message of ASGI for the app: a part of the body, its end, or that the client has gone."""
        while True:
            if request.body and not request.discarding:
                # All that is here in one message: the app gets a small body in its first.
                body = request.body[0] if len(request.body) == 1 else b"".join(request.body)
                request.body.clear()
                request.begun, request.ended = True, request.complete
                return {"type": "http.request", "body": body, "more_body": not request.complete}
            if request.complete and not request.ended:
                request.ended = True
                return {"type": "http.request", "body": b"", "more_body": False}
            if self.is_gone or (self._parser.broken and not request.complete):
                return _DISCONNECT
            # Here the app has the whole body and asks whether its client leaves. Only reading tells, but what
            # is read now are later requests: beyond a bound they stay in the kernel. Nothing wakes this wait
            # but the end of the answer, which cancels the task that asked.
            if request.ended and (len(self._parser.requests) > MAX_PIPELINED or self._parser.broken):
                await trio.sleep_forever()
            # The app asks for a body that its client holds back until it is told that it is wanted. An app
            # that refuses the request never asks, so the body is never sent.
            if request.awaits_go and not request.complete:
                request.awaits_go = False
                await self.write(_CONTINUE)
            await self._read()

    async def _read(self) -> None:
        """Read once, or wait for another task that is reading."""
        # The app may wait for a disconnect in one task while another reads the body. Two reads at once would
        # take bytes in no certain order, so the second one waits and then looks at what the first one got.
        # A lock would do the same, but takes a turn of the loop although nobody else wants it.
        if self._is_reading:
            await self._others_wait.park()
            return
        self._is_reading = True
        try:
            self._take(await self._transport.receive())
        finally:
            self._is_reading = False
            if self._others_wait:
                self._others_wait.unpark_all()

    def _take(self, data: bytes) -> None:
        if data:
            if self._request is None and self._parser.is_between and not self.reserved:
                # Whole requests only, and only from here on: what the parser has begun it also ends.
                self._refused = None if self._is_stopping() else self._refuse_bytes(data, self._client)
            if self._refused is None:
                self._parser.feed(data)
        else:
            # A client that says that it sends no more is taken for gone, though it might still read: clients
            # of HTTP do not do that, and of one that has left there is no other sign.
            self.is_gone = True

    def _note_begin(self) -> None:
        if self._begun is None:
            self._begun = self._now()

    async def _unless_gone(self, hang_ups: HangUps, ask: Callable[[], Awaitable[T]]) -> T | None:
        descriptor = self._transport.descriptor

        def expect(cancel: Callable[[], None]) -> None:
            def left() -> None:
                self.is_gone = True
                cancel()

            hang_ups.expect(descriptor, left)

        return await until_told(ask, expect, partial(hang_ups.forget, descriptor))

    async def settle(self, request: Request, most: int = timeouts.DRAIN_BYTES) -> bool:
        """Before an answer: throw away what the body still brings, up to ``most``; True when all has come."""
        # An answer may be sent before the body is here, but a client that is still sending may not read it,
        # and closing on unread bytes sends a reset, which destroys the answer on its way.
        request.discarding = True
        if not request.complete and (request.awaits_go or request.declared > most):
            return False  # It has not begun, or would be cut off anyhow: nobody waits for it.
        request.awaits_go = False
        thrown = 0
        with trio.move_on_after(timeouts.DRAIN_S):
            while not (request.complete or self.is_gone or self._parser.broken or thrown > most):
                thrown += sum(map(len, request.body))
                request.body.clear()
                await self._read()
        return request.complete

    # --- writing --------------------------------------------------------------------------------------------

    async def write(self, data: bytes) -> None:
        """Give the kernel what it takes at once, wait for the rest; a client that takes nothing is cut."""
        if self.is_gone:
            # A handler that does nothing but send must still come to its end.
            await trio.lowlevel.checkpoint()
            return
        try:
            if not self._transport.send_now(data):
                # A write torn in two cannot be continued: it is finished or given up, never cancelled.
                with trio.CancelScope(shield=True):
                    await self._transport.flush()
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError):
            self.is_gone = True
            self._scope.cancel()

    async def turn_down(self) -> None:
        """Say to bytes that are no request what is wrong with them."""
        answer = malformed(self._app, self._parser.why)
        headers = [*answer.headers, (b"content-length", b"%d" % len(answer.body)), (b"connection", b"close")]
        await self.write(head_bytes(answer.status, self.date(), headers) + answer.body)

    async def _say_goodbye(self) -> None:
        """Send our end, and take what is on the way for a moment: a reset would destroy the answer."""
        if self.is_gone:
            return
        try:
            self._transport.finish()
        except OSError:
            return
        if self._parser.is_between and not self._parser.broken:
            return
        self._linger_until = trio.current_time() + timeouts.LINGER_S
        while await self._transport.discard():
            pass
