"""Which headers an answer has, by its status, as the OpenAPI document says it."""

from typing import Any, Final

from sexton_http.operations import Creates, Operation
from sexton_http.problems import CODES

REDIRECTS: Final = range(300, 400)
UNAUTHORIZED: Final = 401
NOT_MODIFIED: Final = 304
TOO_MANY: Final = 429
UNAVAILABLE: Final = 503


def _header(description: str, **schema: Any) -> dict[str, Any]:
    return {"description": description, "schema": {"type": "string", **schema}}


REQUEST_ID: Final = {"X-Request-Id": _header("The request's id; a UUID that was sent is kept.")}
RATE: Final = {
    "RateLimit": _header("What is left: `r` requests, all of them again in `t` seconds."),
    "RateLimit-Policy": _header("What may be asked: `q` requests in `w` seconds."),
}
RETRY: Final = {
    "Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer", "minimum": 0}},
}
CHALLENGE: Final = {
    "WWW-Authenticate": _header('`Bearer`; with `error="invalid_token"` where the token was good once.'),
}
LOCATION: Final = {"Location": _header("Where to go on.", format="uri-reference")}
REPLAYED: Final = {
    "Idempotent-Replayed": _header("The answer is that of the first request with this key.", enum=["true"]),
}
METHOD_NOT_ALLOWED: Final = {
    "description": f"UZ-REQ-004: {CODES['UZ-REQ-004'].title}. Of a path that exists, by any other method.",
    "headers": {**REQUEST_ID, **RATE, "Allow": _header("The methods of this path.")},
}


def headers_of(operation: Operation, status: int) -> dict[str, Any]:
    """Those that an answer of this status may have; each is said of itself when it is there."""
    told: dict[str, Any] = dict(REQUEST_ID)
    if "UZ-REQ-006" in operation.all_codes():
        told |= RATE
    if status in REDIRECTS and status != NOT_MODIFIED:
        told |= LOCATION
    if status == UNAUTHORIZED:
        told |= CHALLENGE
    if status in {TOO_MANY, UNAVAILABLE} or "UZ-ZMB-001" in _codes(operation, status):
        told |= RETRY
    if operation.creates is not Creates.NOTHING and status not in {UNAUTHORIZED, TOO_MANY, UNAVAILABLE}:
        told |= REPLAYED
    return told


def _codes(operation: Operation, status: int) -> set[str]:
    return {code for code in operation.all_codes() if operation.status_of(code) == status}
