"""HTTP/2's own bookkeeping, as libnghttp2 does it, set to the bounds of this server."""

import struct
from contextlib import suppress
from typing import Final

from ngh2 import Configuration, Connection, ErrorCode, Priority, Role, Setting, StreamUnavailableError

from sexton_http.wire.heads import MAX_HEAD_BYTES

MAX_STREAMS: Final = 256
"""The bound of one connection, at once."""
PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""How a client says that it speaks HTTP/2."""
STREAM_WINDOW_BYTES: Final = 64 * 1024
"""How much of a body a client may send before somebody reads it."""
CONNECTION_WINDOW_BYTES: Final = 256 * 1024
"""The same of all bodies of a connection together."""
AT_ONCE_BYTES: Final = 256 * 1024
"""About how much is given to the transport at once: no more is copied before the client takes it."""

_CONFIGURATION: Final = Configuration(
    auto_window_update=False,
    # A head beyond what is served is answered with 400; one beyond this ends its connection.
    max_inbound_header_list_size=2 * MAX_HEAD_BYTES,
    max_inbound_header_count=1024,
    # libnghttp2 counts each read that ends within the frame's own head, so this is more than a head needs.
    max_continuations=32,
    max_outbound_ack=1000,
    # What a client takes back is counted in `http2_calm`, which says why it ends.
    stream_reset_rate_limit=(1_000_000, 1_000_000),
)
_SETTINGS: Final = {
    Setting.INITIAL_WINDOW_SIZE: STREAM_WINDOW_BYTES,
    Setting.MAX_HEADER_LIST_SIZE: MAX_HEAD_BYTES,
    Setting.NO_RFC7540_PRIORITIES: 1,
}
_FRAME_HEAD: Final = 9
_GOAWAY: Final = 7
_TAKE_TURNS: Final = Priority(urgency=3, incremental=True)
_GO_FIRST: Final = Priority(urgency=2, incremental=True)


def open_session() -> tuple[Connection, bytes]:
    """The server's side of a connection, and its first bytes."""
    session = Connection(Role.SERVER, _CONFIGURATION)
    session.initiate_connection(_SETTINGS)
    first = announce(session.data_to_send(), Setting.MAX_CONCURRENT_STREAMS, MAX_STREAMS)
    session.set_local_window_size(CONNECTION_WINDOW_BYTES)
    return session, first + session.data_to_send()


def announce(frame: bytes, setting: int, value: int) -> bytes:
    """The frame of settings with one more in it.

    libnghttp2 takes what it announces for a law: one stream beyond the bound ends the connection, and with it
    all streams within. So the bound is not told to it, only to the client, and what is beyond is refused.

    >>> announce(bytes.fromhex("000006040000000000000400010000"), 3, 256).hex()
    '00000c040000000000000400010000000300000100'
    """
    length = int.from_bytes(frame[:3], "big") + struct.calcsize(">HI")
    return length.to_bytes(3, "big") + frame[3:] + struct.pack(">HI", setting, value)


def take_turns(session: Connection, stream_id: int, *, first: bool = False) -> None:
    """Send this stream's body frame by frame in turn with the others', whatever the client would like.

    With ``first`` before all that are not. Does nothing to a stream that is over.
    """
    with suppress(StreamUnavailableError):
        session.set_stream_priority(stream_id, _GO_FIRST if first else _TAKE_TURNS, ignore_client_signal=True)


def more_pieces(session: Connection, size: int) -> list[bytes]:
    """What is to be sent after a first piece of this size; after one that is shorter there is no more."""
    pieces: list[bytes] = []
    for _ in range(AT_ONCE_BYTES // size - 1):
        pieces.append(session.data_to_send(size))
        if len(pieces[-1]) < size:
            break
    return pieces


def last_words(code: ErrorCode, last_stream: int) -> bytes:
    """GOAWAY, for when the session can say nothing itself. Nothing was done about later streams.

    >>> last_words(ErrorCode.ENHANCE_YOUR_CALM, 5).hex()
    '000008070000000000000000050000000b'
    """
    return struct.pack(">I", 8 << 8 | _GOAWAY) + bytes(5) + struct.pack(">II", last_stream, code)
