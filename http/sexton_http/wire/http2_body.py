"""Holds the body of an HTTP/2 request between the connection that reads it and a handler that may not."""

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import trio

from sexton_http.wire import timeouts
from sexton_http.wire.asgi import Message
from sexton_http.wire.hang_ups import until_told

T = TypeVar("T")

HIGH_WATER_BYTES: Final = 256 * 1024
"""The connection waits with reading while a handler has this much left to read."""

_DISCONNECT: Final[Message] = {"type": "http.disconnect"}
_END: Final[Message] = {"type": "http.request", "body": b"", "more_body": False}


class IncomingBody:
    """The receiving side of one ASGI request; putting to it never waits for a handler that is gone.

    Hypercorn's own is a bounded channel: once its handler has answered early and reads no more, the
    connection waits for room in it for ever, and so never sees that its client has gone either.
    """

    __slots__ = (
        "_changed",
        "_chunks",
        "_discarding",
        "_held",
        "_left",
        "_taken_end",
        "complete",
        "gone",
        "thrown",
    )

    def __init__(self) -> None:
        self._chunks: deque[bytes] = deque()
        self._held = 0
        self._changed: trio.Event | None = None
        self._discarding = False
        self._left: Callable[[], None] | None = None
        """Whom to tell that the client has gone."""
        self._taken_end = False
        self.complete = False
        """The whole body has arrived."""
        self.gone = False
        """The client has gone, or the exchange is over."""
        self.thrown = 0

    async def put(self, message: Message) -> None:
        """Take what the connection has read; waits only while a handler is behind with reading."""
        if message["type"] == "http.disconnect":
            self.gone = True
            if self._left is not None:
                self._left()
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

    async def receive(self) -> Message:
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

    async def unless_gone(self, ask: Callable[[], Awaitable[T]]) -> T | None:
        """The answer; None when the client has gone meanwhile."""
        return None if self.gone else await until_told(ask, self._expect, self._forget)

    async def settle(self) -> bool:
        """Before an answer: throw the rest of the body away, within bounds; True when all of it has come."""
        if not self.is_over():
            self.discard()
            with trio.move_on_after(timeouts.DRAIN_S):
                while not (self.is_over() or self.thrown > timeouts.DRAIN_BYTES):
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

    def _expect(self, left: Callable[[], None]) -> None:
        self._left = left

    def _forget(self) -> None:
        self._left = None

    async def _change(self) -> None:
        if self._changed is None:
            self._changed = trio.Event()
        await self._changed.wait()

    def _wake(self) -> None:
        if self._changed is not None:
            self._changed.set()
            self._changed = None
