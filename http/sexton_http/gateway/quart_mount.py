"""The mount on Quart: every route, streams, and what is said where there is no route."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from quart import Response, request
from quart_trio import QuartTrio
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound, RequestEntityTooLarge
from werkzeug.routing import BaseConverter

from sexton_http.answers import Answer, Problem, StreamAnswer
from sexton_http.gateway.faults import as_problem
from sexton_http.gateway.hot_mount import MATCHED, Matched, head_of
from sexton_http.gateway.operations import MAX_BODY_BYTES, Operation
from sexton_http.gateway.pipeline import Mounted
from sexton_http.gateway.services import Services
from sexton_http.gateway.tracing import refuse_stranger
from sexton_http.gateway.wire_headers import wire_headers

ALL_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")


class _Segment(BaseConverter):
    """One part of a path, without the colon that begins an action (``{gate_id}:approve``)."""

    regex = "[^/:]+"


def make_quart(
    services: Services, routes: Sequence[Mounted], *, removed: Sequence[str] = (), gone: Callable[[], Problem]
) -> QuartTrio:
    """Quart with all routes. What is under a prefix of ``removed`` is answered with ``gone``."""
    app = QuartTrio("sexton_http", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES  # Of what is sent where no route reads it.
    app.config["BODY_TIMEOUT"] = None  # The connection cuts slow senders.
    app.config["RESPONSE_TIMEOUT"] = None  # And slow readers.
    app.url_map.merge_slashes = False
    app.url_map.converters["segment"] = _Segment
    for mounted in routes:
        operation = mounted.operation
        app.add_url_rule(
            re.sub(r"\{(\w+)\}", r"<segment:\1>", operation.path),
            f"{operation.method} {operation.path}",
            _answer_matched,
            methods=[operation.method],
            provide_automatic_options=False,
        )
    _mount_refusals(app, routes)
    _mount_removed(app, services, removed, gone)
    _mount_errors(app, services)
    return app


async def _answer_matched(**_params: str) -> Response:
    # The same routes were matched before Quart was asked, and the body has been read within its limit.
    matched: Matched = _scope()[MATCHED]
    return _respond(await matched.mounted(matched.head, matched.params, matched.body))


def _respond(answer: Answer | StreamAnswer) -> Response:
    body: Any
    if isinstance(answer, StreamAnswer):
        body = b"" if request.method == "HEAD" else answer.chunks
    else:
        body = answer.body
    response = Response(body, answer.status)
    response.timeout = None
    response.headers.clear()
    for name, value in wire_headers(answer):
        response.headers.add(name.decode("latin-1"), value.decode("latin-1"))
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


def _mount_removed(
    app: QuartTrio, services: Services, prefixes: Sequence[str], gone: Callable[[], Problem]
) -> None:
    async def removed(rest: str = "") -> Response:
        del rest
        return _respond(refuse_stranger(services, head_of(_scope()), gone(), "gone"))

    for prefix in prefixes:
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
