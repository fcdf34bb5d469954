"""Holds the body of one request between the connection that reads it and the handler that may not."""

from collections import deque
from typing import Any, Final

import trio

HIGH_WATER_BYTES: Final = 256 * 1024
"""The connection waits with reading while a handler has this much left to read."""
DRAIN_BYTES: Final = 4 * 1024 * 1024
"""So much of an unread body is read and thrown away before its early answer, to keep the connection."""
DRAIN_S: Final = 5.0

_DISCONNECT: Final[dict[str, Any]] = {"type": "http.disconnect"}
_END: Final[dict[str, Any]] = {"type": "http.request", "body": b"", "more_body": False}


class Intake:
    """The receiving side of one ASGI request; putting to it never waits for a handler that is gone.

    Hypercorn's own is a bounded channel: once its handler has answered early and reads no more, the
    connection waits for room in it for ever, and so never sees that its client has gone either.
    """

    __slots__ = ("_changed", "_chunks", "_discarding", "_held", "_taken_end", "complete", "gone", "thrown")

    def __init__(self) -> None:
        self._chunks: deque[bytes] = deque()
        self._held = 0
        self._changed: trio.Event | None = None
        self._discarding = False
        self._taken_end = False
        self.complete = False
        """The whole body has arrived."""
        self.gone = False
        """The client has gone, or the exchange is over."""
        self.thrown = 0

    async def put(self, message: dict[str, Any]) -> None:
        """Take what the connection has read; waits only while a handler is behind with reading."""
        if message["type"] == "http.disconnect":
            self.gone = True
        elif message["more_body"]:
            await self._put_chunk(message["body"])
            return
        else:
            self.complete = True
        self._wake()

    async def _put_chunk(self, chunk: bytes) -> None:
        if self._discarding:
            self.thrown += len(chunk)
        else:
            self._chunks.append(chunk)
            self._held += len(chunk)
        self._wake()
        while self._held > HIGH_WATER_BYTES and not self.gone:
            await self._change()

    async def receive(self) -> dict[str, Any]:
        """Give the handler its next message, as ASGI has it."""
        while True:
            if self._chunks:
                chunk = self._chunks.popleft()
                self._held -= len(chunk)
                last = self.complete and not self._chunks
                self._taken_end = last
                self._wake()
                return {"type": "http.request", "body": chunk, "more_body": not last}
            if self.complete and not self._taken_end:
                self._taken_end = True
                return _END
            if self.gone:
                return _DISCONNECT
            await self._change()

    async def settle(self) -> bool:
        """Before an answer: throw the rest of the body away, within bounds; True when all of it has come."""
        if not self.is_over():
            self.discard()
            with trio.move_on_after(DRAIN_S):
                while not (self.is_over() or self.thrown > DRAIN_BYTES):
                    await self._change()
        return self.is_over()

    def is_over(self) -> bool:
        """Nothing more will come."""
        return self.complete or self.gone

    def discard(self) -> None:
        """From here on nothing is kept: nobody will read it."""
        self._discarding = True
        self._chunks.clear()
        self._held = 0
        self._wake()

    async def _change(self) -> None:
        if self._changed is None:
            self._changed = trio.Event()
        await self._changed.wait()

    def _wake(self) -> None:
        if self._changed is not None:
            self._changed.set()
            self._changed = None
