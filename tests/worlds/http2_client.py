"""A client of HTTP/2 in single frames, which may do whatever it should not."""

import struct
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

import hpack
import trio

from sexton_http.wire.server import Doors
from tests.worlds.asgi_server import Stream, dial

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS, PADDED, WITH_PRIORITY = 1, 1, 4, 8, 32
INITIAL_WINDOW: Final = 4
"""A setting: how much of an answer the client takes at first."""
ERRORS: Final = (
    "NO_ERROR",
    "PROTOCOL_ERROR",
    "INTERNAL_ERROR",
    "FLOW_CONTROL_ERROR",
    "SETTINGS_TIMEOUT",
    "STREAM_CLOSED",
    "FRAME_SIZE_ERROR",
    "REFUSED_STREAM",
    "CANCEL",
    "COMPRESSION_ERROR",
    "CONNECT_ERROR",
    "ENHANCE_YOUR_CALM",
)
Field = tuple[bytes, bytes]
GET: Final[tuple[Field, ...]] = (
    (b":method", b"GET"),
    (b":scheme", b"http"),
    (b":path", b"/a"),
    (b":authority", b"x"),
)
POST: Final[tuple[Field, ...]] = ((b":method", b"POST"), *GET[1:])


class Frame(NamedTuple):
    kind: int
    flags: int
    stream_id: int
    payload: bytes

    def outcome(self) -> str:
        """What it means for the stream or the connection, in a word or two."""
        if self.kind == GOAWAY:
            return "goaway " + ERRORS[struct.unpack(">I", self.payload[4:8])[0]]
        if self.kind == RST_STREAM:
            return "reset " + ERRORS[struct.unpack(">I", self.payload)[0]]
        return ""


def frame(kind: int, flags: int, stream_id: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream_id) + payload


def settings(*pairs: tuple[int, int]) -> bytes:
    return frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", *pair) for pair in pairs))


def window(stream_id: int, more: int) -> bytes:
    return frame(WINDOW_UPDATE, 0, stream_id, struct.pack(">I", more))


def block(fields: Sequence[Field]) -> bytes:
    """Fields that change no table, so that the same bytes serve any stream."""
    return hpack.Encoder().encode([(*field, True) for field in fields], huffman=False)


def headers(stream_id: int, fields: Sequence[Field] = GET, *, end: bool = True) -> bytes:
    return frame(HEADERS, END_HEADERS | (END_STREAM if end else 0), stream_id, block(fields))


def get(stream_id: int, path: str) -> bytes:
    """A request for this path."""
    return headers(stream_id, [*(field for field in GET if field[0] != b":path"), (b":path", path.encode())])


class Http2Client:
    """Sends bytes as they are, and takes frames one by one; acknowledges settings by itself."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.heads: dict[int, dict[bytes, bytes]] = {}
        """Of all answers so far, by their streams."""
        self._decoder = hpack.Decoder()
        self._rest = b""

    async def send(self, *frames: bytes) -> None:
        await self.stream.send_all(b"".join(frames))

    async def frame(self) -> Frame | None:
        """The next one; None at the end."""
        while True:
            if len(self._rest) >= 9:
                size = 9 + int.from_bytes(self._rest[:3], "big")
                if len(self._rest) >= size:
                    raw, self._rest = self._rest[:size], self._rest[size:]
                    got = Frame(raw[3], raw[4], struct.unpack(">I", raw[5:9])[0], raw[9:])
                    if got.kind == SETTINGS and not got.flags & ACK:
                        await self.stream.send_all(frame(SETTINGS, ACK, 0))
                    if got.kind == HEADERS:
                        self.heads[got.stream_id] = dict(self._decoder.decode(got.payload, raw=True))
                    return got
            try:
                data = await self.stream.receive_some(65536)
            except trio.BrokenResourceError:
                return None
            if not data:
                return None
            self._rest += data

    async def until(self, is_it: Callable[[Frame], bool]) -> list[Frame]:
        """All frames to the first of this kind; to the end if none comes."""
        frames: list[Frame] = []
        while (got := await self.frame()) is not None:
            frames.append(got)
            if is_it(got):
                break
        return frames

    def status(self, stream_id: int) -> str:
        """Of the answer's head, if that has come."""
        return self.heads.get(stream_id, {}).get(b":status", b"").decode()

    async def answer(self, stream_id: int) -> tuple[str, bytes]:
        """Its status, or how it ended otherwise, and its body."""
        body = b""
        while (got := await self.frame()) is not None:
            if got.kind == GOAWAY:
                return got.outcome(), body
            if got.stream_id != stream_id:
                continue
            if got.kind == RST_STREAM:
                return got.outcome(), body
            if got.kind == DATA:
                body += got.payload
            if got.kind in {DATA, HEADERS} and got.flags & END_STREAM:
                return self.status(stream_id), body
        return "closed", body


@asynccontextmanager
async def speaking(
    doors: Doors, *pairs: tuple[int, int], alpn: str | None = None
) -> AsyncIterator[Http2Client]:
    """A connection on which both sides have said their settings; ``pairs`` are the client's."""
    async with await dial(doors, alpn=alpn) as stream:
        client = Http2Client(stream)
        await client.send(PREFACE, settings(*pairs))
        await client.until(lambda got: got.kind == SETTINGS and bool(got.flags & ACK))
        yield client
