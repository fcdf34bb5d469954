"""What can go wrong, as exceptions: by class for the kind, by code for the case."""

from collections.abc import Mapping
from typing import Any

from sexton_client.generated.codes import HINTS, ErrorCode

_SERVER_FAULTS = 500


class SextonError(Exception):
    """Anything that goes wrong. ``detail`` says what happened, ``hint`` what can be done about it."""

    def __init__(self, detail: str, hint: str = "", *, code: str = "") -> None:
        super().__init__(detail)
        self.code = ErrorCode(code)
        """From the table of codes; empty where no server gave one."""
        self.detail = detail
        self.hint = hint

    def __str__(self) -> str:
        """Tell code, detail and hint in one line.

        >>> str(SextonError("There is no such agent.", "List the agents.", code="UZ-ZMB-009"))
        'UZ-ZMB-009: There is no such agent. List the agents.'
        """
        said = f"{self.code}: {self.detail}" if self.code else self.detail
        return f"{said} {self.hint}".rstrip()


class ConnectionFailed(SextonError):
    """No whole answer came: the server cannot be reached, or the connection was cut."""


class NotUnderstood(SextonError):
    """An answer that no Sexton server gives: a proxy's page, a redirect, JSON that is none."""


class WaitedTooLong(SextonError):
    """What was waited for has not happened in time."""


class ApiError(SextonError):
    """The server refused, or failed. Every such answer is a problem document (RFC 9457)."""

    def __init__(self, status: int, problem: Mapping[str, Any], retry_after_s: float | None = None) -> None:
        code = str(problem.get("error_code") or "")
        title = str(problem.get("title") or "")
        detail = str(problem.get("detail") or title or f"HTTP {status}")
        super().__init__(detail, HINTS.get(code, ""), code=code)
        self.status = status
        self.title = title
        """The same for every occurrence of the code."""
        self.request_id = _text(problem.get("request_id"))
        """What to look for in the server's log."""
        self.docs_uri = _text(problem.get("docs_uri"))
        self.retry_after_s = retry_after_s
        """How long to wait before the same call, in seconds, where the server says so."""
        self.facts = {name: value for name, value in problem.items() if name not in _USUAL}
        """What the answer says beside the usual members, such as ``current_state`` of a conflict."""


class BadRequest(ApiError):
    """400, 413, 415, 416, 422: something of the request is missing, malformed, too large or out of bounds."""


class Unauthorized(ApiError):
    """401: the token is missing, unknown, expired or revoked."""


class PaymentRequired(ApiError):
    """402: balance, budget or plan do not allow it now."""


class Forbidden(ApiError):
    """403: the token is valid but does not allow this."""


class NotFound(ApiError):
    """404: what the call names is not there, or not the caller's to see."""


class Conflict(ApiError):
    """409: the state of things does not allow it; ``facts`` may say which state."""


class Gone(ApiError):
    """410: it was there once and will not come back."""


class TooManyRequests(ApiError):
    """429: more requests than are allowed; ``retry_after_s`` says how long to wait."""


class ServerError(ApiError):
    """From 500 on: the server, or what it needs, failed or has no room now."""


_USUAL = frozenset(
    {"docs_uri", "title", "detail", "error_code", "request_id", "type", "status", "error", "instance"}
)
_BY_STATUS: Mapping[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    402: PaymentRequired,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    413: BadRequest,
    415: BadRequest,
    416: BadRequest,
    422: BadRequest,
    429: TooManyRequests,
}


def api_error(status: int, problem: Mapping[str, Any], retry_after_s: float | None = None) -> ApiError:
    """Choose the class by the status.

    >>> refused = api_error(404, {"error_code": "UZ-ZMB-009", "detail": "No such agent.", "asked": 1})
    >>> type(refused).__name__, refused.code is ErrorCode.UZ_ZMB_009, refused.facts
    ('NotFound', True, {'asked': 1})
    """
    usual = ServerError if status >= _SERVER_FAULTS else ApiError
    return _BY_STATUS.get(status, usual)(status, problem, retry_after_s)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
