"""Looks at what a new connection asks for before it has a task, and answers what waits for nothing."""

import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import copy_context
from enum import Enum
from typing import Any, Final, Protocol, runtime_checkable

from sexton_http.answers import Answer, RequestHead
from sexton_http.wire.asgi import WHOLE_ANSWER, WHOLE_BODY, App, Header, Message
from sexton_http.wire.http1_exchange import head_bytes, length_of
from sexton_http.wire.newcomers import AT_ONCE, Rank
from sexton_http.wire.transport import Ends
from sexton_http.wire.whole_request import whole_request

GLANCE_BYTES: Final = 2048
"""A request for health is smaller than this."""


class Urgency(Enum):
    """How a request is dealt with when many come at once."""

    NOW = "answered by the task that takes connections, since it waits for nothing"
    FIRST = "before others: it is never held back"
    NONE = "in turn"


@runtime_checkable
class Receptionist(Protocol):
    """An app that says which requests are urgent."""

    def urgency(self, method: str, path: str) -> Urgency:
        """Takes microseconds."""
        ...


class FirstGlance:
    """For connections without TLS: there nothing can be seen before the handshake."""

    def __init__(
        self, app: Any, date: Callable[[], Sequence[Header]], is_stopping: Callable[[], bool]
    ) -> None:
        self._app: App = app
        self._urgency = app.urgency if isinstance(app, Receptionist) else None
        self._date = date
        self._is_stopping = is_stopping
        self._left = AT_ONCE
        """How many more are answered here in this turn of the loop, which a flood may not make long."""

    def __call__(self, taken: socket.socket) -> Rank:
        try:
            return self._look(taken)
        except Exception:  # noqa: BLE001 - the border: a fault is for the connection's own task to meet again
            return Rank.IN_TURN

    def _look(self, taken: socket.socket) -> Rank:
        if self._urgency is None:
            return Rank.IN_TURN
        try:
            # Nothing is read yet: a connection that is not answered here is served from its first byte.
            data = taken.recv(GLANCE_BYTES, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except OSError:
            return Rank.IN_TURN
        method, _, rest = data.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0]
        urgency = self._urgency(method.decode("latin-1"), path.decode("latin-1"))
        if urgency is Urgency.NOW and self._left > 0 and not self._is_stopping():
            self._left -= 1
            return self._answer(taken, data)
        return Rank.IN_TURN if urgency is Urgency.NONE else Rank.FIRST

    def look_again(self) -> None:
        """The loop has had its turn."""
        self._left = AT_ONCE

    def _answer(self, taken: socket.socket, data: bytes) -> Rank:
        ends = taken.getpeername()[:2], taken.getsockname()[:2]
        head = whole_request(data, ends[0][0], may_close=True)
        if head is None or b"content-length" in head.headers:
            return Rank.FIRST
        answer = answer_now(self._app, head, ends)
        if answer is None:
            return Rank.FIRST
        closes = head.headers.get(b"connection", b"").lower() == b"close"
        headers = [*answer.headers, length_of(answer.body)]
        if closes:
            headers.append((b"connection", b"close"))
        sent = head_bytes(answer.status, self._date(), headers) + answer.body
        with suppress(OSError):
            taken.recv(len(data))
            if taken.send(sent, socket.MSG_DONTWAIT) == len(sent) and not closes:
                return Rank.IN_TURN  # For what it asks next.
            taken.shutdown(socket.SHUT_WR)
        taken.close()
        return Rank.DONE


def answer_now(app: App, head: RequestHead, ends: Ends) -> Answer | None:
    """What the app says to a request without a body; None where it would have to wait.

    Then nothing has become of the request, and it can be asked again. Raises whatever the app does.
    """
    answers: list[Answer] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(_: Message) -> None:
        raise RuntimeError("only whole answers are expected here")

    async def send_whole(answer: Answer) -> None:
        answers.append(answer)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": head.method,
        "scheme": "http",
        "path": head.path,
        "raw_path": head.path.encode("ascii"),
        "query_string": head.query,
        "root_path": "",
        "headers": list(head.headers.items()),
        "client": ends[0],
        "server": ends[1],
        "state": {},
        "extensions": {},
        WHOLE_BODY: lambda: b"",
        WHOLE_ANSWER: send_whole,
    }
    # Run within the caller's step, which a task of its own would have to wait for. What the app notes of the
    # request must not stay with the caller, nor with the connections that it begins later.
    running: Any = app(scope, receive, send)
    context = copy_context()
    try:
        context.run(running.send, None)
    except StopIteration:
        return answers[0] if answers else None
    context.run(running.close)
    return None
