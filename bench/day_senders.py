"""Senders and people of the mixed day: raw sockets and one loop over epoll, so that they cost little.

They stand behind the server at the processor (``nice``): on the machine of a real sender it would cost the
server nothing at all.
"""

import heapq
import os
import select
import socket
import time
from collections import deque
from collections.abc import Iterator
from itertools import count, cycle
from typing import Final, NamedTuple

from bench.day_clients import CROWDED, HUNG_UP, UNANSWERED, Effort
from bench.day_plan import PAGE, STEER, WEBHOOK, Plan
from bench.wire import NotUnderstood, parse

PATIENCE_S: Final = 10.0
"""As long as GitHub waits for the answer to a webhook."""
CONNECTIONS: Final = 6_000
BEHIND: Final = 10
"""Added to the niceness of the process."""
LOOK_S: Final = 0.05
"""How often it is looked whose patience is over."""
RECEIVE: Final = 65_536
HEAD: Final = 2_048
"""Bytes in which an answer's head is."""


class Sent(NamedTuple):
    """A request of a sender or a person."""

    kind: str
    due_ns: int
    status: int
    latency_ns: int


def send(plan: Plan) -> tuple[list[Sent], Effort]:
    """Everything that comes from outside, at its times, whatever becomes of what was sent before."""
    os.nice(BEHIND)
    effort = Effort()
    senders = _Senders(plan.site.address, effort)
    try:
        senders.go(_due(plan))
    finally:
        senders.close()
    return senders.sent, effort


class Due(NamedTuple):
    """What is to be sent, and when."""

    at_ns: int
    kind: str
    data: bytes


def _due(plan: Plan) -> Iterator[Due]:
    """All kinds together, in the order of their times."""
    makers = {WEBHOOK: _webhooks(plan), STEER: _steers(plan), PAGE: _pages(plan)}
    return heapq.merge(*(_times(plan, kind, makers[kind]) for kind in makers if plan.rates[kind]))


def _times(plan: Plan, kind: str, requests: Iterator[bytes]) -> Iterator[Due]:
    for phase in plan.phases:
        step_ns = 1e9 / (plan.rates[kind] * phase.factor)
        for turn in range(int((phase.end_ns - phase.begin_ns) / step_ns)):
            yield Due(phase.begin_ns + int(turn * step_ns), kind, next(requests))


def _webhooks(plan: Plan) -> Iterator[bytes]:
    for number, one in zip(count(), cycle(plan.deliveries)):
        yield one.with_id(f"day-{number}")


def _steers(plan: Plan) -> Iterator[bytes]:
    told = {"message": "Look again."}
    return cycle(
        [plan.site.post(f"{plan.site.workspace}/zombies/{one}/messages", told) for one in plan.agents]
    )


def _pages(plan: Plan) -> Iterator[bytes]:
    """What a console asks for."""
    site = plan.site
    pages = []
    for agent in plan.agents:
        pages += [
            site.get(f"{site.workspace}/events?limit=50"),
            site.get(f"{site.workspace}/zombies?limit=50"),
            site.get(f"{site.workspace}/zombies/{agent}/events?limit=50"),
            site.get("/v1/tenants/me/billing"),
        ]
    return cycle(pages)


class _Line:
    """One connection, with at most one request under way."""

    __slots__ = ("asked", "buffer", "socket", "used")

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.socket()
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Over loopback this is done at once, or not at all: the kernel of the same machine takes it.
        self.socket.settimeout(1.0)
        try:
            self.socket.connect(address)
        except OSError:
            self.socket.close()
            raise
        self.socket.settimeout(0)
        self.buffer = bytearray()
        self.asked: Due | None = None
        self.used = 0


class _Senders:
    """A slow answer holds no later request back: another connection is opened where none is idle."""

    def __init__(self, address: tuple[str, int], effort: Effort) -> None:
        self.sent: list[Sent] = []
        self._address = address
        self._effort = effort
        self._poll = select.epoll()
        self._lines: dict[int, _Line] = {}
        self._idle: list[_Line] = []
        self._patience: deque[tuple[int, _Line, Due]] = deque()

    def go(self, due: Iterator[Due]) -> None:
        """Send each when it is due, then wait for the last answers."""
        following = next(due, None)
        while following is not None or self._patience:
            now = time.perf_counter_ns()
            self._effort.note(now)
            while following is not None and following.at_ns <= now:
                self._ask(following)
                following = next(due, None)
            self._give_up(now)
            left_s = LOOK_S
            if following is not None:
                left_s = min(LOOK_S, max(0.0, (following.at_ns - time.perf_counter_ns()) / 1e9))
            for descriptor, _ in self._poll.poll(left_s):
                if descriptor in self._lines:
                    self._receive(self._lines[descriptor])

    def close(self) -> None:
        for line in tuple(self._lines.values()):
            self._drop(line)
        self._poll.close()

    def _ask(self, due: Due) -> None:
        if not self._idle and len(self._lines) >= CONNECTIONS:
            self._note(due, CROWDED)
            return
        try:
            line = self._idle.pop() if self._idle else self._open()
        except OSError:
            self._note(due, HUNG_UP)
            return
        line.asked = due
        line.used += 1
        self._patience.append((due.at_ns + int(PATIENCE_S * 1e9), line, due))
        try:
            # A request fits into an empty buffer of the kernel.
            taken = line.socket.send(due.data)
        except OSError:
            taken = 0
        if taken < len(due.data):
            self._lose(line)

    def _open(self) -> _Line:
        line = _Line(self._address)
        self._lines[line.socket.fileno()] = line
        self._poll.register(line.socket, select.EPOLLIN)
        return line

    def _receive(self, line: _Line) -> None:
        try:
            data = line.socket.recv(RECEIVE)
        except OSError:
            data = b""
        line.buffer += data
        try:
            whole = parse(line.buffer)
        except NotUnderstood:
            whole, data = None, b""
        if whole is not None and line.asked is not None:
            status, _, length = whole
            closes = b"connection: close" in line.buffer[:HEAD]
            del line.buffer[:length]
            asked, line.asked = line.asked, None
            self._note(asked, status)
            if closes:
                self._drop(line)
            else:
                self._idle.append(line)
        elif not data:
            self._lose(line)

    def _lose(self, line: _Line) -> None:
        """The server has closed it. An idle one it may close: every client tries again then."""
        asked, line.asked = line.asked, None
        self._drop(line)
        if asked is None:
            return
        if line.used > 1:
            self._ask(asked)
        else:
            self._note(asked, HUNG_UP)

    def _give_up(self, now: int) -> None:
        while self._patience and self._patience[0][0] <= now:
            _, line, due = self._patience.popleft()
            if line.asked is due:
                line.asked = None
                self._note(due, UNANSWERED)
                self._drop(line)
        # What was answered need not be waited for.
        while self._patience and self._patience[0][1].asked is not self._patience[0][2]:
            self._patience.popleft()

    def _drop(self, line: _Line) -> None:
        if self._lines.pop(line.socket.fileno(), None) is not None:
            self._poll.unregister(line.socket)
        if line in self._idle:
            self._idle.remove(line)
        line.socket.close()

    def _note(self, due: Due, status: int) -> None:
        self.sent.append(Sent(due.kind, due.at_ns, status, time.perf_counter_ns() - due.at_ns))
