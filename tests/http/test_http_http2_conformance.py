"""What RFC 9113 and RFC 7541 ask of a server, case by case as h2spec lists them, on one server."""

import struct
from collections.abc import Sequence
from typing import NamedTuple

import hpack
import trio

from sexton_http.wire.server import Doors
from sexton_http.wire.tls import Tls
from tests.worlds.asgi_server import dial, echo, serving
from tests.worlds.http2_client import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GET,
    GOAWAY,
    HEADERS,
    PADDED,
    PING,
    POST,
    PREFACE,
    PRIORITY,
    PUSH,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    WITH_PRIORITY,
    Field,
    Http2Client,
    block,
    frame,
    headers,
    settings,
    window,
)

LARGEST = 16_384
NEVER_ASKED = b"\x00" * 8


class Case(NamedTuple):
    """What is sent after the preface, and what may come of it."""

    section: str
    what: str
    sent: bytes
    outcomes: tuple[str, ...]


def goaway(*codes: str) -> tuple[str, ...]:
    return tuple(f"goaway {code}" for code in codes)


def reset(*codes: str) -> tuple[str, ...]:
    """On that stream; to end the connection for it is allowed as well (RFC 9113, 5.4.2)."""
    return tuple(f"reset {code}" for code in codes) + goaway(*codes)


def head(*fields: Field, instead: Sequence[str] = ()) -> bytes:
    """A request with these fields besides, and without those that are named."""
    kept = [field for field in GET if field[0].decode() not in instead]
    return headers(1, [*kept, *fields])


def opened(flags: int = END_HEADERS) -> bytes:
    return frame(HEADERS, flags, 1, block(POST))


def raw_head(encoded: bytes, flags: int = 0) -> bytes:
    return frame(HEADERS, END_HEADERS | END_STREAM | flags, 1, encoded)


def body(payload: bytes, flags: int = END_STREAM) -> bytes:
    return frame(DATA, flags, 1, payload)


def counted(length: bytes) -> bytes:
    """The head of a body that says how long it is."""
    return headers(1, [*POST, (b"content-length", length)], end=False)


FINE, PASSED_OVER = ("200",), ("passed over",)
LATER = 99
PROTOCOL, SIZE = goaway("PROTOCOL_ERROR"), goaway("FRAME_SIZE_ERROR")
FLOW, COMPRESSION = goaway("FLOW_CONTROL_ERROR"), goaway("COMPRESSION_ERROR")
MALFORMED = reset("PROTOCOL_ERROR")
CLOSED = reset("STREAM_CLOSED")
HALF = headers(1)
"""A request that is whole: its stream is half closed, and soon closed."""
TAKEN_BACK = opened() + frame(RST_STREAM, 0, 1, struct.pack(">I", 8))
SECOND_HALF = block(GET[2:])
BEGUN = frame(HEADERS, END_STREAM, 1, block(GET[:2]))
REST = frame(CONTINUATION, END_HEADERS, 1, SECOND_HALF)
OLD_PRIORITY = struct.pack(">IB", 0, 15)
MANGLED = block(GET) + b"\x00\x85\xf2\xb2\x4a\x84\xff"
"""Ends in a name in Huffman's code, whose value is to follow."""
UNKNOWN = frame(0x16, 0, 0, NEVER_ASKED)

