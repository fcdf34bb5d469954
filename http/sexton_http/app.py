"""Builds the app: every route through Quart, the hot ones in front of it as well."""

import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final, cast

import structlog
import trio
from quart import Response, request
from quart_trio import QuartTrio
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound, RequestEntityTooLarge
from werkzeug.routing import BaseConverter

from sexton_http.answers import Answer, Problem, StreamAnswer
from sexton_http.describe.documents import make_documents
from sexton_http.gateway.hot_mount import WANTED, App, HotMount, head_of, is_over
from sexton_http.gateway.limits import Limiter
from sexton_http.gateway.operations import MAX_BODY_BYTES, Operation
from sexton_http.gateway.pipeline import NO_CONTENT, Mounted, as_problem
from sexton_http.gateway.services import Services, make_services
from sexton_http.gateway.tracing import refuse_stranger
from sexton_http.identity.context import HttpContext
from sexton_http.routes.removed import PREFIXES, gone
from sexton_http.routes.table import OPERATIONS

ALL_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")

log = structlog.get_logger()


class _Segment(BaseConverter):
    """One part of a path, without the colon that begins an action (``{gate_id}:approve``)."""

    regex = "[^/:]+"


def create_app(
    ctx: HttpContext,
    *,
    operations: Sequence[Operation] = OPERATIONS,
    limiter: Limiter | None = None,
    fast: bool = True,
) -> App:
    """The ASGI app of a server. Without ``fast`` all goes through Quart, for comparison."""
    documents = make_documents(operations, ctx.settings.base_url)
    services = make_services(ctx, documents, limiter)
    routes = [Mounted(operation, services) for operation in operations]
    quart = make_quart(services, routes)
    behind = cast(App, quart)
    return HotMount(services, routes if fast else (), behind)


def make_quart(services: Services, routes: Sequence[Mounted]) -> QuartTrio:
    app = QuartTrio("sexton_http", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES
    app.config["BODY_TIMEOUT"] = None  # The connection cuts slow senders.
    app.config["RESPONSE_TIMEOUT"] = None  # And slow readers.
    app.url_map.merge_slashes = False
    app.url_map.converters["segment"] = _Segment
    for mounted in routes:
        operation = mounted.operation
        app.add_url_rule(
            re.sub(r"\{(\w+)\}", r"<segment:\1>", operation.path),
            f"{operation.method} {operation.path}",
            _view(mounted),
            methods=[operation.method],
            provide_automatic_options=False,
        )
    _mount_refusals(app, routes)
    _mount_removed(app, services)
    _mount_errors(app, services)
    return app


def _view(mounted: Mounted) -> Callable[..., Awaitable[Response]]:
    reads = mounted.operation.has_body or mounted.operation.method != "GET"

    async def view(**params: str) -> Response:
        scope: Any = request.scope
        body: bytes | None = b""
        raw: str | bytes
        wanted: trio.Event | None = scope.get(WANTED)
        if reads and is_over(scope, mounted.operation.max_body):
            body = None
        elif wanted is not None:
            early = await mounted.early(head_of(scope), params) if reads else None
            if early is not None:
                return _respond(early)
            wanted.set()  # What comes to a GET is not looked at, but whether the client goes is.
        if reads and body is not None:
            try:
                raw = await request.get_data(cache=False)
                body = raw if isinstance(raw, bytes) else raw.encode()
            except RequestEntityTooLarge:
                body = None
            if body is not None and len(body) > mounted.operation.max_body:
                body = None
        return _respond(await mounted(head_of(scope), params, body))

    return view


def _respond(answer: Answer | StreamAnswer) -> Response:
    body: Any
    if isinstance(answer, StreamAnswer):
        body = b"" if request.method == "HEAD" else answer.chunks
    else:
        body = answer.body
    response = Response(body, answer.status)
    response.timeout = None
    response.headers.clear()
    for name, value in answer.headers:
        response.headers.add(name.decode("latin-1"), value.decode("latin-1"))
    if isinstance(answer, Answer) and answer.status != NO_CONTENT:
        response.headers["content-length"] = str(len(answer.body))
    return response


def _mount_refusals(app: QuartTrio, routes: Sequence[Mounted]) -> None:
    """A path that is spelled out is no value of another route's parameter, whatever the method."""
    spelled = {mounted.operation.path for mounted in routes if not mounted.operation.params}
    for path in sorted(spelled):
        mine = {mounted.operation.method for mounted in routes if mounted.operation.path == path}
        theirs = {
            mounted.operation.method
            for mounted in routes
            if mounted.operation.params and _pattern(mounted.operation).fullmatch(path)
        } - mine
        if theirs:
            allowed = sorted(mine | ({"HEAD"} if "GET" in mine else set()))
            app.add_url_rule(
                path,
                f"not here {path}",
                partial(_refuse_method, allowed),
                methods=sorted({*ALL_METHODS} - {*allowed}),
                provide_automatic_options=False,
            )


def _pattern(operation: Operation) -> re.Pattern[str]:
    return re.compile(re.sub(r"\{\w+\}", "[^/:]+", operation.path))


async def _refuse_method(allowed: list[str]) -> Response:
    raise MethodNotAllowed(allowed)


def _mount_removed(app: QuartTrio, services: Services) -> None:
    async def removed(rest: str = "") -> Response:
        del rest
        return _respond(refuse_stranger(services, head_of(_scope()), gone(), "gone"))

    for prefix in PREFIXES:
        for rule in (prefix, f"{prefix}/", f"{prefix}/<path:rest>"):
            app.add_url_rule(
                rule, f"removed {rule}", removed, methods=ALL_METHODS, provide_automatic_options=False
            )


def _mount_errors(app: QuartTrio, services: Services) -> None:
    async def problem(fault: Exception) -> Response:
        return _respond(refuse_stranger(services, head_of(_scope()), _problem_of(fault)))

    app.register_error_handler(HTTPException, problem)
    app.register_error_handler(Exception, problem)


def _problem_of(fault: Exception) -> Problem:
    match fault:
        case MethodNotAllowed():
            allow = ", ".join(sorted(fault.valid_methods or ())).encode()
            return Problem(
                "UZ-REQ-004",
                "this path does not take this method; see the Allow header",
                headers=((b"allow", allow),),
            )
        case RequestEntityTooLarge():
            return Problem("UZ-REQ-002", f"the body is over {MAX_BODY_BYTES} bytes")
        case NotFound():
            return Problem("UZ-REQ-003", "there is no such route")
        case HTTPException():
            return Problem("UZ-REQ-001", fault.description or "the request cannot be read")
        case _:
            return as_problem(fault)


def _scope() -> Any:
    return request.scope
