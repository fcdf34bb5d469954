"""A form with files, as the route that takes it reads it: part by part, while it comes."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from sexton_http.answers import Problem, RequestHead
from sexton_http.bodies.multipart import Form
from sexton_http.bodies.numbers import read_number
from sexton_http.gateway.services import Services
from sexton_http.gateway.ticket import Ticket
from sexton_http.identity.principals import Member
from sexton_http.wire.asgi import Receive
from sexton_storage.records.blobs import PART_BYTES

FIELDS_BYTES: Final = 1024 * 1024
"""What all that is no file may take: fields, heads of parts, and what is between them."""
MEMORY_BYTES: Final = 3 * PART_BYTES
"""What one form takes of the memory for bodies while it comes, however large its files are."""


MAX_LENGTH: Final = 2**62


class ClientGone(Exception):
    """The sender has left in the middle of the form."""


class FormBytes:
    """The body of a request as it comes."""

    def __init__(self, receive: Receive, declared: int | None, most: int) -> None:
        """``declared`` is its Content-Length, if it has one; ``most`` is the most that is taken."""
        self._receive = receive
        self._most = most
        self._is_whole = False
        self.left = most if declared is None else min(declared, most)
        """How many bytes may still come."""

    async def more(self) -> bytes:
        """Give the next bytes, and none at the end. Raises ClientGone, and Problem UZ-REQ-002."""
        while not self._is_whole:
            message = await self._receive()
            if message["type"] != "http.request":
                raise ClientGone
            self._is_whole = not message["more_body"]
            body: bytes = message["body"]
            self.left -= len(body)
            if self.left < 0:
                raise Problem("UZ-REQ-002", f"the form is over {self._most} bytes")
            if body:
                return body
        return b""


class IncomingForm(NamedTuple):
    """A form whose sender was let in."""

    services: Services
    member: Member
    params: Mapping[str, Any]
    parts: Form
    body: FormBytes


@dataclass(frozen=True, eq=False, slots=True)
class Intake:
    """How a route takes a form in place of its JSON."""

    read: Callable[[IncomingForm], Awaitable[bytes]]
    """Gives the JSON that the form stands for, which then goes the way of every body. Raises Problem."""
    max_parts: int
    schema: Mapping[str, Any]
    """For OpenAPI."""


def most_of_form(services: Services) -> int:
    """Give the length of the longest form: files as large together as one upload, and its fields."""
    return services.ctx.world.files.file_bytes + FIELDS_BYTES


async def read_form(
    intake: Intake | None, services: Services, ticket: Ticket, receive: Receive, boundary: bytes
) -> bytes:
    """Read a form while it comes, and give the JSON that it stands for.

    No place is held meanwhile: however long it takes, nobody else waits for it. Raises Problem, Full and
    ClientGone.
    """
    if intake is None or not isinstance(ticket.principal, Member):
        raise TypeError("this route is not declared for forms of members")
    body = FormBytes(receive, _declared(ticket.head), most_of_form(services))
    parts = Form(boundary, body.more, max_parts=intake.max_parts)
    ticket.keep(MEMORY_BYTES)
    ticket.pause()
    return await intake.read(IncomingForm(services, ticket.principal, ticket.params, parts, body))


def _declared(head: RequestHead) -> int | None:
    return read_number(head.headers.get(b"content-length", b"").decode("latin-1"), MAX_LENGTH)
