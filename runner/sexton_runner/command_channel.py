"""The pair of FIFOs between a sandboxed command and its runner."""

import contextlib
import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import trio

from sexton_runner.command_protocol import MAX_LINE_BYTES, Garbage, Line, parse

READ_BYTES = 65536
MAX_LINES_AT_ONCE = 256  # Between two checkpoints: whoever speaks most does not keep others waiting.
MAX_CHANNEL_BYTES = 4 << 20  # A command that says more than this is flooding its runner.


class ChannelFlooded(Exception):
    """The command has sent more than ``MAX_CHANNEL_BYTES``."""


class Channel:
    """The runner's ends.

    Both are opened for reading and writing, so that neither side ever waits for the other to open.
    """

    def __init__(self, requests: int, replies: int) -> None:
        self._requests = requests
        self._replies = replies
        self._held = b""
        self._whole: deque[bytes] = deque()
        self._total = 0

    async def read(self) -> list[Line]:
        """Wait for something and give at most ``MAX_LINES_AT_ONCE`` lines; raises ``ChannelFlooded``."""
        while not self._whole:
            await trio.lowlevel.wait_readable(self._requests)
            self._fetch()
        await trio.lowlevel.checkpoint()
        return self._lines()

    async def rest(self) -> list[Line]:
        """Give what was sent and not yet read, when the command has ended; empty when that is all."""
        if not self._whole:
            self._fetch()
        await trio.lowlevel.checkpoint()
        return self._lines()

    def answer(self, line: bytes) -> None:
        """Write an answer; one that nobody reads is dropped when the pipe is full."""
        with contextlib.suppress(BlockingIOError):
            os.write(self._replies, line)

    def _lines(self) -> list[Line]:
        count = min(len(self._whole), MAX_LINES_AT_ONCE)
        lines = (self._whole.popleft() for _ in range(count))
        return [parse(line) if len(line) <= MAX_LINE_BYTES else Garbage() for line in lines]

    def _fetch(self) -> None:
        with contextlib.suppress(BlockingIOError):
            piece = os.read(self._requests, READ_BYTES)
            self._total += len(piece)
            if self._total > MAX_CHANNEL_BYTES:
                raise ChannelFlooded(f"it said more than {MAX_CHANNEL_BYTES >> 20} MiB to its runner")
            *whole, held = (self._held + piece).split(b"\n")
            # The rest of an endless line is garbage too, however it ends.
            self._held = held if len(held) <= MAX_LINE_BYTES else b"!"
            self._whole.extend(filter(None, whole))


@contextmanager
def open_channel(folder: Path) -> Iterator[Channel]:
    """Make both FIFOs in ``folder`` and open them."""
    descriptors: list[int] = []
    try:
        for name in ("requests", "replies"):
            os.mkfifo(folder / name, 0o600)
            descriptors.append(os.open(folder / name, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
        yield Channel(*descriptors)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
