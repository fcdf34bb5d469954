"""Lets a page do what a route of the interface does: for the same role, by the same handler."""

from typing import Any, Final, Generic, TypeVar

import msgspec

from sexton_http.answers import Problem
from sexton_http.bodies.decoding import QueryDecoder
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, NoQuery, Operation
from sexton_http.identity.principals import SignedIn, check_role, is_enough

FORM_TYPE: Final = "application/x-www-form-urlencoded"
MAX_FORM_BYTES: Final = 16 * 1024

F = TypeVar("F", bound=msgspec.Struct)


class FormDecoder(Generic[F]):
    """Reads what a form sends into the declared body of the route that it stands for."""

    def __init__(self, shape: type[F]) -> None:
        self._fields = QueryDecoder(shape, "the form")

    def decode(self, call: Call[Any, Any]) -> F:
        """Raises Problem UZ-REQ-005, or UZ-REQ-001 with the field as its fact ``parameter``."""
        sent = (call.head.header(b"content-type") or "").partition(";")[0].strip().lower()
        if sent != FORM_TYPE:
            raise Problem("UZ-REQ-005", f"a form is sent as {FORM_TYPE}")
        return self._fields.decode(call.raw)


async def act(
    call: Call[Any, Any],
    who: SignedIn,
    route: Operation,
    *,
    body: msgspec.Struct | None = None,
    query: msgspec.Struct | None = None,
) -> Any:
    """What the route answers; parameters of the path are those of the page, by name.

    Raises Problem as the route would, for the caller's role, too.
    """
    member = check_role(who.member, route.role)
    if route.in_workspace:
        await call.services.scopes.workspace(member, call.id("workspace_id"))
    return await route.handler(
        msgspec.structs.replace(call, principal=member, body=body or NoBody(), query=query or NoQuery())
    )


def may(who: SignedIn, route: Operation) -> bool:
    """Whether the person's role is enough, so that only what can be done is offered."""
    return route.role is None or is_enough(who.user.role, route.role)