CASES = [
    Case("4.1", "a frame of unknown type", UNKNOWN + HALF, FINE),
    Case("4.1", "undefined flags", frame(PING, 0x16, 0, NEVER_ASKED) + HALF, FINE),
    Case("4.1", "the reserved bit", frame(PING, 0, 0x8000_0000, NEVER_ASKED) + HALF, FINE),
    Case("4.2", "DATA of 2^14", opened() + body(bytes(LARGEST)), FINE),
    Case("4.2", "DATA beyond 2^14", opened() + body(bytes(LARGEST + 1)), SIZE),
    Case("4.2", "HEADERS beyond 2^14", raw_head(bytes(LARGEST + 1)), SIZE),
    Case("4.3", "a block that cannot be decoded", raw_head(b"\x40"), COMPRESSION),
    Case("4.3", "PRIORITY within a block", BEGUN + frame(PRIORITY, 0, 1, bytes(5)), PROTOCOL),
    Case("4.3", "another stream within a block", BEGUN + headers(3), PROTOCOL),
    Case("5.1", "idle: DATA", body(b"x"), PROTOCOL),
    Case("5.1", "idle: RST_STREAM", frame(RST_STREAM, 0, 1, bytes(4)), PROTOCOL),
    Case("5.1", "idle: WINDOW_UPDATE", window(1, 100), PROTOCOL),
    Case("5.1", "idle: CONTINUATION", REST, PROTOCOL),
    Case("5.1", "half closed: DATA", HALF + body(b"x"), CLOSED),
    Case("5.1", "half closed: HEADERS", HALF + headers(1), (*CLOSED, *PROTOCOL)),
    Case("5.1", "half closed: CONTINUATION", HALF + REST, (*CLOSED, *PROTOCOL)),
    Case("5.1", "taken back: HEADERS", TAKEN_BACK + headers(1), PASSED_OVER),
    Case("5.1", "taken back: CONTINUATION", TAKEN_BACK + REST, (*CLOSED, *PROTOCOL)),
    Case("5.1", "closed: PRIORITY", HALF + frame(PRIORITY, 0, 1, OLD_PRIORITY), FINE),
    Case("5.1.1", "an even stream", headers(2), PROTOCOL),
    Case("5.1.1", "a lower stream", headers(5) + headers(1), PASSED_OVER),
    Case(
        "5.3.2",
        "the old priority in HEADERS is passed over",
        raw_head(OLD_PRIORITY + block(GET), WITH_PRIORITY),
        FINE,
    ),
    Case("5.5", "an unknown frame within a block", BEGUN + UNKNOWN, PROTOCOL),
    Case("6.1", "DATA on stream 0", frame(DATA, END_STREAM, 0, b"x"), PROTOCOL),
    Case("6.1", "padding beyond the frame", opened() + body(b"\x06test", END_STREAM | PADDED), PROTOCOL),
    Case("6.1", "padding within it", opened() + body(b"\x06test" + bytes(6), END_STREAM | PADDED), FINE),
    Case("6.2", "a block goes on", BEGUN + REST, FINE),
    Case("6.2", "HEADERS on stream 0", headers(0), PROTOCOL),
    Case("6.2", "padding beyond the frame", raw_head(b"\xff" + block(GET), PADDED), PROTOCOL),
    Case("6.2", "padding within it", raw_head(b"\x03" + block(GET) + bytes(3), PADDED), FINE),
    Case("6.3", "PRIORITY on stream 0", frame(PRIORITY, 0, 0, bytes(5)), PASSED_OVER),
    Case(
        "6.3",
        "PRIORITY of another length",
        opened() + frame(PRIORITY, 0, 1, bytes(4)),
        reset("FRAME_SIZE_ERROR"),
    ),
    Case("6.4", "RST_STREAM on stream 0", frame(RST_STREAM, 0, 0, bytes(4)), PROTOCOL),
    Case("6.4", "RST_STREAM of another length", opened() + frame(RST_STREAM, 0, 1, bytes(3)), SIZE),
    Case("6.5", "an acknowledgement with a payload", frame(SETTINGS, ACK, 0, bytes(6)), SIZE),
    Case("6.5", "an acknowledgement too many", frame(SETTINGS, ACK, 0) + frame(SETTINGS, ACK, 0), PROTOCOL),
    Case("6.5", "SETTINGS on a stream", frame(SETTINGS, 0, 1, bytes(6)), PROTOCOL),
    Case("6.5", "SETTINGS of another length", frame(SETTINGS, 0, 0, bytes(3)), SIZE),
    Case("6.5.2", "ENABLE_PUSH 2", settings((2, 2)), PROTOCOL),
    Case("6.5.2", "INITIAL_WINDOW_SIZE 2^31", settings((4, 1 << 31)), FLOW),
    Case("6.5.2", "MAX_FRAME_SIZE below 2^14", settings((5, LARGEST - 1)), PROTOCOL),
    Case("6.5.2", "MAX_FRAME_SIZE beyond 2^24", settings((5, 1 << 24)), PROTOCOL),
    Case("6.5.2", "an unknown setting", settings((0xFF, 1)) + HALF, FINE),
    Case("6.5.3", "two values of one setting", settings((4, 100), (4, 1)) + HALF, FINE),
    Case("6.7", "a PING that nobody asked for", frame(PING, ACK, 0, NEVER_ASKED) + HALF, FINE),
    Case("6.7", "PING on a stream", frame(PING, 0, 1, NEVER_ASKED), PROTOCOL),
    Case("6.7", "PING of another length", frame(PING, 0, 0, bytes(6)), SIZE),
    Case("6.8", "GOAWAY on a stream", frame(GOAWAY, 0, 1, bytes(8)), PROTOCOL),
    Case("6.9", "the connection's window grows by 0", window(0, 0), PROTOCOL),
    Case("6.9", "a stream's window grows by 0", opened() + window(1, 0), MALFORMED),
    Case("6.9", "WINDOW_UPDATE of another length", frame(WINDOW_UPDATE, 0, 0, bytes(3)), SIZE),
    Case("6.9.1", "the connection's window beyond 2^31-1", window(0, (1 << 31) - 1) * 2, FLOW),
    Case(
        "6.9.1",
        "a stream's window beyond 2^31-1",
        opened() + window(1, (1 << 31) - 1) * 2,
        reset("FLOW_CONTROL_ERROR"),
    ),
    Case("6.9.1", "more DATA than the window takes", opened() + body(bytes(LARGEST), 0) * 40, FLOW),
    Case("6.9.2", "a smaller window, then a larger", settings((4, 0)) + HALF + settings((4, 1)), FINE),
    Case(
        "6.10",
        "CONTINUATION twice",
        BEGUN + frame(CONTINUATION, 0, 1, SECOND_HALF) + frame(CONTINUATION, END_HEADERS, 1, b""),
        FINE,
    ),
    Case(
        "6.10",
        "CONTINUATION, then another frame",
        BEGUN + frame(CONTINUATION, 0, 1, b"") + body(b"x", 0),
        PROTOCOL,
    ),
    Case(
        "6.10", "CONTINUATION on stream 0", BEGUN + frame(CONTINUATION, END_HEADERS, 0, SECOND_HALF), PROTOCOL
    ),
    Case(
        "6.10",
        "CONTINUATION after the end of a block",
        opened() + frame(CONTINUATION, END_HEADERS, 1, b""),
        PROTOCOL,
    ),
    Case(
        "6.10",
        "CONTINUATION after DATA",
        opened() + body(b"x", 0) + frame(CONTINUATION, END_HEADERS, 1, b""),
        PROTOCOL,
    ),
    Case(
        "8.1",
        "a second head without an end",
        opened() + frame(HEADERS, END_HEADERS, 1, block([(b"x", b"y")])),
        MALFORMED,
    ),
    Case("8.1", "trailers", opened() + body(b"x", 0) + headers(1, [(b"x-sum", b"y")]), FINE),
    Case("8.1", "a pseudo-header in trailers", opened() + headers(1, [(b":method", b"GET")]), MALFORMED),
    Case("8.2.1", "a name in capitals", head((b"X-Test", b"ok")), MALFORMED),
    Case("8.2.1", "a line end in a value", head((b"x-test", b"a\r\nb")), MALFORMED),
    Case("8.2.2", "a header of the connection", head((b"connection", b"keep-alive")), MALFORMED),
    Case("8.2.2", "a coding of the transfer", head((b"transfer-encoding", b"chunked")), MALFORMED),
    Case("8.2.2", "TE other than trailers", head((b"te", b"trailers, deflate")), MALFORMED),
    Case("8.2.2", "TE: trailers", head((b"te", b"trailers")), FINE),
    Case("8.3", "an unknown pseudo-header", head((b":test", b"ok")), MALFORMED),
    Case("8.3", "a pseudo-header of answers", head((b":status", b"200")), MALFORMED),
    Case("8.3", "a pseudo-header after others", headers(1, [(b"x-test", b"ok"), *GET]), MALFORMED),
    Case("8.3.1", "an empty path", head((b":path", b""), instead=[":path"]), MALFORMED),
    *(
        Case("8.3.1", f"no {name}", head(instead=[name]), MALFORMED)
        for name in (":method", ":scheme", ":path", ":authority")
    ),
    *(
        Case("8.3.1", f"{name.decode()} twice", headers(1, [(name, value), *GET]), MALFORMED)
        for name, value in GET
    ),
    Case("8.1.1", "a body shorter than it says", counted(b"9") + body(b"x"), MALFORMED),
    Case("8.1.1", "a body longer than it says", counted(b"1") + body(b"x", 0) + body(b"y"), MALFORMED),
    Case(
        "8.4",
        "a client that pushes",
        opened() + frame(PUSH, END_HEADERS, 1, struct.pack(">I", 2) + block(GET)),
        PROTOCOL,
    ),
    Case(
        "8.5",
        "CONNECT is not served",
        headers(1, [(b":method", b"CONNECT"), (b":authority", b"x:80")]),
        MALFORMED,
    ),
    Case("HPACK 2.3.3", "an index beyond the tables", raw_head(block(GET) + b"\xff\x00"), COMPRESSION),
    Case("HPACK 4.2", "the table's size after a field", raw_head(block(GET) + b"\x20"), COMPRESSION),
    Case(
        "HPACK 5.2",
        "padding of more than seven bits",
        raw_head(MANGLED + b"\x84\x49\x50\x9f\xff"),
        COMPRESSION,
    ),
    Case("HPACK 5.2", "padding of zeros", raw_head(MANGLED + b"\x83\x49\x50\x90"), COMPRESSION),
    Case(
        "HPACK 5.2",
        "the end of a string in a string",
        raw_head(MANGLED + b"\x87\x49\x51\xff\xff\xff\xfa\x7f"),
        COMPRESSION,
    ),
    Case("HPACK 6.1", "index 0", raw_head(block(GET) + b"\x80"), COMPRESSION),
    Case(
        "HPACK 6.3",
        "a table larger than was allowed",
        raw_head(b"\x3f\xe1\xff\x03" + block(GET)),
        COMPRESSION,
    ),
    Case(
        "HPACK 6.2.1",
        "a field that is remembered",
        raw_head(hpack.Encoder().encode([*GET, (b"x", b"y")])),
        FINE,
    ),
]


