"""Activity frames: what a run shows while it goes on, joined and cut into calls."""

from collections import OrderedDict, deque
from collections.abc import Mapping
from typing import Any

import orjson

from sexton_runner.wire import MAX_FRAMES_PER_CALL

Frame = Mapping[str, Any]

MAX_CHUNK_CHARS = 4096
MAX_QUEUED_FRAMES = 2048
MAX_CALL_BYTES = 512 * 1024
CHUNK = "chunk"
CONNECTION = "connection"
SPARE_KINDS = frozenset({CHUNK, "tool_call_progress", CONNECTION})


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


def connection(facts: Mapping[str, Any]) -> Frame:
    """Show what became of a request, or of a connection that passed through, at the run's proxy."""
    return {"kind": CONNECTION, **facts}


class FrameQueue:
    """A bounded queue of frames.

    Neighbouring chunks are joined; when full, the oldest chunk or progress goes first. Each
    operation takes the same time however full the queue is.
    """

    def __init__(self, capacity: int = MAX_QUEUED_FRAMES) -> None:
        self._frames: OrderedDict[int, Frame] = OrderedDict()
        self._spare: deque[int] = deque()  # The numbers of those frames that go first, oldest first.
        self._next = 0
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
        last = self._frames.get(self._next - 1)
        if last is not None and last["kind"] == CHUNK:
            shown = str(last["text"])
            room = MAX_CHUNK_CHARS - len(shown)
            self._frames[self._next - 1] = chunk(shown + text[:room])
            text = text[room:]
        for start in range(0, len(text), MAX_CHUNK_CHARS):
            self._append(chunk(text[start : start + MAX_CHUNK_CHARS]))

    def take(self) -> list[Frame]:
        """Remove what one call may carry: at most 256 frames and about 512 KiB, but at least one frame."""
        taken: list[Frame] = []
        size = 0
        while self._frames and len(taken) < MAX_FRAMES_PER_CALL:
            size += len(orjson.dumps(next(iter(self._frames.values()))))
            if taken and size > MAX_CALL_BYTES:
                break
            taken.append(self._remove_first())
        return taken

    def _append(self, frame: Frame) -> None:
        if len(self._frames) >= self._capacity:
            self._drop_one()
        self._frames[self._next] = frame
        if frame["kind"] in SPARE_KINDS:
            self._spare.append(self._next)
        self._next += 1

    def _drop_one(self) -> None:
        # The beginning and end of steps tell the story; output and progress in between can be spared.
        self.dropped += 1
        if self._spare:
            del self._frames[self._spare.popleft()]
        else:
            self._remove_first()

    def _remove_first(self) -> Frame:
        number, frame = self._frames.popitem(last=False)
        if self._spare and self._spare[0] == number:
            self._spare.popleft()
        return frame
