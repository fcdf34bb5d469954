"""Activity frames: what a run shows while it goes on, joined and cut into calls."""

from collections import deque
from collections.abc import Mapping
from typing import Any

import orjson

from sexton_runner.wire import MAX_FRAMES_PER_CALL

Frame = Mapping[str, Any]

MAX_CHUNK_CHARS = 4096
MAX_QUEUED_FRAMES = 2048
MAX_CALL_BYTES = 512 * 1024
CHUNK = "chunk"


def chunk(text: str) -> Frame:
    """Show a piece of output."""
    return {"kind": CHUNK, "text": text}


def step_started(name: str) -> Frame:
    """Show that a step of the run has begun."""
    return {"kind": "tool_call_started", "name": name, "args_redacted": {}}


def call_started(name: str, args_redacted: Mapping[str, Any]) -> Frame:
    """Show that a model has called a tool."""
    return {"kind": "tool_call_started", "name": name, "args_redacted": dict(args_redacted)}


def step_progress(name: str, elapsed_ms: int) -> Frame:
    """Show that a step is still going on."""
    return {"kind": "tool_call_progress", "name": name, "elapsed_ms": elapsed_ms}


def step_completed(name: str, ms: int, *, ok: bool) -> Frame:
    """Show how a step ended."""
    return {"kind": "tool_call_completed", "name": name, "ms": ms, "ok": ok}


class FrameQueue:
    """A bounded queue of frames.

    Neighbouring chunks are joined; when full, the oldest chunk or progress goes first.
    """

    def __init__(self, capacity: int = MAX_QUEUED_FRAMES) -> None:
        self._frames: deque[Frame] = deque()
        self._capacity = capacity
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._frames)

    def put(self, frame: Frame) -> None:
        """Add a frame; long chunks are cut, short ones joined to the last."""
        if frame["kind"] != CHUNK:
            self._append(frame)
            return
        text = str(frame["text"])
        if self._frames and self._frames[-1]["kind"] == CHUNK:
            last = str(self._frames[-1]["text"])
            room = MAX_CHUNK_CHARS - len(last)
            self._frames[-1] = chunk(last + text[:room])
            text = text[room:]
        for start in range(0, len(text), MAX_CHUNK_CHARS):
            self._append(chunk(text[start : start + MAX_CHUNK_CHARS]))

    def take(self) -> list[Frame]:
        """Remove what one call may carry: at most 256 frames and about 512 KiB, but at least one frame."""
        taken: list[Frame] = []
        size = 0
        while self._frames and len(taken) < MAX_FRAMES_PER_CALL:
            size += len(orjson.dumps(self._frames[0]))
            if taken and size > MAX_CALL_BYTES:
                break
            taken.append(self._frames.popleft())
        return taken

    def _append(self, frame: Frame) -> None:
        if len(self._frames) >= self._capacity:
            self._drop_one()
        self._frames.append(frame)

    def _drop_one(self) -> None:
        # The beginning and end of steps tell the story; output and progress in between can be spared.
        self.dropped += 1
        for place, frame in enumerate(self._frames):
            if frame["kind"] in (CHUNK, "tool_call_progress"):
                del self._frames[place]
                return
        self._frames.popleft()
