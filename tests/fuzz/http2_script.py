"""Makes what a client of HTTP/2 sends out of a fuzzer's bytes: frames in any order, or just the bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Final, NamedTuple

import hpack

from tests.worlds.http2_client import (
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
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    WITH_PRIORITY,
    frame,
    settings,
)

MOST_BYTES: Final = 200_000
"""How long all frames together may be, in bytes."""
MOST_REPEATS: Final = 400
SPLIT, HUFFMAN = 0x80, 0x40
"""Two flags of a head: it goes on in a second frame; it is written in Huffman's code."""
OPENING: Final = PREFACE + settings()
METHODS: Final = (b"GET", b"POST", b"HEAD", b"OPTIONS")
PATHS: Final = (
    *(b"/echo", b"/whole", b"/deaf", b"/slow", b"/large", b"/fail", b"/half", b"/poll", b"/no"),
    b"/a%2fb?c=d",
)
FIELDS: Final = (
    *((b":method", one) for one in (*METHODS, b"CONNECT", b"FROB", b"")),
    *((b":scheme", one) for one in (b"http", b"https", b"ftp")),
    *((b":authority", one) for one in (b"x", b"x:80", b"a b", b"")),
    *((b":path", one) for one in (*PATHS, b"*", b"", b"a", b"/\xff", b"/#")),
    *((b"host", one) for one in (b"x", b"y", b"a/b")),
    *((b"content-length", one) for one in (b"0", b"5", b"05", b"+5", b"70000", b"9" * 30, b"")),
    *((b"te", one) for one in (b"trailers", b"gzip")),
    *((b"cookie", one) for one in (b"a=b", b"c=d")),
    (b"expect", b"100-continue"),
    (b"connection", b"close"),
    (b"transfer-encoding", b"chunked"),
    (b"authorization", b"Bearer zrn_1"),
    (b"priority", b"u=0, i"),
    (b":status", b"200"),
    (b":protocol", b"websocket"),
    (b"X-Upper", b"a"),
    (b"x-blank", b" a "),
    (b"x-nul", b"a\0b"),
    (b"x-long", b"y" * 3_000),
    (b"x-empty", b""),
    (b"", b"a"),
)
IDS: Final = (1, 2, 3, 4, 5, 6, 9, 0xFF)
VALUES: Final = (0, 1, 2, 99, 4_096, 16_384, 65_535, 65_536, 0xFF_FFFF, 0x7FFF_FFFF, 0xFFFF_FFFF)
INCREMENTS: Final = (0, 1, 16_384, 65_535, 0x7FFF_FFFF, 0xFFFF_FFFF)


class Kernel(IntEnum):
    """How the client's side takes what is sent."""

    WILLING = 0
    IN_PARTS = 1
    LATE = 2
    NOT_AT_ALL = 3


class Part(NamedTuple):
    """Bytes that come after a while without any."""

    after_s: float
    data: bytes


class Script(NamedTuple):
    """What a client does."""

    parts: tuple[Part, ...]
    cut: int
    """Where its bytes are cut in two, in 256ths."""
    kernel: Kernel
    hangs_up: bool
    """It ends when all has been sent; else it says nothing more."""
    is_patient: bool
    """It sends the next bytes once nothing more comes of the last."""
    is_stopped: bool
    """The server stops when all has been sent."""
    loses: bool
    """Nothing can be sent to it after a while."""

    @property
    def data(self) -> bytes:
        return b"".join(part.data for part in self.parts)


