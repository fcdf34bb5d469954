"""Joins a run's neighbouring pieces of text, so that a model's every word is no row of its own."""

from collections.abc import Iterable
from typing import Final

import msgspec

from sexton_actors.lease.transitions.frame_sizes import CHUNK
from sexton_storage.records.frames import NewFrame

MAX_CHUNK_CHARS: Final = 8192
"""The bound of a joined piece; a longer one that arrives is not joined to another."""


def coalesced(frames: Iterable[NewFrame]) -> tuple[NewFrame, ...]:
    """The same frames, with chunks that follow each other joined; what was said first says when.

    Only those that hold text and nothing else: what a runner adds is not to be lost.
    """
    joined: list[NewFrame] = []
    parts: list[str] = []

    def finish() -> None:
        if len(parts) > 1:
            joined[-1] = msgspec.structs.replace(joined[-1], data={"text": "".join(parts)})
        parts.clear()

    chars = 0
    for frame in frames:
        text = _text_of(frame)
        if text is None:
            finish()
            joined.append(frame)
        elif parts and chars + len(text) <= MAX_CHUNK_CHARS:
            parts.append(text)
            chars += len(text)
        else:
            finish()
            joined.append(frame)
            parts.append(text)
            chars = len(text)
    finish()
    return tuple(joined)


def _text_of(frame: NewFrame) -> str | None:
    text = frame.data.get("text")
    return text if frame.kind == CHUNK and len(frame.data) == 1 and isinstance(text, str) else None
