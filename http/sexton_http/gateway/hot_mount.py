"""The fast mount: hot routes straight on ASGI, all else handed on; checks and answers are the same."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import trio

from sexton_http.answers import Answer, Problem, RequestHead, StreamAnswer
from sexton_http.gateway.operations import Operation, Wait
from sexton_http.gateway.pipeline import NO_CONTENT, Mounted
from sexton_http.gateway.services import Services
from sexton_http.gateway.tracing import refuse, refuse_stranger
from sexton_http.wire.forwarded import forwarded_scope
from sexton_http.wire.hang_ups import unless_gone

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
App = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]


def head_of(scope: Mapping[str, Any]) -> RequestHead:
    client, headers = scope.get("client"), dict(scope["headers"])
    if b"cookie" in headers:
        # HTTP/2 may send each cookie in a header of its own.
        headers[b"cookie"] = b"; ".join(value for name, value in scope["headers"] if name == b"cookie")
    return RequestHead(
        scope["method"],
        scope["path"],
        scope["query_string"],
        headers,
        client[0] if client else "",
    )


_WHOLE_PARTS: Final = re.compile(r"(?:/(?:[^/{}]+|\{\w+\}))+")
"""Paths whose parameters fill their part; those with an action behind one are never hot."""


class HotRoutes:
    """Finds a hot route by method and parts of the path, without trying one after the other."""

    def __init__(self, routes: Sequence[Mounted]) -> None:
        # The others of a length are kept too: a hot pattern must not take a request that is another route's.
        self._fixed: dict[tuple[str, str], Mounted] = {}
        self._by_length: dict[tuple[str, int], list[tuple[_Pattern, Mounted]]] = {}
        for mounted in routes:
            operation = mounted.operation
            if not operation.params:
                self._fixed[operation.method, operation.path] = mounted
                continue
            if not _WHOLE_PARTS.fullmatch(operation.path):
                continue
            pattern = _Pattern(operation)
            self._by_length.setdefault((operation.method, pattern.length), []).append((pattern, mounted))
        for patterns in self._by_length.values():
            # A literal part is more of a match than a parameter is, wherever the first difference lies.
            patterns.sort(key=lambda found: [literal is None for literal in found[0].literals])

    def find(self, method: str, path: str) -> tuple[Mounted, Mapping[str, str]] | None:
        fixed = self._fixed.get((method, path))
        if fixed is not None:
            return (fixed, {}) if fixed.operation.hot else None
        parts = path.split("/")
        for pattern, mounted in self._by_length.get((method, len(parts)), ()):
            params = pattern.match(parts)
            if params is not None:
                return (mounted, params) if mounted.operation.hot else None
        return None


class _Pattern:
    __slots__ = ("_checks", "_params", "length", "literals")

    def __init__(self, operation: Operation) -> None:
        parts = operation.path.split("/")
        self.length = len(parts)
        self.literals = [None if part.startswith("{") else part for part in parts]
        self._checks = [(place, part) for place, part in enumerate(self.literals) if part is not None]
        self._params = [(place, part[1:-1]) for place, part in enumerate(parts) if part.startswith("{")]

    def match(self, parts: list[str]) -> dict[str, str] | None:
        for place, literal in self._checks:
            if parts[place] != literal:
                return None
        params = {name: parts[place] for place, name in self._params}
        return params if all(value and ":" not in value for value in params.values()) else None


WANTED: Final = "sexton.wanted"
"""In the scope of a request that waits to be told to send its body: set when the body is to come."""


ONCE: Final = (b"authorization", b"idempotency-key")
"""Headers of which one counts, and nobody could say which."""


class HotMount:
    """The ASGI app of the server: answers hot routes itself and hands all else to ``behind``."""

    def __init__(self, services: Services, routes: Sequence[Mounted], behind: App) -> None:
        self._services = services
        self._hot = HotRoutes(routes)
        self._behind = behind
        self._proxies = services.ctx.settings.trusted_proxies

    def say_malformed(self, detail: str) -> Answer:
        """To bytes that are no request."""
        return refuse(self._services, RequestHead("", "", b"", {}, ""), Problem("UZ-REQ-001", detail))

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._behind(scope, receive, send)
            return
        if self._proxies:
            scope = forwarded_scope(scope, self._proxies)
        names = [name for name, _ in scope["headers"]]
        twice = [name for name in ONCE if names.count(name) > 1]
        if twice:
            problem = Problem("UZ-REQ-001", f"a request has one {twice[0].decode().title()} header")
            await _send(send, refuse_stranger(self._services, head_of(scope), problem))
            return
        found = self._hot.find(scope["method"], scope["path"])
        if found is None:
            if b"expect" in names:
                scope[WANTED] = trio.Event()
                receive = partial(_receive_when_wanted, scope[WANTED], receive)
            await self._behind(scope, receive, send)
            return
        mounted, params = found
        head = head_of(scope)
        if b"expect" in names and not is_over(scope, mounted.operation.max_body):
            early = await mounted.early(head, params)
            if early is not None:
                await _send(send, early)
                return
        body = await read_body(scope, receive, mounted.operation.max_body)
        if body is GONE:
            return
        if mounted.operation.wait is Wait.LONG_POLL:
            answer = await unless_gone(scope, receive, partial(mounted, head, params, body))
            if answer is not None:
                await _send(send, answer)
        else:
            await _send(send, await mounted(head, params, body))


GONE: Final = b"\0gone"
"""What ``read_body`` gives for a client that left; told apart by identity."""


async def read_body(scope: Mapping[str, Any], receive: Receive, limit: int) -> bytes | None:
    """The whole body; None when it is over the limit, and then no more of it is kept."""
    if is_over(scope, limit):
        return None
    message = await receive()
    if message["type"] != "http.request":
        return GONE
    body: bytes = message["body"]
    if not message["more_body"]:
        return body if len(body) <= limit else None
    chunks, size = [body], len(body)
    while message["more_body"]:
        if size > limit:
            return None
        message = await receive()
        if message["type"] != "http.request":
            return GONE
        chunks.append(message["body"])
        size += len(message["body"])
    return b"".join(chunks) if size <= limit else None


def is_over(scope: Mapping[str, Any], limit: int) -> bool:
    """Whether the body says itself that it is too large: then it need not come."""
    for name, value in scope["headers"]:
        if name == b"content-length":
            return bool(value.isdigit()) and int(value) > limit
    return False


async def _receive_when_wanted(wanted: trio.Event, receive: Receive) -> dict[str, Any]:
    await wanted.wait()
    return await receive()


async def _send(send: Send, answer: Answer | StreamAnswer) -> None:
    if isinstance(answer, StreamAnswer):
        raise TypeError("a stream is no hot route")
    headers = list(answer.headers)
    if answer.status != NO_CONTENT:
        headers.append((b"content-length", b"%d" % len(answer.body)))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body, "more_body": False})
