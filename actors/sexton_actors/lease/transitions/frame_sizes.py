"""Keeps frames small: a long text becomes several, and what else is too long is left out and said so."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from sexton_storage.documents import to_json
from sexton_storage.records.frame_kinds import FrameKind
from sexton_storage.records.frames import NewFrame

CHUNK: Final = FrameKind.CHUNK
TEXT_BYTES: Final = 64 * 1024
"""The bound of a frame's text in UTF-8, and of all its other fields together as JSON."""
NAME_BYTES: Final = 1024
"""What is kept of each required text, as a tool's name, where a frame is too long."""
REQUIRED: Final = (
    *("name", "elapsed_ms", "ms", "ok"),
    *("host", "port", "verdict", "why", "bytes_in", "bytes_out"),
)
"""What the kinds of a runner's frames have to have, beside a chunk's text."""
_LONGEST: Final = 4
"""Bytes of a character in UTF-8, at most."""
_LEADING_BITS: Final = 0b1100_0000
_GOES_ON: Final = 0b1000_0000
"""How a byte of UTF-8 begins that is not the first of its character."""


def bounded(frames: Iterable[NewFrame]) -> tuple[NewFrame, ...]:
    """The same frames in the same order, none of them long."""
    return tuple(small for frame in frames for small in _smaller(frame))


def pieces(text: str, max_bytes: int) -> Iterator[str]:
    """The text in pieces of at most ``max_bytes`` of UTF-8, with no character torn; at least one piece.

    >>> list(pieces("aé€", 3))
    ['aé', '€']
    >>> list(pieces("", 3))
    ['']
    """
    if len(text) * _LONGEST <= max_bytes:
        yield text
        return
    encoded = text.encode("utf-8", "surrogatepass")
    start = 0
    while True:
        end = start + max_bytes
        while end < len(encoded) and encoded[end] & _LEADING_BITS == _GOES_ON:
            end -= 1
        yield encoded[start:end].decode("utf-8", "surrogatepass")
        if end >= len(encoded):
            return
        start = end


def _smaller(frame: NewFrame) -> Iterator[NewFrame]:
    text = frame.data.get("text") if frame.kind == CHUNK else None
    if not isinstance(text, str):
        yield _with(frame, _shortened(frame.data))
        return
    others = _shortened({name: value for name, value in frame.data.items() if name != "text"})
    for number, piece in enumerate(pieces(text, TEXT_BYTES)):
        # What comes along with a text is said once, with its beginning.
        yield _with(frame, {"text": piece, **others} if number == 0 else {"text": piece})


def _with(frame: NewFrame, data: Mapping[str, Any]) -> NewFrame:
    return frame if data == frame.data else msgspec.structs.replace(frame, data=data)


def _shortened(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields; where they are too long together, the required ones and how long the whole was."""
    size = len(to_json(data).encode())
    if size <= TEXT_BYTES:
        return data
    kept = {name: _cut(data[name]) for name in REQUIRED if name in data}
    return {**kept, "truncated": True, "bytes": size}


def _cut(value: Any) -> Any:
    return next(pieces(value, NAME_BYTES)) if isinstance(value, str) else value
