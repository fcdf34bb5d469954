"""Requests and answers as plain values: how they are built and read, without any network."""

from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from sexton_client.errors import ConnectionFailed, NotUnderstood, SextonError, api_error
from sexton_client.version import VERSION

T = TypeVar("T")

WORKSPACE: Final = "workspace_id"
JSON: Final = "application/json"
BYTES: Final = "application/octet-stream"
_SAFE: Final = frozenset({"GET", "PUT", "DELETE"})
_REDIRECTS: Final = range(300, 400)
_REFUSALS: Final = 400
_SHOWN_CHARS: Final = 200


@dataclass(frozen=True, slots=True)
class Operation:
    """One route. ``keyed``: it takes an idempotency key, so that the same call can be sent twice."""

    name: str
    method: str
    path: str
    keyed: bool = False


class Request(NamedTuple):
    """What is sent. ``repeatable``: sending it twice does what sending it once does."""

    method: str
    path: str
    headers: Mapping[str, str]
    content: bytes | None
    repeatable: bool


class Answer(NamedTuple):
    """What came back, whole; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Missed(NamedTuple):
    """No whole answer came. ``sent``: the server may have had the request nevertheless."""

    sent: bool
    why: str


Outcome = Answer | Missed


def from_environment(environment: Mapping[str, str]) -> tuple[str, str | None, str | None]:
    """Address, token and workspace, by the names that the command line has for them. Raises SextonError."""
    base_url = environment.get("SEXTON_BASE_URL")
    if not base_url:
        raise SextonError("SEXTON_BASE_URL is not set.", "Let it be the address of the server.")
    return base_url, environment.get("SEXTON_TOKEN") or None, environment.get("SEXTON_WORKSPACE") or None


def check_base_url(base_url: str) -> str:
    """Without a slash at its end. Raises SextonError where it is no address of a server.

    >>> check_base_url("https://sexton.example/team/")
    'https://sexton.example/team'
    """
    parts = urlsplit(base_url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise SextonError(f"{base_url!r} is no address of a server.", "Give one such as https://host:8080.")
    if parts.username is not None:
        raise SextonError("The address holds a user name.", "Give the token beside the address.")
    return base_url.rstrip("/")


def check_token(token: str | None) -> dict[str, str]:
    """The header that bears it. Raises SextonError where it cannot stand in one."""
    if token is None:
        return {}
    if not token.isascii() or not token.isprintable() or not token.strip() or " " in token:
        raise SextonError("The token is no token.", "Look for a line feed or a blank in it.")
    return {"authorization": f"Bearer {token}"}


def build(
    operation: Operation,
    *,
    path: Mapping[str, str | None],
    query: Mapping[str, Any] | None = None,
    body: Mapping[str, Any] | bytes | None = None,
    key: str | None = None,
) -> Request:
    """Spell out one call. ``key``: its idempotency key.

    >>> show = Operation("get_event", "GET", "/v1/workspaces/{workspace_id}/events/{event_id}")
    >>> asked = build(
    ...     show, path={"workspace_id": "w", "event_id": "a/b"}, query={"wait_ms": 5, "status": None}
    ... )
    >>> asked.path, asked.repeatable
    ('/v1/workspaces/w/events/a%2Fb?wait_ms=5', True)
    """
    target = operation.path.format_map({name: _segment(name, value) for name, value in path.items()})
    asked = urlencode({name: _spell(value) for name, value in given(query or {}).items()})
    headers = {"user-agent": f"sexton-client/{VERSION}", "accept": f"{JSON}, application/problem+json, */*"}
    content: bytes | None = None
    if isinstance(body, bytes):
        content, headers["content-type"] = body, BYTES
    elif body is not None:
        content, headers["content-type"] = msgspec.json.encode(body), JSON
    if key is not None:
        headers["idempotency-key"] = key
    return Request(
        method=operation.method,
        path=f"{target}?{asked}" if asked else target,
        headers=headers,
        content=content,
        repeatable=operation.method in _SAFE or key is not None,
    )


def given(members: Mapping[str, Any]) -> dict[str, Any]:
    """Only what was given; the server knows what is meant by the rest.

    >>> given({"limit": 5, "cursor": None})
    {'limit': 5}
    """
    return {name: value for name, value in members.items() if value is not None}


def read(outcome: Outcome, shape: type[T], base_url: str, *, now_s: float) -> T:
    """What the answer says, as ``shape``. Raises SextonError where it says no, or makes no sense."""
    if isinstance(outcome, Missed):
        raise ConnectionFailed(f"{base_url} gave no answer: {outcome.why}.", "Look whether the server runs.")
    if outcome.status >= _REFUSALS:
        raise refusal(outcome, base_url, now_s=now_s)
    if outcome.status in _REDIRECTS:
        # A token is never carried to where a redirect points.
        where = outcome.headers.get("location", "nowhere")[:_SHOWN_CHARS]
        raise NotUnderstood(
            f"{base_url} redirects to {where}.", "Give that address as base_url if you trust it."
        )
    if shape is bytes:
        return outcome.body  # type: ignore[return-value] # which is what was asked for
    if shape is type(None):
        return None
    try:
        return msgspec.json.decode(outcome.body, type=shape)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as fault:
        raise NotUnderstood(
            f"{base_url} answered {outcome.status} with what is not the JSON of this route: {_short(fault)}.",
            "Look for a proxy in between, and compare the versions of server and client.",
        ) from None


def refusal(answer: Answer, base_url: str, *, now_s: float) -> SextonError:
    """What an answer from 400 on means; something between us and the server may have written it."""
    wait_s = retry_after_s(answer.headers, now_s=now_s)
    problem = problem_of(answer)
    if problem is None:
        return NotUnderstood(
            f"{base_url} answered {answer.status} without a problem document.",
            "Look for a proxy in between, or for another address.",
        )
    return api_error(answer.status, problem, wait_s)


def problem_of(answer: Answer) -> dict[str, Any] | None:
    """The problem document; None where the answer holds none."""
    try:
        problem = msgspec.json.decode(answer.body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return problem if isinstance(problem, dict) and isinstance(problem.get("error_code"), str) else None


def retry_after_s(headers: Mapping[str, str], *, now_s: float) -> float | None:
    """How long an answer asks to wait, in seconds; None where it does not say.

    A date is counted from the answer's own ``Date``, so that two clocks need not agree.

    >>> retry_after_s({"retry-after": "3"}, now_s=0.0), retry_after_s({}, now_s=0.0)
    (3.0, None)
    >>> later = {"retry-after": "Thu, 01 Jan 2026 00:00:30 GMT", "date": "Thu, 01 Jan 2026 00:00:00 GMT"}
    >>> retry_after_s(later, now_s=0.0), retry_after_s({"retry-after": "soon"}, now_s=0.0)
    (30.0, None)
    """
    given = headers.get("retry-after", "").strip()
    if given.isascii() and given.isdigit():
        return float(given[:9])
    at = _date_s(given)
    if at is None:
        return None
    said = _date_s(headers.get("date", ""))
    return max(0.0, at - (now_s if said is None else said))


def _date_s(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError, IndexError, TypeError):
        return None


def _segment(name: str, value: str | None) -> str:
    """One part of a path, whatever it is. Raises SextonError for what would be another path."""
    if not value or value in {".", ".."}:
        raise SextonError(f"{name} cannot be {value!r}.", f"Give the {name} that the server named.")
    return quote(value, safe="")


def _spell(value: Any) -> str:
    """A value in a query.

    >>> _spell(True), _spell(7), _spell(["a", "b"])
    ('true', '7', 'a,b')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(_spell(item) for item in value)
    return str(value)


def _short(fault: Exception) -> str:
    return str(fault)[:_SHOWN_CHARS].rstrip(".")
