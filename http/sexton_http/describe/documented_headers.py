"""Which headers an answer has, by its status, as the OpenAPI document says it."""

from typing import Any, Final

from sexton_http.gateway.operations import Creates, Operation

REDIRECTS: Final = range(300, 400)
UNAUTHORIZED: Final = 401
NOT_MODIFIED: Final = 304
UNSUPPORTED: Final = 415
TOO_MANY: Final = 429
UNAVAILABLE: Final = 503


def _header(description: str, **schema: Any) -> dict[str, Any]:
    return {"description": description, "schema": {"type": "string", **schema}}


HEADERS: Final = {
    "X-Request-Id": _header("The request's id; a UUID that was sent is kept."),
    "RateLimit": _header(
        "What is left on this server: `r` requests, all of them again in `t` seconds. Each node of a"
        " deployment counts for itself."
    ),
    "RateLimit-Policy": _header("What may be asked of this server: `q` requests in `w` seconds."),
    "Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer", "minimum": 0}},
    "WWW-Authenticate": _header('`Bearer`; with `error="invalid_token"` where the token was good once.'),
    "Accept-Encoding": _header("`identity`, where the body had a Content-Encoding."),
    "ETag": _header("The SHA-256 of the content, in quotes."),
    "Accept-Ranges": _header("`bytes`", enum=["bytes"]),
    "Content-Range": _header("Which bytes of how many these are; after 416 only how many there are."),
    "Content-Disposition": _header("`attachment`, with the last part of the file's name."),
    "Content-Security-Policy": _header("Keeps what a run wrote from acting in a page."),
    "Location": _header("Where to go on.", format="uri-reference"),
    "Idempotent-Replayed": _header("The answer is that of the first request with this key.", enum=["true"]),
}
"""Each is described once; answers refer to them by name."""


_FILE: Final = ("ETag", "Accept-Ranges", "Content-Disposition", "Content-Security-Policy")
_OF_FILES: Final = {
    200: _FILE,
    206: (*_FILE, "Content-Range"),
    304: _FILE,
    416: ("Content-Range",),
}


def headers_of(operation: Operation, status: int) -> tuple[str, ...]:
    """Those that an answer of this status may have; each is said of itself when it is there."""
    told = ["X-Request-Id"]
    if "UZ-REQ-006" in operation.all_codes():
        told += ["RateLimit", "RateLimit-Policy"]
    if status in REDIRECTS and status != NOT_MODIFIED:
        told.append("Location")
    if status == UNSUPPORTED:
        told.append("Accept-Encoding")
    if operation.ranges:
        told += _OF_FILES.get(status, ())
    if status == UNAUTHORIZED:
        told.append("WWW-Authenticate")
    if status in {TOO_MANY, UNAVAILABLE} or _has(operation, "UZ-ZMB-001", status):
        told.append("Retry-After")
    if operation.creates is not Creates.NOTHING and status not in {UNAUTHORIZED, TOO_MANY, UNAVAILABLE}:
        told.append("Idempotent-Replayed")
    return tuple(told)


def _has(operation: Operation, code: str, status: int) -> bool:
    return code in operation.all_codes() and operation.status_of(code) == status
