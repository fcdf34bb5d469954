"""Streams that count, keep time, and give back what was read ahead."""

import trio
from trio.abc import HalfCloseableStream, Stream

from sexton_runner.egress.meter import Meter
from sexton_runner.egress.refusals import Refused

PIECE_BYTES = 1 << 16
LINGER_S = 1.0
LINGER_BYTES = 1 << 20


class Pulse:
    """Cuts a connection on which nothing moves, and one that lives too long."""

    def __init__(self, meter: Meter, scope: trio.CancelScope) -> None:
        self._meter = meter
        self._scope = scope
        self._end = trio.current_time() + meter.bounds.life_s
        self.touch()

    def touch(self) -> None:
        """Note that something moved."""
        self._scope.deadline = min(self._end, trio.current_time() + self._meter.bounds.idle_s)

    def pause(self) -> None:
        """Let it wait for a person, within its life."""
        self._scope.deadline = self._end

    def refused(self) -> Refused:
        """Say which of the two it was, once the scope has ended."""
        return Refused(self._meter.too_late(idle=trio.current_time() < self._end))


class ReadAhead(HalfCloseableStream):
    """A stream some of whose first bytes have been read already."""

    def __init__(self, stream: Stream, first: bytes) -> None:
        self._stream = stream
        self._first = first

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Give the first bytes first."""
        if self._first:
            await trio.lowlevel.checkpoint()
            count = len(self._first) if max_bytes is None else max_bytes
            given, self._first = self._first[:count], self._first[count:]
            return given
        return bytes(await self._stream.receive_some(max_bytes))

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def send_eof(self) -> None:
        if isinstance(self._stream, HalfCloseableStream):
            await self._stream.send_eof()

    async def aclose(self) -> None:
        await self._stream.aclose()


class ServerStream(HalfCloseableStream):
    """The way to a server: counts its bytes into the run's, and into this connection's own."""

    def __init__(self, stream: Stream, meter: Meter, pulse: Pulse) -> None:
        self._stream = stream
        self._meter = meter
        self._pulse = pulse
        self.bytes_in = self.bytes_out = 0

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Raises ``Refused`` when the run has had all that it may."""
        data = bytes(await self._stream.receive_some(max_bytes or PIECE_BYTES))
        self._meter.count_in(len(data))
        self.bytes_in += len(data)
        self._pulse.touch()
        return data

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Raises ``Refused`` when the run has sent all that it may."""
        self._meter.count_out(len(data))
        self.bytes_out += len(data)
        await self._stream.send_all(data)
        self._pulse.touch()

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def send_eof(self) -> None:
        if isinstance(self._stream, HalfCloseableStream):
            await self._stream.send_eof()

    async def aclose(self) -> None:
        await trio.aclose_forcefully(self._stream)


async def say_and_close(stream: Stream, last_words: bytes) -> None:
    """Send an answer and end; for a moment, throw away what still comes, so that the answer is read."""
    with trio.move_on_after(LINGER_S):
        try:
            await stream.send_all(last_words)
            if isinstance(stream, HalfCloseableStream):
                await stream.send_eof()
            left = LINGER_BYTES
            while left > 0 and (data := await stream.receive_some(PIECE_BYTES)):
                left -= len(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
    await trio.aclose_forcefully(stream)
