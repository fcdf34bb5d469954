"""Refusals as values, and as the documents that a program gets."""

import json
from dataclasses import dataclass
from http import HTTPStatus

from sexton_runner.egress.seen import Reason, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a request or a connection does not go through. ``advice`` says what to do next."""

    status: HTTPStatus = HTTPStatus.FORBIDDEN
    reason: Reason
    why: str
    advice: str
    verdict: Verdict = Verdict.REFUSED


class Refused(Exception):
    """Ends a connection with a refusal."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.why)
        self.refusal = refusal


def write_problem(refusal: Refusal, *, with_body: bool = True) -> bytes:
    """Give a whole HTTP/1.1 answer, after which the connection closes; a HEAD gets no body."""
    body = json.dumps(
        {
            "type": "about:blank",
            "title": "Refused by the egress proxy"
            if refusal.verdict is not Verdict.FAILED
            else "Not reached through the egress proxy",
            "status": refusal.status.value,
            "detail": f"{refusal.why}. {refusal.advice}.",
            "verdict": refusal.verdict.value,
            "reason": refusal.reason.value,
        }
    ).encode()
    head = [
        f"HTTP/1.1 {refusal.status.value} {refusal.status.phrase}",
        "Content-Type: application/problem+json",
        f"Content-Length: {len(body)}",
        "Connection: close",
    ]
    if refusal.status is HTTPStatus.TOO_MANY_REQUESTS:
        head.append("Retry-After: 5")
    return "\r\n".join([*head, "", ""]).encode() + (body if with_body else b"")
