"""Encodes an agent's frames as server-sent events, once for all who follow it."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Final
from uuid import UUID

import msgspec

from sexton_storage.records.frames import Frame, FramePlace

KEPT: Final = 64
KEPT_BYTES: Final = 4 * 1024 * 1024
"""Results that are kept: readers of one agent ask for the same ones within a moment."""
PIECE_BYTES: Final = 16 * 1024
"""What is handed to a connection at once: all that a reader who does not read has for himself."""


class FrameEncoder:
    """Encodes frames, and keeps the last few results: a frame never changes, so its bytes do not either."""

    def __init__(self) -> None:
        self._pieces: OrderedDict[tuple[UUID, int, int], bytes] = OrderedDict()
        self._bytes = 0

    def __repr__(self) -> str:
        return f"<FrameEncoder {len(self._pieces)} kept>"

    def encode(self, frames: Sequence[Frame]) -> bytes:
        """Frames of one agent that follow each other; at least one."""
        key = (frames[0].zombie_id, frames[0].seq, frames[-1].seq)
        piece = self._pieces.get(key)
        if piece is None:
            piece = self._pieces[key] = b"".join(encode_frame(frame) for frame in frames)
            self._bytes += len(piece)
            while len(self._pieces) > KEPT or self._bytes > KEPT_BYTES:
                _, oldest = self._pieces.popitem(last=False)
                self._bytes -= len(oldest)
        return piece


def encode_frame(frame: Frame) -> bytes:
    return _encode(frame, b"%d" % frame.seq)


def encode_placed(frame: Frame, place: FramePlace) -> bytes:
    """Encode a frame as the stream of a workspace has it: with its place there, and with its own number."""
    return _encode(frame, str(place).encode(), seq=frame.seq)


def _encode(frame: Frame, name: bytes, **more: int) -> bytes:
    own = {
        **frame.data,
        "kind": frame.kind,
        "event_id": frame.event_id,
        "zombie_id": frame.zombie_id,
        "at_ms": frame.at_ms,
        **more,
    }
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (name, frame.kind.encode(), msgspec.json.encode(own))


def pieces(body: bytes) -> Iterator[bytes]:
    """Cut what many readers are sent; the whole is one for all of them, and each holds a piece at a time."""
    for at in range(0, len(body), PIECE_BYTES):
        yield body[at : at + PIECE_BYTES]
