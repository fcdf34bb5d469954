"""Sends ingress away from its head alone, where its door has neither a place nor room in line."""

from collections.abc import Mapping
from typing import Any, Final

from sexton_http.answers import PROBLEM_TYPE, Answer, Headers, Problem, RequestHead
from sexton_http.gateway.admission import TOO_BUSY
from sexton_http.gateway.faults import BUSY_WAIT_S
from sexton_http.gateway.pipeline import Mounted
from sexton_http.gateway.safe_headers import safe_headers
from sexton_http.gateway.services import Services
from sexton_http.gateway.ticket import whose
from sexton_http.gateway.tracing import request_id_of, traceparent_of
from sexton_http.retry_after import jittered_s

MARK: Final = "the-request-id"
"""Stands in the prepared document where the id of each request goes."""


class EarlyRefusal:
    """Says no to those who would only wait to hear it: no ticket, no line in the log, no body read.

    Nothing is promised to those who are let past: their door may still refuse them.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._documents: dict[int, tuple[bytes, bytes]] = {}
        """To a status, what stands before and after the id."""
        self._headers: Headers = (PROBLEM_TYPE, *safe_headers((), https=services.https))

    def answer(self, mounted: Mounted, head: RequestHead, params: Mapping[str, Any]) -> Answer | None:
        """What to send at once; None: it may come in, or stand in line."""
        door = mounted.door
        if door is None or not door.refuses(whose(head, params)):
            return None
        mounted.count_refused()
        before, after = self._document(mounted.too_busy)
        request_id = request_id_of(head, self._services).encode()
        headers: Headers = (
            *self._headers,
            (b"retry-after", b"%d" % jittered_s(BUSY_WAIT_S)),
            (b"x-request-id", request_id),
        )
        traceparent = traceparent_of(head)
        if traceparent is not None:
            headers = (*headers, (b"traceparent", traceparent.encode()))
        return Answer(mounted.too_busy, headers, b"%b%b%b" % (before, request_id, after))

    def _document(self, status: int) -> tuple[bytes, bytes]:
        if status not in self._documents:
            problem = Problem("UZ-API-001", TOO_BUSY, status=status)
            body = problem.answer(self._services.ctx.settings.base_url, MARK).body
            before, _, after = body.partition(MARK.encode())
            self._documents[status] = before, after
        return self._documents[status]
