"""The load client: one process, raw keep-alive sockets, one thread that waits for all of them.

A connection is driven by a conversation, a generator that yields what to send next and is given the answer.
One that always has a next request makes a closed loop; one that says when each is due makes an open loop,
whose latencies count from when a request was due, so that a slow answer cannot hide the wait of those behind
it (coordinated omission).
"""

import heapq
import resource
import select
import socket
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Any, NamedTuple

import orjson
import trio

from bench.machine import processor_s
from bench.wire import Answer, parse

NOW = 0
SPIN_NS = 1_200_000
"""epoll counts in whole ms; the last one before a request is due is spent asking again."""
PATIENCE_S = 40.0
"""An answer that takes longer than a long poll is not coming."""
RECEIVE = 262_144
CALLERS = 16
"""Connections for calls that are not measured."""
SET_UP_S = 90.0
"""More than those calls need."""


class Send(NamedTuple):
    """What a conversation wants sent, and when (ns of the monotonic clock; ``NOW``: at once)."""

    data: bytes
    due_ns: int = NOW
    timed: bool = True
    """Long polls and the like are waited for, but are no latency of the server's."""
    must: bool = False
    """Ends what was begun: it is sent also when the run is over."""


Conversation = Generator[Send, Answer, None]


@dataclass(frozen=True, slots=True)
class Job:
    """One run of load; it is sent to the load process, so it holds only what can be pickled."""

    address: tuple[str, int]
    begin: "Begin"
    arguments: tuple[Any, ...]
    connections: int
    run_s: float
    warm_s: float = 0.5


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a run a conversation stands."""

    number: int
    connections: int
    began_ns: int
    count_from_ns: int
    """The end of the warm-up."""
    over_ns: int
    """Nothing is begun after it."""
    notes: list[Any]
    """What the benchmark wants to know afterwards; all conversations of a run write into the same."""

    def counts(self, now_ns: int) -> bool:
        """Whether what happens now is part of the figure."""
        return self.count_from_ns <= now_ns < self.over_ns

    def due_ns(self, turn: int, per_second: float) -> int:
        """When this connection's next request is due, if all of them together send ``per_second``.

        ``turn`` counts its own requests from 0. Without a rate it is due at once: a closed loop. The times
        are fixed in advance, so that an answer that is late makes no later request less late.
        """
        if not per_second:
            return NOW
        return self.began_ns + int((self.number + turn * self.connections) * 1e9 / per_second)


Begin = Callable[..., Conversation]
"""Called with a Place and the job's arguments; a function at the top of a module."""


@dataclass(slots=True)
class Loaded:
    """What came of a run of load."""

    answers: int = 0
    """All, those of the warm-up and after the end included: what was asked of the server."""
    counted: int = 0
    """Those that came between the end of the warm-up and the end of the run."""
    run_s: float = 0.0
    latencies_ns: list[int] = field(default_factory=list)
    """The latencies of the counted and timed, ascending."""
    statuses: Counter[int] = field(default_factory=Counter)
    notes: list[Any] = field(default_factory=list)
    client_cpu_s: float = 0.0
    server_cpu_s: float = 0.0
    """The server's processor time, without its database; 0 when ``Client.run`` is not told which."""

    @property
    def per_second(self) -> float:
        return self.counted / self.run_s

    @property
    def client_us(self) -> float:
        """Processor time that the client itself spent on an answer."""
        return 1e6 * self.client_cpu_s / max(1, self.answers)

    @property
    def server_us(self) -> float:
        """The server's processor time. Unlike a rate, it hardly changes when the machine is shared."""
        return 1e6 * self.server_cpu_s / max(1, self.answers)

    def latency_ms(self, share: float) -> float:
        """The latency that this share of the requests did not exceed."""
        return percentile(self.latencies_ns, share) / 1e6


