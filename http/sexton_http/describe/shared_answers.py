"""The error answers of the OpenAPI document: each is described once, and routes refer to it."""

from collections.abc import Mapping
from typing import Any, Final

from sexton_http.describe.documented_headers import headers_of
from sexton_http.gateway.operations import GENERAL_CODES, Operation
from sexton_http.problems import CODES

PROBLEM_MEDIA: Final = "application/problem+json"
PROBLEM: Final = {
    "type": "object",
    "description": "A problem document (RFC 9457); conflicts add their facts as members.",
    "required": ["docs_uri", "title", "detail", "error_code", "request_id", "type", "status", "error"],
    "properties": {
        "docs_uri": {"type": "string", "format": "uri"},
        "title": {"type": "string"},
        "detail": {"type": "string"},
        "error_code": {"type": "string", "pattern": "^UZ-[A-Z0-9]+-[0-9]{3}$"},
        "request_id": {"type": "string", "format": "uuid"},
        "type": {"type": "string", "format": "uri"},
        "status": {"type": "integer"},
        "error": {"$ref": "#/components/schemas/ProblemError"},
    },
}
PROBLEM_ERROR: Final = {
    "type": "object",
    "description": "The same once more, for clients that look for it here.",
    "required": ["code", "message", "details"],
    "properties": {
        "code": {"type": "string"},
        "message": {"type": "string"},
        "details": {"type": "object"},
    },
}

_MEANS: Final[Mapping[int, tuple[str, str]]] = {
    400: (
        "BadRequest",
        "Something of the request is missing, malformed or out of bounds; `detail` names it.",
    ),
    401: ("Unauthorized", "The token or signature is missing, unknown, expired or revoked."),
    402: ("PaymentRequired", "Balance, budget or plan do not allow it now."),
    403: ("Forbidden", "The token is valid but does not allow this."),
    404: ("NotFound", "What the path or the body names is not there, or not the caller's to see."),
    409: ("Conflict", "The state of things does not allow it; members of the document say which state."),
    410: ("Gone", "It was there once and will not come back."),
    413: ("TooLarge", "The body is larger than this route takes."),
    415: ("UnsupportedMedia", "The body has another media type or content coding than this route takes."),
    416: ("RangeNotSatisfiable", "The range begins after the end; `Content-Range` says how long it is."),
    422: ("KeyReused", "The Idempotency-Key was used with another body."),
    424: ("FailedDependency", "Something that this needs is not there."),
    429: ("TooManyRequests", "More requests than are allowed; wait for as long as `Retry-After` says."),
    500: ("InternalError", "The server failed; look for the request id in its log."),
    502: ("BadGateway", "Another service gave no useful answer."),
    503: ("Unavailable", "Not possible now; wait for as long as `Retry-After` says."),
    504: ("GatewayTimeout", "Another service gave no answer in time."),
}
GENERAL: Final = GENERAL_CODES | {"UZ-REQ-003"}
_PLACES: Final[Mapping[str, int]] = {code: place for place, code in enumerate(CODES)}
_ALWAYS: Final = frozenset({401, 429, 503})
"""For these, the header that the status brings goes without saying."""


def codes_by_status(operation: Operation) -> dict[int, list[str]]:
    """What a route can answer, and with which status, in the order of the table."""
    by_status: dict[int, list[str]] = {}
    # A parameter with a slash or a colon in it is part of another path.
    beside = {"UZ-REQ-003"} if operation.params else set()
    for code in sorted({*operation.all_codes(), *beside}, key=_PLACES.__getitem__):
        by_status.setdefault(operation.status_of(code), []).append(code)
    return dict(sorted(by_status.items()))


def own_codes(operation: Operation) -> dict[str, list[str]]:
    """Without those that any route may answer with."""
    return {
        str(status): own
        for status, codes in codes_by_status(operation).items()
        if (own := [code for code in codes if code not in GENERAL])
    }


def name_of(operation: Operation, status: int) -> str:
    """Describe the shared answer: what the status means, and which headers come with it.

    >>> from sexton_http.routes.service import healthz
    >>> name_of(healthz, 500)
    'InternalErrorUnlimited'
    """
    headers = headers_of(operation, status)
    name = _MEANS[status][0]
    if "RateLimit" not in headers:
        name += "Unlimited"
    if "Idempotent-Replayed" in headers:
        name += "Repeatable"
    if "Retry-After" in headers and status not in _ALWAYS:
        name += "Later"
    return name


def describe(operation: Operation, status: int) -> dict[str, Any]:
    """One shared answer, as it stands under ``components/responses``."""
    return {
        "description": _MEANS[status][1],
        "headers": header_references(operation, status),
        "content": {PROBLEM_MEDIA: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }


def header_references(operation: Operation, status: int) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in headers_of(operation, status)}
