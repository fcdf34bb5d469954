"""Decides whether a call is made again, and when: no network, no clock, no dice of its own."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from sexton_client.messages import Answer, Missed, Outcome, Request, problem_of, retry_after_s

REFUSED_UNREAD: Final = frozenset({"UZ-API-001", "UZ-API-002", "UZ-API-004", "UZ-API-005", "UZ-REQ-006"})
"""With these the server says no before it has looked at what was asked, so nothing was done."""
STILL_RUNNING: Final = "UZ-REQ-007"
"""The first request with this key has no answer yet."""
_PASSING: Final = frozenset(
    {HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT}
)


@dataclass(frozen=True, slots=True)
class Patience:
    """How much is borne before an error is raised. Times are in seconds."""

    tries: int = 5
    """How often one call is made at most."""
    first_wait_s: float = 0.5
    """Before the second try, where the server does not say; doubled before each one that follows."""
    longest_wait_s: float = 30.0
    """A server that asks for more is not waited for: the error says how long it would have been."""
    outage_s: float = 300.0
    """How long a stream tries to come back to a server that is away."""


def next_wait_s(
    request: Request, tries: int, outcome: Outcome, patience: Patience, *, now_s: float, dice: float
) -> float | None:
    """How long to wait before the same call; None: the outcome stands. ``dice`` is from 0 to 1.

    >>> create = Request("POST", "/v1/api-keys", {}, b"{}", repeatable=False)
    >>> keyed = create._replace(repeatable=True)
    >>> def wait(request, outcome, tries=1, patience=Patience()):
    ...     return next_wait_s(request, tries, outcome, patience, now_s=0.0, dice=0.0)
    >>> cut = Missed(sent=True, why="cut")
    >>> wait(create, cut), wait(keyed, cut), wait(keyed, cut, tries=3), wait(keyed, cut, tries=5)
    (None, 0.5, 2.0, None)
    >>> wait(create, Missed(sent=False, why="refused"))
    0.5
    >>> wait(create, Answer(429, {"retry-after": "2"}, b"")), wait(create, Answer(503, {}, b""))
    (2.0, None)
    >>> wait(keyed, Answer(503, {"retry-after": "3600"}, b""))
    """
    if tries >= patience.tries or not _may_repeat(request, outcome):
        return None
    asked = retry_after_s(outcome.headers, now_s=now_s) if isinstance(outcome, Answer) else None
    if asked is None:
        usual = patience.first_wait_s * 2.0 ** (tries - 1)
        return min(usual, patience.longest_wait_s) * (1 + dice / 2)
    return None if asked > patience.longest_wait_s else asked * (1 + dice / 10)


def _may_repeat(request: Request, outcome: Outcome) -> bool:
    match outcome:
        case Missed(sent=sent):
            return request.repeatable or not sent
        case Answer(status=HTTPStatus.TOO_MANY_REQUESTS):
            return True
        case Answer(status=HTTPStatus.CONFLICT):
            return request.repeatable and _code(outcome) == STILL_RUNNING
        case Answer(status=status) if status in _PASSING:
            return request.repeatable or _code(outcome) in REFUSED_UNREAD
        case Answer():
            return False


def _code(answer: Answer) -> str:
    problem = problem_of(answer)
    return "" if problem is None else str(problem["error_code"])
