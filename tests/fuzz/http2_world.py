"""The product's HTTP/2 connection over a client in memory, under a clock of its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import ClassVar, Final, NamedTuple

import trio
from trio.testing import wait_all_tasks_blocked

from sexton_http.wire.http2 import Http2Connection
from sexton_http.wire.http2_exchange import AHEAD_BYTES
from sexton_http.wire.http2_session import CONNECTION_WINDOW_BYTES, MAX_STREAMS
from sexton_http.wire.http2_tasks import MAX_RESTING
from sexton_http.wire.timeouts import READ_S, WATCH_S, WRITE_S
from sexton_http.wire.transport import FRAME_BYTES, Ends
from tests.fuzz.http2_app import App, Seen
from tests.fuzz.http2_script import Kernel, Part, Script

LONGEST_S: Final = 1_000.0
"""A connection whose client says nothing is over long before."""
LOSES_AFTER: Final = 3
"""Writes to a client that is lost."""
FROZEN_AFTER_BYTES: Final = 200
DATE: Final = ((b"date", b"now"),)


class Told(NamedTuple):
    """What one connection came to."""

    seen: dict[int, Seen]
    sent: bytes
    """To the client."""
    marks: list[tuple[int, int]]
    """How many bytes were read, and how many had been sent by then."""
    read: int
    finished: bool
    """The end of what is sent was said."""


class Client:
    """A transport: gives what a script has, and takes what is sent as it says."""

    secure: ClassVar[bool] = False
    piece_bytes: ClassVar[int] = FRAME_BYTES
    descriptor = -1

    def __init__(self, script: Script, parts: Sequence[Part], when_read: Callable[[], None]) -> None:
        self._script = script
        self._parts = deque(parts)
        self._when_read = when_read
        self._reads = False
        self._rest = False
        self._writes = 0
        self.sent = bytearray()
        self.marks: list[tuple[int, int]] = []
        self.read = 0
        self.is_over = trio.Event()
        """All was given."""
        self.finished = False

    def ends(self) -> Ends:
        return ("127.0.0.1", 5000), ("127.0.0.1", 8080)

    async def receive(self) -> bytes:
        data = await self._next()
        self.read += len(data)
        self.marks.append((self.read, len(self.sent)))
        self._when_read()
        return data

    async def discard(self) -> bool:
        return bool(await self._next())

    async def _next(self) -> bytes:
        assert not self._reads, "two tasks read"
        self._reads = True
        try:
            while self._parts:
                after, data = self._parts[0]
                if after:
                    await trio.sleep(after)
                    self._parts[0] = Part(0, data)
                await self._pause()
                self._parts.popleft()
                if data:
                    return data
            self.is_over.set()
            await wait_all_tasks_blocked()
            if not self._script.hangs_up:
                await trio.sleep_forever()
            return b""
        finally:
            self._reads = False

    async def _pause(self) -> None:
        if self._script.is_patient:
            await wait_all_tasks_blocked()
        else:
            await trio.lowlevel.checkpoint()

    def send_now(self, data: bytes) -> bool:
        assert not self._rest, "something is sent before the rest of the last write"
        assert not self.finished, "something is sent after the end"
        self._writes += 1
        if self._script.loses and self._writes > LOSES_AFTER:
            raise BrokenPipeError
        self.sent += data
        if self._script.kernel is Kernel.WILLING or len(self.sent) < FROZEN_AFTER_BYTES:
            return True
        self._rest = True
        return False

    def send_pieces_now(self, pieces: Sequence[bytes]) -> bool:
        return self.send_now(b"".join(pieces))

    async def flush(self) -> None:
        assert self._rest
        match self._script.kernel:
            case Kernel.LATE:
                await trio.sleep(1)
            case Kernel.NOT_AT_ALL:
                await trio.sleep(WRITE_S)
                raise trio.TooSlowError
            case _:
                await trio.lowlevel.checkpoint()
        self._rest = False

    def finish(self) -> None:
        assert not self._rest, "the end is said before the rest of the last write"
        assert not self.finished, "the end is said twice"
        self.finished = True

    async def close(self) -> None:
        return


class World:
    """One connection, from its first byte to its last task."""

    def __init__(self, script: Script, parts: Sequence[Part]) -> None:
        self._script = script
        self._stops = False
        self._app = App()
        self._client = Client(script, parts, self._look)
        self._connection = Http2Connection(
            self._app, self._client, date=lambda: DATE, is_stopping=lambda: self._stops
        )

    async def run(self) -> Told:
        with trio.move_on_after(LONGEST_S) as patience:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._watch)
                await self._connection.run()
                nursery.cancel_scope.cancel()
        self._check_end(ended=not patience.cancelled_caught)
        client = self._client
        return Told(self._app.seen, bytes(client.sent), client.marks, client.read, client.finished)

    async def _watch(self) -> None:
        """As a server looks after its connections."""
        connection = self._connection
        while True:
            wait_s = WATCH_S
            if self._client.is_over.is_set():
                if self._script.is_stopped and not self._stops:
                    self._stops = True
                    connection.close_if_idle()
                # Nothing comes any more, so there is nothing to see before.
                wait_s = min(max(wait_s, connection.due() - trio.current_time()), READ_S)
            await trio.sleep(wait_s)
            self._look()
            if trio.current_time() >= connection.due():
                connection.cut()

    def _look(self) -> None:
        """What a connection holds is bounded, at any time."""
        connection = self._connection
        streams = connection._open
        assert len(streams) <= MAX_STREAMS
        assert set(connection._waiting) <= set(streams)
        unread = sum(len(chunk) for one in streams.values() for chunk in one._chunks)
        assert unread <= CONNECTION_WINDOW_BYTES
        if not connection._closing.over:
            # What was read is given back, by half a window at once; so no client is left without one.
            held = unread + FRAME_BYTES
            assert connection.session.local_window_size + held >= CONNECTION_WINDOW_BYTES // 2
        most = AHEAD_BYTES + self._app.most_body
        assert all(one.left_bytes() <= most for one in streams.values())
        nursery = connection._nursery
        assert nursery is None or len(nursery.child_tasks) <= len(streams) + MAX_RESTING + 2

    def _check_end(self, *, ended: bool) -> None:
        assert ended, "it never ends"
        assert not self._app.running
        assert not self._app.raised, self._app.raised
        streams = self._connection._open.values()
        # What came with the end of its connection was never given to the application.
        assert all(one.gone and not (one.handled and one._chunks) for one in streams), (
            "a body that nobody wants is kept"
        )
