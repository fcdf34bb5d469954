"""The mount on Quart: every route, streams, and what is said where there is no route."""

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Final

from quart import Response, request
from quart.routing import QuartMap, QuartRule
from quart_trio import QuartTrio
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound, RequestEntityTooLarge
from werkzeug.routing import BaseConverter, Map

from sexton_http.answers import Answer, Problem, StreamAnswer
from sexton_http.gateway.faults import as_problem
from sexton_http.gateway.hot_mount import MATCHED, Matched, head_of
from sexton_http.gateway.operations import MAX_BODY_BYTES, Operation
from sexton_http.gateway.pipeline import Mounted
from sexton_http.gateway.services import Services
from sexton_http.gateway.tracing import refuse_stranger
from sexton_http.gateway.wire_headers import wire_headers

REFUSED: Final = "not here "
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
    rules = compile_rules([mounted.operation for mounted in routes], removed)
    app.url_map = rules.url_map
    app.view_functions.update(dict.fromkeys(rules.matched, _answer_matched))
    app.view_functions.update({name: partial(_refuse_method, allow) for name, allow in rules.refused.items()})
    app.view_functions.update(dict.fromkeys(rules.removed, _view_of_removed(services, gone)))
    _mount_errors(app, services)
    return app


@dataclass(frozen=True, slots=True)
class Rules:
    """The paths of an app, apart from what answers them: to compile them takes longer than all else."""

    url_map: Map
    matched: list[str]
    """The endpoints of routes."""
    refused: dict[str, list[str]]
    """To each endpoint, the methods that its path takes."""
    removed: list[str]


def compile_rules(operations: Iterable[Operation], removed: Sequence[str]) -> Rules:
    """The rules of these routes; of the same routes they are compiled once."""
    return _compiled(tuple((operation.method, operation.path) for operation in operations), tuple(removed))


@lru_cache(maxsize=8)
def _compiled(routes: tuple[tuple[str, str], ...], removed: tuple[str, ...]) -> Rules:
    """``routes`` are methods and paths."""
    url_map = QuartMap(host_matching=False, converters={"segment": _Segment}, merge_slashes=False)
    rules = Rules(url_map, [], _refusals(routes), [])
    for method, path in routes:
        rules.matched.append(f"{method} {path}")
        _add(url_map, re.sub(r"\{(\w+)\}", r"<segment:\1>", path), rules.matched[-1], [method])
    for endpoint, allowed in rules.refused.items():
        _add(url_map, endpoint.removeprefix(REFUSED), endpoint, sorted({*ALL_METHODS} - {*allowed}))
    for prefix in removed:
        for rule in (prefix, f"{prefix}/", f"{prefix}/<path:rest>"):
            rules.removed.append(f"removed {rule}")
            _add(url_map, rule, rules.removed[-1], ALL_METHODS)
    return rules


class _Rule(QuartRule):
    """A rule that paths are matched by. None is ever made from it, and what would make one takes long."""

    def _compile_builder(self, *_: object, **_options: object) -> Callable[..., tuple[str, str]]:
        return _never_built


def _never_built(*_: object, **_values: object) -> tuple[str, str]:
    raise NotImplementedError("the rules of this app match paths, and make none")


def _add(url_map: Map, path: str, endpoint: str, methods: Sequence[str]) -> None:
    rule = _Rule(path, endpoint=endpoint, methods=methods)
    rule.provide_automatic_options = False
    url_map.add(rule)


def _refusals(routes: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """A path that is spelled out is no value of another route's parameter, whatever the method."""
    refused: dict[str, list[str]] = {}
    patterns = [(method, _pattern(path)) for method, path in routes if "{" in path]
    spelled = {
        path: {method for method, other in routes if other == path} for _, path in routes if "{" not in path
    }
    for path, mine in sorted(spelled.items()):
        if {method for method, pattern in patterns if pattern.fullmatch(path)} - mine:
            refused[f"{REFUSED}{path}"] = sorted(mine | ({"HEAD"} if "GET" in mine else set()))
    return refused


def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\{\w+\}", "[^/:]+", path))


async def _answer_matched(**_params: str) -> Response:
    # The same routes were matched before Quart was asked, and the body has been read within its limit.
    matched: Matched = _scope()[MATCHED]
    return _respond(await matched.mounted.answer(matched.ticket, matched.body))


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


async def _refuse_method(allowed: list[str]) -> Response:
    raise MethodNotAllowed(allowed)


def _view_of_removed(services: Services, gone: Callable[[], Problem]) -> Callable[..., Awaitable[Response]]:
    async def removed(rest: str = "") -> Response:
        del rest
        return _respond(refuse_stranger(services, head_of(_scope()), gone(), "gone"))

    return removed


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
