"""Resets streams of HTTP/2, and allows for what their clients had on its way by then."""

from contextlib import suppress

from ngh2 import Connection, ErrorCode, StreamUnavailableError

from sexton_http.wire.http2_frames import FrameBorders
from sexton_http.wire.http2_session import MAX_STREAMS


class Resets:
    """All resets of one connection.

    A client goes on with a body until it hears that nobody wants it. What it has sent by then is no fault of
    its own (RFC 9113, 5.1 and 5.4.2), and is at most what the stream's window allowed at the reset. That much
    DATA is allowed for, byte by byte; what is beyond counts as bytes that ask for nothing, in `http2_calm`.

    This is bounded: a stream is allowed what was left of its window, at most 64 KiB, and once. Each stream
    takes a request, and a body that is not refused costs its client nothing either. So nobody can send
    more in streams that are reset than in others, and these bytes cost less: they are only counted.
    """

    __slots__ = ("_borders", "_session", "_spared", "allowed", "waiting")

    def __init__(self, session: Connection, borders: FrameBorders) -> None:
        self._session = session
        self._borders = borders
        self.allowed: dict[int, int] = {}
        """By stream, how many bytes of DATA may still come."""
        self._spared = 0
        self.waiting: tuple[int, ErrorCode, bool] | None = None
        """A stream that is reset once the frame of DATA under way has come."""

    def reset(self, stream_id: int, code: ErrorCode, *, awaits_body: bool, at_once: bool = False) -> None:
        """Reset it at the end of the frame under way, if that is this stream's. Does nothing if it is over.

        ngh2 hands a frame of DATA on once it is whole. What has come of one whose stream is reset before can
        never be acknowledged: the connection's window would stay smaller by as much.
        """
        if not at_once and self._borders.data_under_way() == stream_id:
            if self.waiting is None:
                self.waiting = stream_id, code, awaits_body
            return
        if self.waiting is not None and self.waiting[0] == stream_id:
            self.waiting = None
        with suppress(StreamUnavailableError):
            left = self._session.stream_local_window_size(stream_id)
            self._session.reset_stream(stream_id, code)
            if awaits_body and stream_id not in self.allowed:
                self._allow(stream_id, left)

    def _allow(self, stream_id: int, size: int) -> None:
        if len(self.allowed) >= MAX_STREAMS:
            # Whoever has not heard of the oldest reset has not heard of the later ones either, so it would
            # have more streams open than there may be.
            del self.allowed[next(iter(self.allowed))]
        self.allowed[stream_id] = max(0, size)

    def carry_out(self) -> None:
        """Do the reset that has waited: the frame has come."""
        if self.waiting is not None:
            stream_id, code, awaits_body = self.waiting
            self.reset(stream_id, code, awaits_body=awaits_body, at_once=True)

    def arrived(self, stream_id: int, size: int) -> None:
        """Count bytes of DATA, with their padding: a window counts it too."""
        allowed = self.allowed.get(stream_id)
        if allowed:
            spared = min(allowed, size)
            self.allowed[stream_id] = allowed - spared
            self._spared += spared

    def spared(self) -> int:
        """How many bytes were allowed for since this was asked last."""
        spared, self._spared = self._spared, 0
        return spared
