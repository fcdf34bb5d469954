"""Puts on an answer what every one carries: the request's id, its trace, and what is left of a rate."""

import re
from collections.abc import Sequence
from typing import Final, TypeVar

import msgspec

from sexton_http.answers import JSON_TYPE, Answer, Headers, Problem, RequestHead, StreamAnswer
from sexton_http.gateway.limits import Verdict
from sexton_http.gateway.request_log import begin_request, log_answer
from sexton_http.gateway.safe_headers import Https, safe_headers
from sexton_http.gateway.services import Services

_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")

JSON_ONLY: Final[Headers] = (JSON_TYPE,)
"""What nearly all answers have of their own, so what is added to it is reckoned once."""
JSON_SAFE: Final[Sequence[Headers]] = [(*JSON_ONLY, *safe_headers(JSON_ONLY, https=https)) for https in Https]

AnyAnswer = TypeVar("AnyAnswer", bound=Answer | StreamAnswer)


def request_id_of(head: RequestHead, services: Services) -> str:
    """The caller's own if it is a UUID, else a new one."""
    given = head.headers.get(b"x-request-id")
    if given is not None:
        text = given.decode("latin-1")
        if _UUID.fullmatch(text):
            return text.lower()
    spell_id = services.ctx.spell_id
    return str(services.ctx.world.new_id()) if spell_id is None else spell_id()


def traceparent_of(head: RequestHead) -> str | None:
    """W3C trace context, if it is well formed."""
    given = head.headers.get(b"traceparent")
    if given is None:
        return None
    text = given.decode("latin-1").strip()
    return text if _TRACEPARENT.fullmatch(text) else None


def refuse(services: Services, head: RequestHead, problem: Problem) -> Answer:
    """A problem document for a request that reached no route."""
    request_id = request_id_of(head, services)
    context = begin_request(head, request_id)
    answer = problem.answer(services.ctx.settings.base_url, request_id)
    log_answer(context, answer, 0.0, problem)
    return traced(answer, request_id, traceparent_of(head), https=services.https)


def refuse_stranger(
    services: Services, head: RequestHead, problem: Problem, counted: str = "address"
) -> Answer:
    """The same, counted by address: who asks for what is not there may do so as often as without a token.

    ``counted``: what this is counted with.
    """
    rate, verdicts = services.ctx.settings.address_rate, []
    if rate is not None:
        verdicts.append(verdict := services.limiter.admit((counted, head.client), rate))
        if not verdict.allowed:
            services.metrics.shed.labels("UZ-REQ-006").inc()
            problem = Problem(
                "UZ-REQ-006", "the rate limit is reached; try again after Retry-After", wait_s=verdict.wait_s
            )
    answer = refuse(services, head, problem)
    return msgspec.structs.replace(answer, headers=(*answer.headers, *limits_of(verdicts)))


def limits_of(verdicts: list[Verdict]) -> Headers:
    if not verdicts:
        return ()
    last = min(verdicts, key=lambda verdict: (verdict.allowed, verdict.remaining / verdict.burst))
    return (
        (b"ratelimit-policy", b'"default";q=%d;w=%d' % (last.burst, last.window_s)),
        (b"ratelimit", b'"default";r=%d;t=%d' % (last.remaining, last.reset_s)),
    )


def traced(
    answer: AnyAnswer, request_id: str, traceparent: str | None, more: Headers = (), *, https: Https
) -> AnyAnswer:
    headers: Headers
    if answer.headers == JSON_ONLY:
        headers = (*JSON_SAFE[https], *more, (b"x-request-id", request_id.encode()))
    else:
        headers = (*answer.headers, *more, *safe_headers(answer.headers, https=https))
        if not any(name == b"x-request-id" for name, _ in headers):  # A replayed answer has its own.
            headers = (*headers, (b"x-request-id", request_id.encode()))
    if traceparent is not None:
        headers = (*headers, (b"traceparent", traceparent.encode()))
    return msgspec.structs.replace(answer, headers=headers)
