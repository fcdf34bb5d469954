"""The body that one route takes: how long it may be, its coding and type, and what is read out of it."""

from collections.abc import Mapping
from typing import Any, Final

from sexton_actors.zombie.rejections import ENCODED, reason_code
from sexton_http.answers import Problem, RequestHead
from sexton_http.bodies.decoding import BodyDecoder, is_json
from sexton_http.bodies.lenient import decoder_of
from sexton_http.bodies.multipart import FORM_DATA, boundary_of
from sexton_http.bodies.shapes import Nothing
from sexton_http.bodies.weight import SMALL_BODY
from sexton_http.gateway.delivery_notes import turn_away
from sexton_http.gateway.incoming_form import most_of_form, read_form
from sexton_http.gateway.operations import Auth, Operation
from sexton_http.gateway.services import Services
from sexton_http.gateway.ticket import Ticket
from sexton_http.wire.asgi import Receive

CODING_CHARS: Final = 64
"""How much of an unknown coding's name is repeated to its sender."""


def announces_body(head: RequestHead) -> bool:
    """Whether a body is to come, as far as the head says."""
    length = head.headers.get(b"content-length")
    return b"transfer-encoding" in head.headers or (length is not None and length.strip(b"0") != b"")


class RouteBody:
    """What the declaration of a route says of its body, with all that can be prepared before the first."""

    def __init__(self, operation: Operation, services: Services) -> None:
        self._operation = operation
        self._services = services
        # What the declaration would reckon again for each request.
        self.is_read = operation.reads_body
        self._takes_nothing = operation.takes_nothing
        self.is_decoded = operation.has_body or operation.takes_nothing
        """Not so: whatever is sent is the handler's to read, or nobody's."""
        self._decoder: BodyDecoder[Any] = decoder_of(operation.body if operation.has_body else Nothing)

    def most_of(self, head: RequestHead) -> int:
        """Give the length of the largest body that is taken; of a form, with its files."""
        if self.boundary_of(head) is None:
            return self._operation.max_body
        return most_of_form(self._services)

    def boundary_of(self, head: RequestHead) -> bytes | None:
        """Give the boundary of the form that the head announces; None where the route takes no form."""
        return None if self._operation.intake is None else boundary_of(head.header(b"content-type"))

    async def check_coding(self, head: RequestHead, params: Mapping[str, Any]) -> None:
        """Raises Problem UZ-REQ-005: a body comes as it is, so that what is read is what was signed."""
        coding = (head.header(b"content-encoding") or "").strip()
        if coding.lower() in {"", "identity"}:
            return
        detail = f"the body has the Content-Encoding {coding[:CODING_CHARS]!r}; send it as it is, without one"
        problem = Problem("UZ-REQ-005", detail, headers=((b"accept-encoding", b"identity"),))
        if self._operation.auth is Auth.WEBHOOK:
            services = self._services
            problem.facts["reason"] = reason_code(ENCODED)
            services.metrics.webhooks.labels(problem.code).inc()
            if (scope := await services.scopes.zombie(params["zombie_id"])) is not None:
                told = {"code": problem.code, "reason": ENCODED, "detail": detail}
                turn_away(services, scope.workspace_id, params, head, **told)
        raise problem

    async def read_form(self, ticket: Ticket, receive: Receive) -> bytes:
        """Read a form while it comes: the JSON it stands for. Raises Problem, Full and ClientGone."""
        head = ticket.head
        if b"content-encoding" in head.headers:
            await self.check_coding(head, ticket.params)
        boundary = self.boundary_of(head) or b""
        return await read_form(self._operation.intake, self._services, ticket, receive, boundary)

    async def decode(self, head: RequestHead, body: bytes) -> Any:
        """Give what the handler is given of a whole body. Raises Problem UZ-REQ-001 or UZ-REQ-005."""
        if not body and (self._takes_nothing or self._operation.body_optional):
            return self._operation.body()
        content_type = head.headers.get(b"content-type")
        if content_type != b"application/json" and not is_json(head.header(b"content-type")):
            # What came as a form is the JSON it stands for by now.
            if self._operation.intake is None:
                raise Problem("UZ-REQ-005", "the body must be application/json")
            if self.boundary_of(head) is None:
                raise Problem("UZ-REQ-005", f"the body must be application/json or {FORM_DATA}")
        if len(body) <= SMALL_BODY:
            return self._decoder.decode(body)
        return await self._decoder.decode_in_steps(body)
