"""HTTP/2 over a transport: one task reads, one waits for the kernel, and each request that waits has one."""

import math
from collections.abc import Callable, Sequence
from typing import Final

import ngh2
import trio
from ngh2 import DataReceived, ErrorCode, RequestReceived, StreamClosed

from sexton_http.wire import timeouts
from sexton_http.wire.asgi import App, Header
from sexton_http.wire.gatekeeper import gatekeeper_of
from sexton_http.wire.http2_calm import Calm
from sexton_http.wire.http2_closing import Closing
from sexton_http.wire.http2_exchange import AHEAD_BYTES, Http2Exchange
from sexton_http.wire.http2_frames import FrameBorders
from sexton_http.wire.http2_heads import read_head
from sexton_http.wire.http2_resets import Resets
from sexton_http.wire.http2_session import MAX_STREAMS, PREFACE, open_session
from sexton_http.wire.http2_tasks import Workers, Writer, until_it_waits
from sexton_http.wire.malformed import malformed
from sexton_http.wire.transport import Ends, Transport

MAX_REQUESTS: Final = 100_000
"""The bound of one connection, one after the other."""


class Http2Connection:
    """Speaks HTTP/2 until either side is done. The transport is the caller's to close.

    Whatever is to be said is handed to ``session``, and sent at once while one request is under way. With
    several it waits for the next turn of the loop, so that answers that are ready together leave together.

    The task that reads answers a request that is alone. Others are given to tasks of their own.
    """

    def __init__(
        self,
        app: App,
        transport: Transport,
        *,
        date: Callable[[], Sequence[Header]],
        is_stopping: Callable[[], bool],
        reserved: bool = False,
    ) -> None:
        """``date`` gives the headers that every answer has. ``reserved``: only health may be asked after."""
        self._app = app
        self.refuse = gatekeeper_of(app)
        self._transport = transport
        self.date = date
        self.reserved = reserved
        self.session, self._first = open_session()
        self._open: dict[int, Http2Exchange] = {}
        """By its stream, whoever still has to end it: the client, this side, or the app."""
        self._waiting: dict[int, Http2Exchange] = {}
        """The exchanges whose clients have not taken all that was sent."""
        self._writer = Writer(transport, self._lose)
        self._closing = Closing(
            self.session, self._writer, self._open, is_stopping=is_stopping, when_over=self._end_workers
        )
        self._nursery: trio.Nursery | None = None
        self._workers: Workers[Http2Exchange] | None = None
        self._alone: Http2Exchange | None = None
        """What has just come, if nothing else is under way."""
        # The clock itself: trio.current_time looks it up by three calls.
        self._now = trio.lowlevel.current_clock().current_time
        self._requests = 0
        self._borders = FrameBorders(len(PREFACE))
        self._resets = Resets(self.session, self._borders)
        self._since = self._now()
        """When the connection was opened, or the last stream ended."""
        self._calm = Calm(self._since)
        self._unread = b""
        self._scope = trio.CancelScope()
        """Around the task that reads, as long as it reads."""
        self._is_answering = False
        """The task that reads answers a request, and has not waited in it."""
        self._stopped = False
        """Nothing more is to be read."""
        self._part_since: float | None = None
        """When something came that is not whole yet."""
        self._ends: Ends = (("", 0), ("", 0))

    async def run(self, first: bytes = b"") -> None:
        """``first``: what was read before. Raises ExceptionGroup of whatever went wrong."""
        self._ends, self._unread = self._transport.ends(), first
        async with trio.open_nursery() as self._nursery:
            self._workers = Workers(self._nursery, self._serve, self._read)
            self._nursery.start_soon(self._writer.run, self._pump)
            self._writer.send(self._first)
            await self._workers.run()

    # --- until when -----------------------------------------------------------------------------------------

    def due(self) -> float:
        """Until when this connection, or one of its streams, may wait for its client."""
        if self._closing.over:
            return self._closing.linger_until
        due = min((one.due(torn=self._writer.torn) for one in self._open.values()), default=math.inf)
        if self._part_since is not None:
            due = min(due, self._part_since + timeouts.READ_S)
        return due if self._open else min(due, self._since + timeouts.KEEP_ALIVE_S)

    def left_behind(self) -> list[Http2Exchange]:
        """The answers that their handlers are done with, and the client is not."""
        return [exchange for exchange in self._waiting.values() if exchange.handled]

    def idle_since(self) -> float:
        """Since when no request is under way, nor any byte of one; ``math.inf`` while one is."""
        return math.inf if self._open or self._part_since is not None or self._closing.over else self._since

    def cut(self) -> None:
        """End the streams that are overdue; the connection, if none is or if it stands still as a whole."""
        now, torn = self._now(), self._writer.torn
        late = [exchange for exchange in self._open.values() if now >= exchange.due(torn=torn)]
        if not late or self._closing.over or torn:
            self._closing.leave(ErrorCode.NO_ERROR)
            self._stop_reading()
        elif any(now >= exchange.patience.due for exchange in late) and self.session.remote_window_size <= 0:
            self._closing.leave(ErrorCode.ENHANCE_YOUR_CALM)
        else:
            # A frame that stands still has no end, and an unread answer is to give its room back now.
            stands_still = self._part_since is not None and now >= self._part_since + timeouts.READ_S
            for exchange in late:
                at_once = stands_still or now >= exchange.patience.due
                self.reset(exchange, ErrorCode.CANCEL, at_once=at_once)
            self._pump()

    def close_if_idle(self) -> None:
        """Say that nothing new is taken; end the connection if nothing is under way."""
        if not self._open:
            self._closing.leave(ErrorCode.NO_ERROR)
        else:
            self._closing.decline()

    # --- reading --------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        """Until nothing comes, or until another task reads."""
        with self._scope:
            while not self._stopped:
                data, self._unread = self._unread or await self._transport.receive(), b""
                if not data:
                    break
                if self._resets.waiting is not None and not self._closing.over:
                    data = self._take_up_to_reset(data)
                if data and not self._closing.over:
                    self._take(data)
                if self._closing.over:
                    # Our end is sent. What the client has on the way is taken for a moment: see `due`.
                    while await self._transport.discard():
                        pass
                    break
                exchange, self._alone = self._alone, None
                if exchange is not None:
                    self._is_answering = True
                    answer = exchange.run(self._app, self._ends, secure=self._transport.secure)
                    has_waited = await until_it_waits(answer, self._read_on)
                    self._handled(exchange)
                    if has_waited:
                        return
                    self._is_answering = False
        self._closing.end()
        if self._nursery is not None:
            self._nursery.cancel_scope.deadline = self._now() + timeouts.GONE_S

    def _read_on(self) -> None:
        """The request that the reading task answers has to wait: another task reads from now on."""
        # What the first one still does is no reading: whoever stops that does not mean it.
        self._is_answering, self._scope = False, trio.CancelScope()
        if self._workers is not None:
            self._workers.read_on()

    def _stop_reading(self) -> None:
        self._stopped = True
        if not self._is_answering:
            self._scope.cancel()

    def _take_up_to_reset(self, data: bytes) -> bytes:
        """A stream is reset at the end of the frame under way. Returns what comes after that."""
        at = self._borders.left
        if len(data) < at:
            return data
        self._take(data[:at])
        if not self._closing.over:
            self._resets.carry_out()
            self._pump()
        return data[at:]

    def _take(self, data: bytes) -> None:
        """Understand what came; whatever is wrong with it ends the connection in order."""
        now = self._now()
        session = self.session
        try:
            session.receive_data(data)
        except ngh2.DenialOfServiceError:
            self._closing.fail(ErrorCode.ENHANCE_YOUR_CALM)
            return
        except (ngh2.NGH2Error, ValueError):
            self._closing.fail(ErrorCode.PROTOCOL_ERROR)
            return
        resets = self._resets
        if self._borders.feed(data, resets.arrived if resets.allowed else None):
            self._part_since = None
        elif self._part_since is None or self._borders.passed:
            self._part_since = now
        events = session.events()
        if events and isinstance(events[-1], ngh2.ConnectionClosed):
            # Nothing is under way, and the session takes nothing more: what came before has come to nothing.
            self._closing.leave(ErrorCode.NO_ERROR)
            return
        beside = len(data) - (resets.spared() if resets.allowed else 0)
        for event in events:
            if self._closing.over:
                return
            if isinstance(event, RequestReceived):
                self._ask(event, now)
            elif isinstance(event, DataReceived):
                beside -= len(event.data)
                self._put(event)
            else:
                self._note(event)
        if self._closing.over:
            return
        if not self._calm.received(now, beside):
            self._closing.leave(ErrorCode.ENHANCE_YOUR_CALM)
        elif session.want_write:
            self._pump()

    def _ask(self, event: RequestReceived, now: float) -> None:
        stream_id = event.stream_id
        if self._closing.leaving:
            self._resets.reset(stream_id, ErrorCode.REFUSED_STREAM, awaits_body=not event.end_stream)
            return
        self._closing.last_stream = stream_id
        head = read_head(event.headers)
        self._calm.asked(head.size)
        if head.method == "CONNECT":
            # No body may be on its way: it is to wait for an answer (RFC 9110, 9.3.6).
            self._resets.reset(stream_id, ErrorCode.PROTOCOL_ERROR, awaits_body=False)
            return
        # A stream that the client has taken back counts until its handler is done with it.
        if len(self._open) >= MAX_STREAMS:
            self._resets.reset(stream_id, ErrorCode.REFUSED_STREAM, awaits_body=not event.end_stream)
            self._count_reset(now)
            return
        exchange = Http2Exchange(self, stream_id, head, begun=now, complete=event.end_stream)
        self._open[stream_id] = exchange
        self._requests += 1
        if self._requests >= MAX_REQUESTS:
            self._closing.decline()
        if head.fault:
            answer = malformed(self._app, head.fault)
            exchange.answer(answer.status, answer.headers, answer.body)
            exchange.discard()
            self._handled(exchange)
        elif len(self._open) == 1:
            self._alone = exchange
        elif self._workers is not None:
            if self._alone is not None:
                self._workers.give(self._alone)
                self._alone = None
            self._workers.give(exchange)

    def _put(self, event: DataReceived) -> None:
        exchange = self._open.get(event.stream_id)
        if exchange is not None and not exchange.gone:
            exchange.put(event.data, last=event.end_stream)
        elif event.data:
            self.session.acknowledge_received_data(len(event.data), event.stream_id)

    def _note(self, event: ngh2.Event) -> None:
        if isinstance(event, StreamClosed):
            if (exchange := self._open.get(event.stream_id)) is not None:
                exchange.close()
                self._forget(exchange)
        elif isinstance(event, ngh2.StreamReset):
            self._count_reset(self._now())
        elif isinstance(event, ngh2.TrailersReceived):
            if (exchange := self._open.get(event.stream_id)) is not None:
                exchange.put(b"", last=True)
        elif isinstance(event, ngh2.GoAwayReceived):
            self._closing.decline()
        elif isinstance(event, ngh2.ConnectionClosed):
            self._closing.leave(None)

    def _count_reset(self, now: float) -> None:
        if not self._calm.reset(now):
            self._closing.leave(ErrorCode.ENHANCE_YOUR_CALM)

    # --- requests under way ---------------------------------------------------------------------------------

    async def _serve(self, exchange: Http2Exchange) -> None:
        await exchange.run(self._app, self._ends, secure=self._transport.secure)
        self._handled(exchange)

    def _handled(self, exchange: Http2Exchange) -> None:
        """The app is done with it."""
        exchange.handled = True
        if exchange.gone:
            self._forget(exchange)
        elif not exchange.ended:
            self.reset(exchange, ErrorCode.INTERNAL_ERROR)
            self._writer.wake()
        elif not exchange.complete:
            self._stop_sender(exchange)

    def _stop_sender(self, exchange: Http2Exchange) -> None:
        """The answer is whole, the request is not: what is missing is not wanted (RFC 9113, 8.1)."""
        if exchange.handled and exchange.id not in self._waiting:
            self.reset(exchange, ErrorCode.NO_ERROR)
            self._writer.wake()

    def _forget(self, exchange: Http2Exchange) -> None:
        self._waiting.pop(exchange.id, None)
        if exchange.handled and self._open.pop(exchange.id, None) is not None and not self._open:
            self._since = self._now()
            self._closing.leave_if_done()

    def reset(self, exchange: Http2Exchange, code: ErrorCode, *, at_once: bool = False) -> None:
        """End its stream; unless ``at_once``, a frame of its body that is under way may come to its end."""
        if not (exchange.gone or self._closing.over):
            exchange.stopped = True
            self._resets.reset(exchange.id, code, awaits_body=not exchange.complete, at_once=at_once)

    def consumed(self, exchange: Http2Exchange, size: int) -> None:
        """The app has taken that much of the body: the client may send as much again."""
        if not self._closing.over:
            self.session.acknowledge_received_data(size, exchange.id)
            if self.session.want_write:
                self._writer.wake()

    # --- writing --------------------------------------------------------------------------------------------

    def wrote(self, exchange: Http2Exchange) -> None:
        """Something was handed to the session for this exchange."""
        if self._closing.over:
            return
        self._calm.wrote()
        if len(self._open) == 1:
            self._pump()
            if exchange.gone or not (self._writer.torn or self.session.queued_body_size(exchange.id)):
                return
        else:
            self._writer.wake()
        exchange.join_turns()
        exchange.patience.begin(self._now(), exchange.taken(self.session.queued_body_size(exchange.id)))
        self._waiting[exchange.id] = exchange

    def _pump(self) -> bool:
        """Give the transport what it takes of what may be sent, without waiting; whether more may come."""
        if not self._closing.over:
            self._writer.send_ready(self.session)
        if self._closing.over:
            return False
        for event in self.session.events():
            self._note(event)
        if self._waiting and not self._closing.over:
            self._look_who_waits()
        return not self._closing.over

    def _look_who_waits(self) -> None:
        for exchange in tuple(self._waiting.values()):
            size = self.session.queued_body_size(exchange.id)
            if size <= AHEAD_BYTES:
                exchange.wake_writer()
            if size == 0 and not self._writer.torn:
                exchange.patience.end()
                del self._waiting[exchange.id]
                if exchange.ended and not exchange.complete:
                    self._stop_sender(exchange)
            else:
                exchange.look(self._now(), size, self._writer.sent)

    # --- the end --------------------------------------------------------------------------------------------

    def _lose(self) -> None:
        """Nothing can be sent any more."""
        self._closing.end()
        self._stop_reading()

    def _end_workers(self) -> None:
        if self._workers is not None:
            self._workers.end()
