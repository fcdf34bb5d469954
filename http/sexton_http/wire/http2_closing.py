"""How an HTTP/2 connection ends: GOAWAY, our end, and a moment for what the client has on the way."""

import math
from collections.abc import Callable, Mapping

import trio
from ngh2 import Connection, ConnectionStateError, ErrorCode

from sexton_http.wire import timeouts
from sexton_http.wire.http2_exchange import Http2Exchange
from sexton_http.wire.http2_session import last_words
from sexton_http.wire.http2_tasks import Writer


class Closing:
    """How far one connection is on its way to its end, and what takes it further."""

    __slots__ = (
        "_is_stopping",
        "_session",
        "_streams",
        "_when_over",
        "_writer",
        "last_stream",
        "leaving",
        "linger_until",
        "over",
    )

    def __init__(
        self,
        session: Connection,
        writer: Writer,
        streams: Mapping[int, Http2Exchange],
        *,
        is_stopping: Callable[[], bool],
        when_over: Callable[[], None],
    ) -> None:
        """``streams`` are those that are open; ``when_over`` is called when none of them goes on."""
        self._session = session
        self._writer = writer
        self._streams = streams
        self._is_stopping = is_stopping
        self._when_over = when_over
        self.last_stream = 0
        """The last one whose request was looked at."""
        self.leaving = False
        """GOAWAY was said: what is open comes to its end, nothing else begins."""
        self.over = False
        """The last byte was sent, or none can be."""
        self.linger_until = math.inf
        """Until when what the client has on the way is still taken."""

    def decline(self) -> None:
        """Take no more requests; what is under way comes to its end."""
        if self.leaving or self.over:
            return
        try:
            # Named here, since a later goodbye may not name a later stream, whoever says it (RFC 9113, 6.8).
            self._session.send_goaway(ErrorCode.NO_ERROR, last_stream_id=self.last_stream)
        except ConnectionStateError:
            self.leave(ErrorCode.NO_ERROR)
        else:
            self.leaving = True
            self._writer.wake()
            self.leave_if_done()

    def leave_if_done(self) -> None:
        if not self._streams and (self.leaving or self._is_stopping()):
            self.leave(ErrorCode.NO_ERROR)

    def leave(self, code: ErrorCode | None) -> None:
        """Say GOAWAY, unless it was said, and our end; what is under way is given up."""
        if self.over:
            return
        if code is not None:
            last = self._last_of_session(code)
            if last and not self._writer.torn:
                self._writer.send(last)
        self._say_goodbye()

    def _last_of_session(self, code: ErrorCode) -> bytes:
        try:
            self._session.terminate_connection(code, last_stream_id=self.last_stream)
        except ConnectionStateError:
            # The client has said that it goes, and nothing was under way: the session speaks no more.
            return b"" if self.leaving else last_words(code, self.last_stream)
        return self._session.data_to_send()

    def fail(self, code: ErrorCode) -> None:
        """The session cannot be used any more: say why, if something can be said."""
        if not self._writer.torn:
            self._writer.send(last_words(code, self.last_stream))
        self._say_goodbye()

    def end(self) -> None:
        """No stream goes on."""
        self.over = True
        for exchange in tuple(self._streams.values()):
            exchange.close()
        self._writer.wake()
        self._when_over()

    def _say_goodbye(self) -> None:
        """Send our end, and leave the reader to take what is on the way: a reset would destroy the rest."""
        if self.over:
            return
        self.linger_until = trio.current_time() + timeouts.LINGER_S
        self.end()
        self._writer.finish()
