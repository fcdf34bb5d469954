"""A plain reading of what a client of HTTP/2 sent: all at once, without a session and without answers."""

from __future__ import annotations

import struct
from enum import Enum
from typing import Final

import hpack

from tests.fuzz.http2_requests import Request
from tests.worlds.http2_client import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PADDED,
    PING,
    PREFACE,
    PRIORITY,
    PUSH,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    WITH_PRIORITY,
)

LARGEST: Final = 16_384
WINDOW: Final = 65_535
MOST_BESIDE: Final = 100_000
"""Bytes beside bodies that a client may surely send at once."""
MOST_STREAMS: Final = 200
BLOCK_BYTES: Final = 60_000
PRIORITY_UPDATE: Final = 0x10
_HEAD: Final = 9


class Timing(Enum):
    """What a doubt depends on."""

    OF_READS = "what had been done with earlier frames when a frame was read"
    OF_NOTHING = "the frames alone"


class Violation(Exception):
    """Something for which the standard has a connection end."""


class Reading:
    """What the frames say. It stops where the connection must end."""

    def __init__(self, data: bytes) -> None:
        self.requests: dict[int, Request] = {}
        self.violation = ""
        """Why the connection must end; empty if it need not."""
        self.doubts: dict[str, Timing] = {}
        """Why it may end, or a stream may, or an answer may not come."""
        self.begun: set[int] = set()
        """The streams for which a head was begun, whole or not."""
        self.resets: dict[int, int] = {}
        """By its stream, the offset behind the frame that took it back."""
        self.pings: list[bytes] = []
        self.settings = 0
        self.continuations = 0
        """In one head, at most."""
        self.largest_window = WINDOW
        self.granted: dict[int, int] = {}
        """What was added to each stream's window; 0 is the connection's."""
        self._decoder = hpack.Decoder(max_header_list_size=BLOCK_BYTES)
        self._block: tuple[int, int, bytes, int] | None = None
        """The stream, the flags and the bytes of a head that goes on, and in how many frames it does."""
        self._at = len(PREFACE)
        self._highest = 0
        self._acks = 0
        self._bodies = 0
        self._kinds = {
            DATA: self._data,
            HEADERS: self._headers,
            PRIORITY: self._priority,
            RST_STREAM: self._reset,
            SETTINGS: self._settings,
            PUSH: self._push,
            PING: self._ping,
            GOAWAY: self._goaway,
            WINDOW_UPDATE: self._window,
            CONTINUATION: self._continuation,
        }
        self._read(data)
        # A body that comes when its stream has been answered and ended is something beside as well.
        if len(data) > MOST_BESIDE:
            self._doubt("it sends much that may be beside requests", Timing.OF_READS)

    def depends_on(self, timing: Timing) -> bool:
        return timing in self.doubts.values()

    @property
    def largest_connection_window(self) -> int:
        return WINDOW + self.granted.get(0, 0)

    def _doubt(self, why: str, on: Timing = Timing.OF_NOTHING) -> None:
        self.doubts[why] = on

    def _read(self, data: bytes) -> None:
        if not data.startswith(PREFACE):
            if not PREFACE.startswith(data):
                self.violation = "it does not begin as HTTP/2"
            return
        try:
            while len(data) - self._at >= _HEAD:
                self._next(data)
        except Violation as found:
            self.violation = str(found)
        else:
            if len(data) > self._at:
                self._doubt("its last frame is not whole")
            if self._block is not None:
                self._cut(self._block[0])

    def _next(self, data: bytes) -> None:
        head = data[self._at : self._at + _HEAD]
        size, kind, flags = int.from_bytes(head[:3]), head[3], head[4]
        stream = int.from_bytes(head[5:]) & 0x7FFF_FFFF
        if size > LARGEST:
            raise Violation("a frame too large")
        if self._at == len(PREFACE) and (kind != SETTINGS or flags & ACK):
            raise Violation("the first frame holds no settings")
        payload = data[self._at + _HEAD : self._at + _HEAD + size]
        self._at += _HEAD + size
        if len(payload) < size:
            self._begin(kind, flags, stream, payload)
        else:
            self._take(kind, flags, stream, payload)

    def _cut(self, stream: int) -> None:
        self._doubt("its last head is not whole")
        if stream in self.requests:
            self.requests[stream].is_cut = True

    def _begin(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        """A frame that is not whole: what came of a body counts, and whatever else may be told of it."""
        self._doubt("its last frame is not whole")
        if kind == HEADERS:
            self.begun.add(stream)
            self._cut(stream)
        request = self.requests.get(stream)
        if kind == DATA and request is not None and not request.ended and stream not in self.resets:
            request.body += payload[1:] if flags & PADDED else payload

    def _take(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if self._block is not None and (kind != CONTINUATION or stream != self._block[0]):
            raise Violation("a head is not finished")
        how = self._kinds.get(kind)
        if how is not None:
            how(flags, stream, payload)
        elif kind == PRIORITY_UPDATE:
            self._doubt("a priority of a new kind")

    def _unpadded(self, flags: int, payload: bytes) -> bytes:
        if not flags & PADDED:
            return payload
        if not payload or payload[0] >= len(payload):
            raise Violation("more padding than frame")
        return payload[1 : len(payload) - payload[0]]

    def _data(self, flags: int, stream: int, payload: bytes) -> None:
        if stream == 0 or self._is_idle(stream):
            raise Violation("a body without a request")
        self._bodies += len(payload)
        request = self.requests.get(stream)
        if request is None or request.ended or stream in self.resets:
            self._doubt("a body on a stream that is closed", Timing.OF_READS)
            return
        try:
            body = self._unpadded(flags, payload)
        except Violation:
            # Nobody looks at it where the server has ended the stream.
            self._doubt("a body that is none", Timing.OF_READS)
            raise
        request.size += len(payload)
        request.body += body
        request.ended = bool(flags & END_STREAM)
        if request.size > WINDOW or self._bodies > 3 * WINDOW:
            self._doubt("it may send more than it was let", Timing.OF_READS)

    def _headers(self, flags: int, stream: int, payload: bytes) -> None:
        if stream == 0:
            raise Violation("a head on no stream")
        block = self._unpadded(flags, payload)
        if flags & WITH_PRIORITY:
            if len(block) < 5:
                raise Violation("a head without its priority")
            if int.from_bytes(block[:4]) & 0x7FFF_FFFF == stream:
                self._doubt("it depends on itself")
            block = block[5:]
        if stream % 2 == 0:
            raise Violation("a stream that is not the client's")
        request = self.requests.get(stream)
        if stream in self.resets or (stream <= self._highest if request is None else request.ended):
            self._doubt("a head on a stream that is closed", Timing.OF_READS)
        self.begun.add(stream)
        self._block = (stream, flags, block, 0)
        if flags & END_HEADERS:
            self._whole_block()

    def _continuation(self, flags: int, stream: int, payload: bytes) -> None:
        if self._block is None:
            raise Violation("a head goes on that was finished")
        _, first, block, count = self._block
        self._block = (stream, first, block + payload, count + 1)
        self.continuations = max(self.continuations, count + 1)
        if self.continuations > 30:
            self._doubt("a head in many frames", Timing.OF_READS)
        if flags & END_HEADERS:
            self._whole_block()

    def _whole_block(self) -> None:
        if self._block is None:
            raise AssertionError
        stream, flags, block, _ = self._block
        self._block = None
        try:
            fields = [(bytes(name), bytes(value)) for name, value in self._decoder.decode(block, raw=True)]
        except hpack.OversizedHeaderListError:
            self._doubt("a large head")
            raise Violation("a head too large") from None
        except hpack.HPACKError as fault:
            raise Violation(f"a head that cannot be decoded: {fault}") from fault
        ends = bool(flags & END_STREAM)
        request = self.requests.get(stream)
        if request is None and stream > self._highest:
            self._highest = stream
            self.requests[stream] = Request(fields, self._at, ended=ends)
            if len(self.requests) > MOST_STREAMS:
                self._doubt("it begins many streams", Timing.OF_READS)
        elif request is not None and not request.ended and stream not in self.resets:
            request.trailers, request.ended = fields, ends
            if not ends:
                request.is_cut = True
                self._doubt("a second head without an end")

    def _priority(self, _flags: int, stream: int, payload: bytes) -> None:
        if len(payload) != 5 or stream == 0 or int.from_bytes(payload[:4]) & 0x7FFF_FFFF == stream:
            self._doubt("a priority that is none")

    def _push(self, _flags: int, _stream: int, _payload: bytes) -> None:
        raise Violation("a client pushes")

    def _ping(self, flags: int, stream: int, payload: bytes) -> None:
        if stream or len(payload) != 8:
            raise Violation("a ping that is none")
        if not flags & ACK:
            self.pings.append(payload)

    def _goaway(self, _flags: int, stream: int, payload: bytes) -> None:
        if stream or len(payload) < 8:
            raise Violation("a goodbye that is none")
        self._doubt("it leaves", Timing.OF_READS)

    def _reset(self, _flags: int, stream: int, payload: bytes) -> None:
        if stream == 0 or len(payload) != 4 or self._is_idle(stream):
            raise Violation("it takes back what it never began")
        self.resets.setdefault(stream, self._at)
        self._doubt("it takes a request back", Timing.OF_READS)

    def _settings(self, flags: int, stream: int, payload: bytes) -> None:
        if stream or len(payload) % 6 or (flags & ACK and payload):
            raise Violation("settings that are none")
        if flags & ACK:
            self._acks += 1
            if self._acks > 1:
                self._doubt("it acknowledges what was not said")
            return
        self.settings += 1
        pairs = list(struct.iter_unpack(">HI", payload))
        # Of two values of one setting the last one counts.
        for name, value in dict(pairs).items():
            if (name, value > 1) == (2, True) or (name == 4 and value > 0x7FFF_FFFF):
                raise Violation("a setting without meaning")
            if name == 5 and not LARGEST <= value <= 0xFF_FFFF:
                raise Violation("a setting without meaning")
            if name == 4:
                self.largest_window = max(self.largest_window, value)
        if any(name not in {1, 2, 3, 5} for name, _ in pairs) or len(pairs) > 30:
            self._doubt("settings that change what is sent")

    def _window(self, _flags: int, stream: int, payload: bytes) -> None:
        if len(payload) != 4 or (stream and self._is_idle(stream)):
            raise Violation("a window that is none")
        more = int.from_bytes(payload) & 0x7FFF_FFFF
        if not more and not stream:
            raise Violation("a window that does not grow")
        self.granted[stream] = self.granted.get(stream, 0) + more
        if not more or self.granted[stream] + WINDOW > 0x7FFF_FFFF:
            self._doubt("a window that may be too large", Timing.OF_READS)

    def _is_idle(self, stream: int) -> bool:
        return stream % 2 == 0 or stream > self._highest
