"""Connections of the mixed day's clients: taken for one request, given back, and allowed to fail."""

import asyncio
import time
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from bench.wire import NotUnderstood, parse

HUNG_UP: Final = 0
"""Instead of a status: the server closed the connection, or refused it."""
UNANSWERED: Final = -1
"""No answer came within the caller's patience."""
CROWDED: Final = -2
"""The client itself had no connection left: nothing was sent."""
NOTED_EVERY_NS: Final = 250_000_000


class Reply(NamedTuple):
    """A status, or one of the values above, and a body."""

    status: int
    body: bytes = b""


class Phase(NamedTuple):
    """A part of the day, by the monotonic clock, which all processes of a machine share."""

    name: str
    factor: float
    """How many times the load of an ordinary day."""
    begin_ns: int
    end_ns: int

    @property
    def seconds(self) -> float:
        return (self.end_ns - self.begin_ns) / 1e9


def phase_at(phases: "tuple[Phase, ...]", at_ns: int) -> int:
    """The number of the phase; -1 before the first and after the last.

    >>> phases = (Phase("a", 1, 0, 10), Phase("b", 2, 10, 20))
    >>> [phase_at(phases, at) for at in (-1, 0, 10, 19, 20)]
    [-1, 0, 1, 1, -1]
    """
    return next((n for n, phase in enumerate(phases) if phase.begin_ns <= at_ns < phase.end_ns), -1)


@dataclass(slots=True)
class Effort:
    """How much processor time a process of clients has used, now and then."""

    used_s: list[tuple[int, float]] = field(default_factory=list)
    """When, and how much by then."""

    def note(self, now_ns: int) -> None:
        if not self.used_s or now_ns - self.used_s[-1][0] >= NOTED_EVERY_NS:
            self.used_s.append((now_ns, time.process_time()))

    async def keep(self) -> None:
        """Note it until cancelled."""
        while True:
            self.note(time.perf_counter_ns())
            await asyncio.sleep(NOTED_EVERY_NS / 1e9)


class _Line(asyncio.Protocol):
    """One connection, with at most one request under way."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.used = 0
        self._buffer = bytearray()
        self._waits: asyncio.Future[Reply] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    @property
    def is_open(self) -> bool:
        return self.transport is not None and not self.transport.is_closing()

    def ask(self, data: bytes) -> "asyncio.Future[Reply]":
        assert self.transport is not None
        self.used += 1
        self._waits = asyncio.get_running_loop().create_future()
        self.transport.write(data)
        return self._waits

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        try:
            whole = parse(self._buffer)
        except NotUnderstood:
            self.close()
            return
        if whole is not None:
            status, body, length = whole
            del self._buffer[:length]
            self._answer(Reply(status, body))

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._answer(Reply(HUNG_UP))

    def close(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def _answer(self, reply: Reply) -> None:
        waits, self._waits = self._waits, None
        if waits is not None and not waits.done():
            waits.set_result(reply)


class Lines:
    """Connections to one server: an idle one is used again, and another is opened when none is idle.

    So a slow answer holds no later request back, which makes a loop over it an open one.
    """

    def __init__(self, address: tuple[str, int], most: int) -> None:
        self._address = address
        self._most = most
        self._idle: list[_Line] = []
        self._open = 0

    async def call(self, data: bytes, patience_s: float) -> Reply:
        """Send a whole request; raises nothing but a cancellation."""
        try:
            async with asyncio.timeout(patience_s):
                return await self._call(data)
        except TimeoutError:
            return Reply(UNANSWERED)

    async def _call(self, data: bytes) -> Reply:
        while True:
            line = await self._line()
            if line is None:
                return Reply(CROWDED if self._open >= self._most else HUNG_UP)
            reply = await self._ask(line, data)
            if reply.status == HUNG_UP and line.used > 1:
                continue  # The server had closed an idle connection: every client tries again then.
            return reply

    async def _ask(self, line: _Line, data: bytes) -> Reply:
        reply = Reply(HUNG_UP)
        try:
            reply = await line.ask(data)
        finally:
            if reply.status > 0 and line.is_open:
                self._idle.append(line)
            else:
                self._open -= 1
                line.close()
        return reply

    async def _line(self) -> _Line | None:
        while self._idle:
            line = self._idle.pop()
            if line.is_open:
                return line
            self._open -= 1
        if self._open >= self._most:
            return None
        self._open += 1
        try:
            _, opened = await asyncio.get_running_loop().create_connection(_Line, *self._address)
        except OSError:
            self._open -= 1
            return None
        except asyncio.CancelledError:
            self._open -= 1
            raise
        return opened

    def close(self) -> None:
        for line in self._idle:
            line.close()
