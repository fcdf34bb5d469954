"""The fast mount: answers hot routes straight on ASGI, and hands all other requests on."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec
import trio

from sexton_http.answers import Answer, Problem, RequestHead, StreamAnswer
from sexton_http.ceilings import Full
from sexton_http.gateway.early_refusal import EarlyRefusal
from sexton_http.gateway.faults import BUSY_WAIT_S
from sexton_http.gateway.opening_line import Turn
from sexton_http.gateway.operations import Auth, Operation, Wait
from sexton_http.gateway.page_parts import asks_for_parts
from sexton_http.gateway.pipeline import Mounted
from sexton_http.gateway.request_body import GONE, is_over, read_body
from sexton_http.gateway.route_matcher import RouteMatcher
from sexton_http.gateway.services import Services
from sexton_http.gateway.ticket import Ticket, whose
from sexton_http.gateway.tracing import refuse, refuse_stranger
from sexton_http.gateway.wire_headers import wire_headers
from sexton_http.wire.asgi import RESERVED, WHOLE_ANSWER, WHOLE_BODY, App, Message, Receive
from sexton_http.wire.first_glance import Urgency
from sexton_http.wire.forwarded import forwarded_scope
from sexton_http.wire.gatekeeper import Prepared
from sexton_http.wire.hang_ups import unless_gone
from sexton_http.wire.whole_request import whole_request

Send = Callable[[Message], Any]
SendAnswer = Callable[[Answer], Awaitable[None]]
Exchange = tuple[dict[str, Any], Receive, Send]

ONCE: Final = (b"authorization", b"idempotency-key")
"""Headers of which one counts, and nobody could say which."""
MATCHED: Final = "sexton.matched"
"""In the scope of a request that goes to the mount behind: the route that it is for, and its body."""


class Found(NamedTuple):
    """A request and its route."""

    mounted: Mounted
    params: Mapping[str, str]
    head: RequestHead


class Matched(msgspec.Struct, frozen=True):
    """A request whose route is known and whose body, if the route reads one, is here."""

    mounted: Mounted
    ticket: Ticket
    body: bytes | None
    """None: it was too large to be read."""


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


def _twice(headers: Sequence[tuple[bytes, bytes]]) -> bytes | None:
    """A header that a request may have once, and has more often."""
    names = [name for name, _ in headers]
    return next((name for name in ONCE if names.count(name) > 1), None)


class HotMount:
    """The ASGI app of the server: finds the route, asks it by the head alone, and only then reads the body.

    Hot routes and parts of open pages are answered here; all else goes to ``behind``, with ``Matched`` in its
    scope where there is a route. Without ``fast`` no route is hot.
    """

    def __init__(
        self, services: Services, routes: Sequence[Mounted], behind: App, *, fast: bool = True
    ) -> None:
        self._services = services
        self._routes = RouteMatcher(routes)
        self._behind = behind
        self._fast = fast
        self._proxies = services.ctx.settings.trusted_proxies
        self._early = EarlyRefusal(services)

    def urgency(self, method: str, path: str) -> Urgency:
        """For the server, when many connections come at once: whether it answers this one before others."""
        found = self._routes.find(method, path)
        if found is None or found[0].door is not None:
            return Urgency.NONE
        operation = found[0].operation
        is_now = operation.never_shed and operation.hot and operation.no_io and operation.auth is Auth.PUBLIC
        return Urgency.NOW if is_now else Urgency.FIRST

    def say_malformed(self, detail: str) -> Answer:
        """The answer to bytes that are no request."""
        return refuse(self._services, RequestHead("", "", b"", {}, ""), Problem("UZ-REQ-001", detail))

    def refuse_early(self, scope: dict[str, Any]) -> Answer | None:
        """For the connection, before this is called: the answer of one whose door has no place for it."""
        if not self._services.admission.is_narrow:
            return None
        found = self._routes.find(scope["method"], scope["path"])
        if found is None or found[0].door is None:
            return None
        mounted, params = found
        head = head_of(forwarded_scope(scope, self._proxies) if self._proxies else scope)
        return self._early.answer(mounted, head, params)

    def refuse_bytes(self, data: bytes, client: str) -> Prepared | None:
        """For a connection of HTTP/1.1, before its parser sees what came."""
        if not self._services.admission.is_narrow:
            return None
        head = whole_request(data, client)
        if head is None:
            return None
        found = self._routes.find(head.method, head.path)
        if found is None or found[0].door is None:
            return None
        mounted, params = found
        if self._proxies and b"authorization" not in head.headers and "zombie_id" not in params:
            return None  # Who shares a line with whom is for the proxy's headers to say.
        return self._early.answer_whole(mounted, head, params)

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._behind(scope, receive, send)
            return
        if self._proxies:
            scope = forwarded_scope(scope, self._proxies)
        head = head_of(scope)
        if len(head.headers) < len(scope["headers"]) and (twice := _twice(scope["headers"])):
            problem = Problem("UZ-REQ-001", f"a request has one {twice.decode().title()} header")
            await send_answer(send, refuse_stranger(self._services, head, problem))
            return
        found = self._routes.find(scope["method"], scope["path"])
        if RESERVED in scope.get("extensions", ()) and not (found and found[0].operation.never_shed):
            await send_answer(send, self._full(head, found and found[0].operation))
            return
        if found is None:
            # What no route reads need not be sent: asking for it would be the 100 Continue.
            await self._behind(scope, _after_body(receive, None if b"expect" in head.headers else b""), send)
            return
        request, exchange = Found(*found, head), (scope, receive, send)
        if request.mounted.operation.wait is not Wait.STREAM:
            await self._let_in(request, exchange)
            return
        opening = await self._services.openings.take(whose(head, request.params))
        if opening is None:
            detail = "too many streams are being opened; try again after Retry-After"
            await send_answer(send, self._turn_down(head, request.mounted.operation, "UZ-API-002", detail))
            return
        try:
            await self._let_in(request, exchange, opening)
        finally:
            opening.leave()

    async def _let_in(self, request: Found, exchange: Exchange, opening: Turn | None = None) -> None:
        mounted, params, head = request
        scope, receive, send = exchange
        oversize = mounted.body.is_read and is_over(scope, mounted.body.most_of(head))
        ticket = await mounted.admit(head, params, oversize=oversize)
        if isinstance(ticket, Answer):
            await send_answer(send, ticket)
            return
        ticket.opening = opening
        try:
            await self._serve(mounted, ticket, scope, receive, send)
        finally:
            ticket.leave()

    async def _serve(
        self, mounted: Mounted, ticket: Ticket, scope: dict[str, Any], receive: Receive, send: Send
    ) -> None:
        operation = mounted.operation
        hot = self._fast and (operation.hot or asks_for_parts(ticket.head, operation.media))
        body: bytes | None = b""
        reply = sender_of(scope, send)
        if mounted.body.boundary_of(ticket.head) is not None:
            taken = await mounted.take_form(ticket, receive)
            if isinstance(taken, Answer):
                await reply(taken)
            if not isinstance(taken, bytes):
                return
            body = taken
        elif mounted.body.is_read:
            try:
                body = await read_body(receive, ticket, operation.max_body, scope.get(WHOLE_BODY))
            except Full as full:
                await reply(await mounted.refuse_body(ticket, full))
                return
            if body is GONE:
                return
        if not hot:
            scope = {**scope, MATCHED: Matched(mounted, ticket, body)}
            await self._behind(scope, _after_body(receive, body), send)
        elif operation.wait is Wait.LONG_POLL:
            answer = await unless_gone(scope, receive, partial(mounted.answer, ticket, body))
            if answer is not None:
                await reply(_whole(answer))
        else:
            await reply(_whole(await mounted.answer(ticket, body)))

    def _full(self, head: RequestHead, operation: Operation | None) -> Answer:
        """Tell a connection that is one too many."""
        detail = "too many connections are open; try again after Retry-After"
        return self._turn_down(head, operation, "UZ-API-005", detail)

    def _turn_down(self, head: RequestHead, operation: Operation | None, code: str, detail: str) -> Answer:
        metrics = self._services.metrics
        metrics.shed.labels(code).inc()
        if operation is not None:
            metrics.problems.labels(operation.method, operation.path, code).inc()
        return refuse(self._services, head, Problem(code, detail, wait_s=BUSY_WAIT_S))


def _whole(answer: Answer | StreamAnswer) -> Answer:
    if isinstance(answer, StreamAnswer):
        raise TypeError("a stream is no hot route")
    return answer


def _after_body(receive: Receive, body: bytes | None) -> Receive:
    """For the mount behind: no body, then whether the client left. What comes of an unread one is dropped."""
    end: list[Message] = [{"type": "http.request", "body": b"", "more_body": False}]

    async def after() -> Message:
        if end:
            return end.pop()
        if body is None:
            # The rest of a body that is too large stays unread; the answer does not wait for anything.
            await trio.sleep_forever()
        while (message := await receive())["type"] == "http.request":
            pass
        return message

    return after


def sender_of(scope: Mapping[str, Any], send: Send) -> SendAnswer:
    """What sends a whole answer on this connection."""
    whole: SendAnswer | None = scope.get(WHOLE_ANSWER)
    return partial(send_answer, send) if whole is None else whole


async def send_answer(send: Send, answer: Answer) -> None:
    await send({"type": "http.response.start", "status": answer.status, "headers": wire_headers(answer)})
    await send({"type": "http.response.body", "body": answer.body, "more_body": False})
