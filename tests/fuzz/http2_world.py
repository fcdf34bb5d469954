"""The product's HTTP/2 connection over a client in memory, under a clock of its own, with an application to ask."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, NamedTuple

import trio
from trio.testing import wait_all_tasks_blocked

from sexton_http.answers import Answer
from sexton_http.wire.asgi import WHOLE_ANSWER, WHOLE_BODY
from sexton_http.wire.hang_ups import unless_gone
from sexton_http.wire.http2 import Http2Connection
from sexton_http.wire.http2_exchange import AHEAD_BYTES
from sexton_http.wire.http2_session import CONNECTION_WINDOW_BYTES, MAX_STREAMS
from sexton_http.wire.http2_tasks import MAX_RESTING
from sexton_http.wire.timeouts import READ_S, WATCH_S, WRITE_S
from sexton_http.wire.transport import FRAME_BYTES, Ends
from tests.fuzz.http2_script import Kernel, Part, Script

LONGEST_S: Final = 1_000.0
"""A connection whose client says nothing is over long before."""
LOSES_AFTER: Final = 3
"""Writes to a client that is lost."""
FROZEN_AFTER_BYTES: Final = 200
SLOW_S, POLL_S = 3.0, 20.0
PIECE: Final = b"l" * 10_000
PIECES: Final = 3
DATE: Final = ((b"date", b"now"),)


class Seen(NamedTuple):
    """A request as the application was given it."""

    method: str
    target: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes
    whole: bool


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


class App:
    """Does with a request what its path says; keeps what it was given."""

    def __init__(self) -> None:
        self.seen: dict[int, Seen] = {}
        self.running = 0
        self.most_body = len(PIECE)
        self.raised: list[BaseException] = []

    def refuse_early(self, scope: dict[str, Any]) -> Answer | None:
        return Answer(503, (), b"later") if scope["path"] == "/no" else None

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        stream = scope[WHOLE_BODY].__self__.id
        target = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
        assert stream not in self.seen, "a request comes twice"
        self.seen[stream] = Seen(scope["method"], target, scope["headers"], b"", whole=False)
        self.running += 1
        try:
            await self._do(scope, stream, receive, send)
        except _Planned:
            raise
        except Exception as fault:
            self.raised.append(fault)
            raise
        finally:
            self.running -= 1

    async def _do(self, scope: dict[str, Any], stream: int, receive: Any, send: Any) -> None:
        path = scope["path"]
        if path == "/deaf":
            await _answer(send, 401, b"no")
            return
        body = scope[WHOLE_BODY]() if path == "/whole" else None
        if body is None:
            body = await self._read(stream, receive)
        else:
            self._note(stream, body, whole=True)
        if body is None:
            return
        match path:
            case "/whole":
                await scope[WHOLE_ANSWER](Answer(200, (), body))
            case "/slow":
                await trio.sleep(SLOW_S)
                await _answer(send, 200, b"slow")
            case "/poll":
                await unless_gone(scope, receive, _poll)
                await _answer(send, 204, b"")
            case "/large":
                await _begin(send, 200, PIECES * len(PIECE))
                for number in range(PIECES):
                    await send(_part(PIECE, more=number < PIECES - 1))
            case "/fail":
                raise _Planned
            case "/half":
                await _begin(send, 200, 10)
                await send(_part(b"half", more=False))
            case _:
                await _answer(send, 200, body)

    async def _read(self, stream: int, receive: Any) -> bytes | None:
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            body, more = body + message["body"], message["more_body"]
            self._note(stream, body, whole=not more)
        return body

    def _note(self, stream: int, body: bytes, *, whole: bool) -> None:
        self.seen[stream] = self.seen[stream]._replace(body=body, whole=whole)
        self.most_body = max(self.most_body, len(body))


class _Planned(Exception):
    """The application fails."""


async def _poll() -> bool:
    await trio.sleep(POLL_S)
    return True


async def _answer(send: Any, status: int, body: bytes) -> None:
    await _begin(send, status, len(body))
    await send(_part(body, more=False))


async def _begin(send: Any, status: int, length: int) -> None:
    head = [(b"content-length", b"%d" % length)] if status != 204 else []
    await send({"type": "http.response.start", "status": status, "headers": head})


def _part(body: bytes, *, more: bool) -> dict[str, Any]:
    return {"type": "http.response.body", "body": body, "more_body": more}


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
            if trio.current_time() >= connection.due():
                connection.cut()

    def _look(self) -> None:
        """What a connection holds is bounded, whenever it reads."""
        connection = self._connection
        streams = connection._open
        assert len(streams) <= MAX_STREAMS
        assert set(connection._waiting) <= set(streams)
        unread = sum(len(chunk) for one in streams.values() for chunk in one._chunks)
        assert unread <= CONNECTION_WINDOW_BYTES
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
        assert all(one.gone and not (one.handled and one._chunks) for one in streams)
