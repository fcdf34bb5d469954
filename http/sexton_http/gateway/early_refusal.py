"""Sends ingress away from its head alone, where its door has neither a place nor room in line."""

from collections.abc import Mapping, Sequence
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
from sexton_http.wire.gatekeeper import Prepared
from sexton_http.wire.http1_exchange import head_bytes

MARK: Final = "00000000-0000-0000-0000-000000000000"
"""Stands in the prepared document where the id of each request goes, and is as long."""
OWN: Final = frozenset((b"x-request-id", b"traceparent"))
"""Headers of a request that its answer repeats."""
WAITS: Final = 16
"""Prepared answers of a status, which differ in how long they bid to wait."""
COUNTED: Final = slice(15, 18)
"""The digits of an id in which those of one draw differ. The other random ones of version 7 stay as drawn."""
COUNT_MAX: Final = 0xFFF


class EarlyRefusal:
    """Says no to those who would only wait to hear it: no ticket, no line in the log, no body read.

    Nothing is promised to those who are let past: their door may still refuse them.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._documents: dict[int, tuple[bytes, bytes]] = {}
        """To a status, what stands before and after the id."""
        self._prepared: dict[int, Sequence[tuple[bytes, ...]]] = {}
        """To a status, whole answers but for their ids: the status line, then the parts around the ids."""
        self._ids = (b"", b"", COUNT_MAX)
        """What stands before and after the counted digits, and the latest count."""
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

    def answer_whole(self, mounted: Mounted, head: RequestHead, params: Mapping[str, Any]) -> Prepared | None:
        """The same in bytes, for HTTP/1.1; None also where the answer repeats something of the request."""
        door = mounted.door
        if door is None or not OWN.isdisjoint(head.headers) or not door.refuses(whose(head, params)):
            return None
        mounted.count_refused()
        answers = self._prepared.get(mounted.too_busy) or self._prepare(mounted.too_busy)
        request_id, count = self._new_id()
        line, before, between, after = answers[count % WAITS]
        return Prepared(line, b"%b%b%b%b%b" % (before, request_id, between, request_id, after))

    def _new_id(self) -> tuple[bytes, int]:
        """An id and its count. It is drawn once for thousands, as drawing takes longer than all else here."""
        before, after, count = self._ids
        if count == COUNT_MAX:
            drawn = str(self._services.ctx.world.new_id()).encode()
            before, after, count = drawn[: COUNTED.start], drawn[COUNTED.stop :], 0
        count += 1
        self._ids = before, after, count
        return b"%b%03x%b" % (before, count, after), count

    def _prepare(self, status: int) -> Sequence[tuple[bytes, ...]]:
        before_id, after_id = self._document(status)
        body = b"%b%b%b" % (before_id, MARK.encode(), after_id)
        answers: list[tuple[bytes, ...]] = []
        for turn in range(WAITS):
            headers: Headers = (
                *self._headers,
                (b"retry-after", b"%d" % jittered_s(BUSY_WAIT_S, turn / WAITS)),
                (b"content-length", b"%d" % len(body)),
                (b"x-request-id", MARK.encode()),
            )
            whole = head_bytes(status, (), headers) + body
            line, _, rest = whole.partition(b"\r\n")
            answers.append((line + b"\r\n", *rest.split(MARK.encode())))
        self._prepared[status] = answers
        return self._prepared[status]

    def _document(self, status: int) -> tuple[bytes, bytes]:
        if status not in self._documents:
            problem = Problem("UZ-API-001", TOO_BUSY, status=status)
            body = problem.answer(self._services.ctx.settings.base_url, MARK).body
            before, _, after = body.partition(MARK.encode())
            self._documents[status] = before, after
        return self._documents[status]