async def outcome(doors: Doors, case: Case) -> str:
    async with await dial(doors) as stream:
        client = Http2Client(stream)
        await client.send(PREFACE, settings(), case.sent)
        if case.outcomes != PASSED_OVER:
            return (await client.answer(1))[0]
        # Nothing comes of it, and the connection goes on.
        await client.send(headers(LATER))
        frames = await client.until(lambda got: bool(got.outcome()) or got.stream_id == LATER)
        return PASSED_OVER[0] if frames[-1].stream_id == LATER else frames[-1].outcome()


async def test_each_case_of_the_standards_comes_out_as_they_say() -> None:
    wrong: dict[str, str] = {}
    async with serving(echo) as doors:
        for case in CASES:
            got = "nothing at all"
            with trio.move_on_after(20):
                got = await outcome(doors, case)
            if got not in case.outcomes:
                wrong[f"{case.section}: {case.what}"] = f"{got}, not {' or '.join(case.outcomes)}"

    assert not wrong


async def test_a_preface_that_is_none_ends_the_connection(certificate: Tls) -> None:
    async with serving(echo, tls=certificate) as doors:
        for beginning in (b"INVALID CONNECTION PREFACE\r\n\r\n", PREFACE + HALF):
            async with await dial(doors, alpn="h2") as stream:
                client = Http2Client(stream)
                await client.send(beginning)
                frames = await client.until(lambda got: got.kind == GOAWAY)

                assert frames[-1].outcome() == "goaway PROTOCOL_ERROR"
                assert await client.frame() is None


async def test_settings_and_pings_are_acknowledged() -> None:
    async with serving(echo) as doors, await dial(doors) as stream:
        client = Http2Client(stream)
        await client.send(PREFACE, settings((3, 100)), frame(PING, 0, 0, b"h2spec!!"))
        frames = await client.until(lambda got: got.kind == PING)

    [announced] = [got for got in frames if got.kind == SETTINGS and not got.flags]
    said = dict(struct.iter_unpack(">HI", announced.payload))

    assert said[3] == 256
    assert any(got.kind == SETTINGS and got.flags == ACK for got in frames)
    assert (frames[-1].flags, frames[-1].payload) == (ACK, b"h2spec!!")


async def test_a_window_of_one_byte_is_kept_to() -> None:
    async with serving(echo) as doors, await dial(doors) as stream:
        client = Http2Client(stream)
        await client.send(PREFACE, settings((4, 1)), opened(), body(b"abc"))
        sizes: list[int] = []
        echoed = b""
        while echoed != b"abc":
            [*_, got] = await client.until(lambda got: got.kind == DATA)
            echoed += got.payload
            sizes.append(len(got.payload))
            await client.send(window(1, 1))

    assert sizes == [1, 1, 1]