def percentile(ascending: Sequence[int], share: float) -> float:
    """The nearest rank; 0 when there is nothing.

    >>> percentile(range(1, 101), 0.99)
    99
    """
    return ascending[max(0, -int(-share * len(ascending) // 1) - 1)] if ascending else 0


class _Line:
    """One connection and what is said over it."""

    __slots__ = ("buffer", "conversation", "due_ns", "pending", "socket")

    def __init__(self, address: tuple[str, int], conversation: Conversation) -> None:
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.conversation = conversation
        self.buffer = bytearray()
        self.pending: Send | None = None
        """What it waits for an answer to, or for its time to come."""
        self.due_ns = 0

    def send(self, now: int) -> None:
        assert self.pending is not None
        self.due_ns = self.pending.due_ns or now
        # One request is under way on a connection, and the server reads it: this does not block for long.
        self.socket.sendall(self.pending.data)


class _Run:
    """The loop over all connections of one job."""

    def __init__(self, job: Job) -> None:
        self.loaded = Loaded(run_s=job.run_s)
        self._poll = select.epoll()
        self._lines: dict[int, _Line] = {}
        self._due: list[tuple[int, int, _Line]] = []
        self._open = 0
        clock = time.perf_counter_ns()
        self._count_from = clock + int(job.warm_s * 1e9)
        self._over = self._count_from + int(job.run_s * 1e9)
        for number in range(job.connections):
            place = Place(number, job.connections, clock, self._count_from, self._over, self.loaded.notes)
            line = _Line(job.address, job.begin(place, *job.arguments))
            self._lines[line.socket.fileno()] = line
            self._poll.register(line.socket, select.EPOLLIN)
        for line in self._lines.values():
            self._next(line, next(line.conversation, None))

    def _next(self, line: _Line, send: Send | None) -> None:
        now = time.perf_counter_ns()
        line.pending = send
        if send is None or (max(now, send.due_ns) >= self._over and not send.must):
            line.pending = None
        elif send.due_ns > now:
            heapq.heappush(self._due, (send.due_ns, line.socket.fileno(), line))
        else:
            self._open += 1
            line.send(now)

    def _send_due(self) -> float:
        """Send what is due; how long to wait for the next, in s."""
        while self._due:
            left = self._due[0][0] - time.perf_counter_ns()
            if left > 0:
                return max(0.0, (left - SPIN_NS) / 1e9)
            _, _, line = heapq.heappop(self._due)
            self._open += 1
            line.send(0)
        return PATIENCE_S

    def go(self) -> None:
        """Until everybody has nothing more to send and has had all answers."""
        while self._open or self._due:
            ready = self._poll.poll(self._send_due())
            if not ready and not self._due:
                raise TimeoutError(f"{self._open} answers did not come within {PATIENCE_S} s")
            for descriptor, _ in ready:
                self._receive(self._lines[descriptor])
        self.loaded.latencies_ns.sort()

    def close(self) -> None:
        for line in self._lines.values():
            line.conversation.close()
            line.socket.close()
        self._poll.close()

    def _receive(self, line: _Line) -> None:
        data = line.socket.recv(RECEIVE)
        if not data:
            raise ConnectionError(f"the server hung up; it had sent {bytes(line.buffer[:200])!r}")
        line.buffer += data
        whole = parse(line.buffer)
        if whole is None:
            return
        status, body, length = whole
        del line.buffer[:length]
        now = time.perf_counter_ns()
        self._open -= 1
        self._note(line, status, now)
        try:
            following = line.conversation.send(Answer(status, body, line.due_ns, now))
        except StopIteration:
            line.pending = None
        else:
            self._next(line, following)

    def _note(self, line: _Line, status: int, now: int) -> None:
        loaded = self.loaded
        loaded.answers += 1
        loaded.statuses[status] += 1
        if self._count_from <= now < self._over:
            loaded.counted += 1
            if line.pending is not None and line.pending.timed:
                loaded.latencies_ns.append(now - line.due_ns)


def run(job: Job) -> Loaded:
    """Put the load on, in this process and thread."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    loop = _Run(job)
    try:
        loop.go()
    finally:
        loop.close()
    after = resource.getrusage(resource.RUSAGE_SELF)
    loop.loaded.client_cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return loop.loaded


class Client:
    """A process that puts load on, kept over the runs of a benchmark, so that none pays for its start."""

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._pool = pool

    async def run(self, job: Job, server_pid: int | None = None) -> Loaded:
        """The same as the function ``run``, in the other process."""
        before = processor_s(server_pid) if server_pid else 0.0
        loaded = await trio.to_thread.run_sync(self._pool.submit(run, job).result)
        loaded.server_cpu_s = (processor_s(server_pid) if server_pid else 0.0) - before
        return loaded

    async def call_all(
        self, address: tuple[str, int], requests: Sequence[bytes], connections: int = CALLERS
    ) -> list[Any]:
        """Send each once; the JSON of the answers, in the same order. Raises when one is an error."""
        job = Job(address, each, (requests,), min(connections, len(requests)), run_s=SET_UP_S, warm_s=0)
        notes = sorted((await self.run(job)).notes)
        for index, status, body in notes:
            assert status < 400, f"{requests[index][:200]!r}: {status} {body!r}"
        assert len(notes) == len(requests)
        return [orjson.loads(body) if body else None for _, _, body in notes]

    async def call(self, address: tuple[str, int], request: bytes) -> Any:
        return (await self.call_all(address, [request]))[0]


@contextmanager
def open_client() -> Iterator[Client]:
    """A fresh interpreter, not a fork: it shares neither lock nor thread with the benchmark."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield Client(pool)


# --- conversations that suit any server ---------------------------------------------------------------------


def each(place: Place, requests: Sequence[bytes]) -> Conversation:
    """Send every request once, all connections together; notes ``(index, status, body)``."""
    for index in range(place.number, len(requests), place.connections):
        answer = yield Send(requests[index])
        place.notes.append((index, answer.status, answer.body))


def repeat(place: Place, requests: Sequence[bytes]) -> Conversation:
    """A closed loop: connection k sends request k, then the one that many connections further, and so on."""
    mine = requests[place.number % len(requests) :: place.connections] or requests
    while True:
        for data in mine:
            answer = yield Send(data)
            if answer.status >= 400:
                place.notes.append((answer.status, answer.body.decode(errors="replace")))