class _Bytes:
    """What is left of a fuzzer's bytes; zeros when there are none."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def __bool__(self) -> bool:
        return self._at < len(self._data)

    def take(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        self._at += size
        return taken

    def byte(self) -> int:
        return int.from_bytes(self.take(1))


def script_of(data: bytes) -> Script:
    """The first byte says how, the second where to cut, the rest what is sent."""
    options, cut = (*data[:2], 0, 0)[:2]
    rest = data[2:]
    match options & 3:
        case 3:
            parts = [Part(0, rest)]
        case 2:
            parts = [Part(0, OPENING + rest)]
        case _:
            parts = list(_Frames(rest).parts())
    return Script(
        tuple(parts),
        cut,
        Kernel(options >> 4 & 3),
        hangs_up=bool(options & 4),
        is_patient=bool(options & 8),
        is_stopped=bool(options & 64),
        loses=bool(options & 128),
    )


class _Frames:
    """Reads bytes as a language: an operation each, with its operands."""

    def __init__(self, data: bytes) -> None:
        self._in = _Bytes(data)
        self._encoder = hpack.Encoder()
        self._last = -1
        """The last stream that was begun."""
        self._frame = b""

    def parts(self) -> Iterator[Part]:
        size, after, data = 0, 0.0, OPENING
        while self._in and size < MOST_BYTES:
            operation = self._in.byte()
            if operation & 15 == 13:
                yield Part(after, data)
                after, data = float(self._in.byte() & 63), b""
                continue
            more = self._sent(operation & 15, operation >> 4)
            size += len(more)
            data += more
        yield Part(after, data)

    def _sent(self, kind: int, detail: int) -> bytes:
        match kind:
            case 0 | 14 | 15:
                return self._whole_request(detail)
            case 10:
                self._frame = frame(0x10 + detail, self._in.byte(), self._stream(), self._in.take(detail))
            case 11:
                return self._in.take(detail + 1)
            case 12:
                return self._frame * min(self._in.byte(), MOST_REPEATS)
            case 1:
                self._frame = self._head()
            case _:
                self._frame = self._other(kind if kind != 2 else DATA, detail)
        return self._frame

    def _whole_request(self, detail: int) -> bytes:
        size = self._in.byte()
        self._last += 2
        method = b"POST" if size else METHODS[0]
        block = self._encoder.encode(_head_of(method, PATHS[detail % len(PATHS)]))
        self._frame = frame(HEADERS, END_HEADERS | (0 if size else END_STREAM), self._last, block)
        return self._frame + (frame(DATA, END_STREAM, self._last, b"b" * _size(size)) if size else b"")

    def _head(self) -> bytes:
        flags, stream, preset = self._in.byte(), self._stream(), self._in.byte()
        fields = _head_of(METHODS[preset & 3], PATHS[(preset >> 2) % len(PATHS)]) if preset else []
        for _ in range(self._in.byte() & 15):
            which = self._in.byte()
            if which == 0xFF:
                fields.append((self._in.take(self._in.byte() & 15), self._in.take(self._in.byte() & 63)))
            else:
                fields.append(FIELDS[which % len(FIELDS)])
        block = self._encoder.encode(fields, huffman=bool(flags & HUFFMAN))
        if stream > self._last and stream % 2:
            self._last = stream
        if not flags & SPLIT:
            return frame(HEADERS, flags & 63, stream, self._around(flags, block))
        at = len(block) * self._in.byte() // 256
        begin = frame(HEADERS, flags & 63 & ~END_HEADERS, stream, self._around(flags, block[:at]))
        return begin + frame(CONTINUATION, END_HEADERS, stream, block[at:])

    def _around(self, flags: int, payload: bytes) -> bytes:
        """With what the flags say there is: padding, and a priority."""
        if flags & WITH_PRIORITY:
            payload = struct.pack(">IB", self._in.byte(), 9) + payload
        if flags & PADDED:
            size = self._in.byte()
            payload = bytes((size,)) + payload + bytes(size)
        return payload

    def _other(self, kind: int, detail: int) -> bytes:
        match kind:
            case 0:
                flags, stream, size = self._in.byte(), self._stream(), self._in.byte()
                payload = b"d" * _size(size)
                if flags & PADDED:
                    payload = bytes((detail,)) + payload + bytes(detail)
                return frame(DATA, flags, stream, payload)
            case 3:
                return frame(RST_STREAM, 0, self._stream(), struct.pack(">I", detail))
            case 4:
                pairs = [
                    (IDS[self._in.byte() % len(IDS)], VALUES[self._in.byte() % len(VALUES)])
                    for _ in range(detail >> 1)
                ]
                return settings(*pairs) if not detail & 1 else frame(SETTINGS, 1, 0)
            case 5:
                return frame(PING, detail & 1, 0, self._in.take(8).ljust(8, b"\0"))
            case 6:
                return frame(GOAWAY, 0, 0, struct.pack(">II", self._in.byte(), detail))
            case 7:
                return frame(PRIORITY, 0, self._stream(), struct.pack(">IB", self._in.byte(), detail))
            case 8:
                more = INCREMENTS[detail % len(INCREMENTS)]
                return frame(WINDOW_UPDATE, 0, self._stream(), struct.pack(">I", more))
            case _:
                # Of any kind, and as long as it likes to be.
                kind, flags, stream = self._in.byte(), self._in.byte(), self._stream()
                return frame(kind, flags, stream, self._in.take(detail))

    def _stream(self) -> int:
        """The connection, the last stream, one near it, the next, or any."""
        which = self._in.byte()
        if which < 0x40:
            return max(0, self._last - 2 * (which & 7)) if which & 0x38 == 0 else self._last + 2
        if which < 0x80:
            return 0
        return 0x7FFF_FFFF if which == 0xFF else which & 0x7F


def _head_of(method: bytes, path: bytes) -> list[tuple[bytes, bytes]]:
    return [(b":method", method), (b":scheme", b"http"), (b":authority", b"x"), (b":path", path)]


def _size(size: int) -> int:
    """Small ones one by one, then steps up to beyond the largest frame."""
    return size if size < 128 else (size - 127) * 129
