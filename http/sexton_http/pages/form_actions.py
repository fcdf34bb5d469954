"""Declares pages and their forms, and lets them do what a route of the interface does.

They do it for the same role, and by the same handler.
"""

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, Final, Generic, TypeVar

import msgspec

from sexton_actors.refusal import Refusal
from sexton_http.answers import Answer, Problem
from sexton_http.bodies.decoding import query_decoder_of
from sexton_http.gateway.audit_entries import entry_of
from sexton_http.gateway.call import Call
from sexton_http.gateway.faults import refused
from sexton_http.gateway.operations import Auth, Handler, NoBody, NoQuery, Operation, operation
from sexton_http.identity.principals import SignedIn, check_platform, check_role, is_enough
from sexton_http.pages.people import sign_in_page
from sexton_storage.attribution import attributed

TAG: Final = "Browser"
MEDIA: Final = "text/html"
FORM_TYPE: Final = "application/x-www-form-urlencoded"
MAX_FORM_BYTES: Final = 16 * 1024
SEE_OTHER: Final = 303
FORM_CODES: Final = ("UZ-REQ-001", "UZ-REQ-002", "UZ-REQ-005")
"""What every form that has fields may be refused with."""

F = TypeVar("F", bound=msgspec.Struct)
PageHandler = Callable[[Call[Any, Any], SignedIn], Awaitable[Answer]]
Refused = Callable[[Call[Any, Any], Problem], Awaitable[Answer]]
"""The page that a form is on, with what went wrong; it may raise the Problem instead."""


def page_operation(path: str, *, extra_statuses: tuple[int, ...] = ()) -> Callable[[PageHandler], Operation]:
    """Declare a page for people; a browser in which nobody is signed in gets the page to sign in first."""

    def declare(handler: PageHandler) -> Operation:
        @wraps(handler)
        async def show(call: Call[Any, Any]) -> Answer:
            who = await call.services.browsers.find(call.head)
            if who is None:
                return sign_in_page(call.services.ways, f"?next={path}")
            return await handler(call, who)

        declared = operation(
            "GET", path, tag=TAG, auth=Auth.PUBLIC, media=MEDIA, extra_statuses=extra_statuses
        )
        return declared(show)

    return declare


def form_operation(
    path: str,
    comes_back: Refused,
    *,
    statuses: tuple[int, ...],
    form: type[msgspec.Struct] | None = None,
    status: int = SEE_OTHER,
) -> Callable[[Handler], Operation]:
    """Declare what a form does. A Problem of it ends in ``comes_back``, by one of these ``statuses``.

    ``form`` is what it sends; None for a button that sends no fields.
    """

    def declare(handler: Handler) -> Operation:
        @wraps(handler)
        async def submit(call: Call[Any, Any]) -> Any:
            try:
                if "workspace_id" in call.params:
                    workspace_id = call.id("workspace_id")
                    await call.services.scopes.workspace(call.signed_in.member, workspace_id)
                return await handler(call)
            except Problem as problem:
                return await comes_back(call, problem)

        declared = operation(
            "POST",
            path,
            tag=TAG,
            auth=Auth.BROWSER,
            media=MEDIA,
            status=status,
            extra_statuses=statuses,
            codes=() if form is None else FORM_CODES,
            max_body=None if form is None else MAX_FORM_BYTES,
            form=form,
        )
        return declared(submit)

    return declare


class FormDecoder(Generic[F]):
    """Reads what a form sends into the declared body of the route that it stands for."""

    def __init__(self, shape: type[F]) -> None:
        self._fields = query_decoder_of(shape, "the form")

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
    if route.auth is Auth.PLATFORM:
        check_platform(member)
    if route.in_workspace:
        await call.services.scopes.workspace(member, call.id("workspace_id"))
    asked = msgspec.structs.replace(call, principal=member, body=body or NoBody(), query=query or NoQuery())
    with attributed(entry_of(asked)):
        answer = await route.handler(asked)
    if isinstance(answer, Refusal):
        raise refused(answer)
    return answer


def may(who: SignedIn, route: Operation) -> bool:
    """Whether the person's role is enough, so that only what can be done is offered."""
    if route.auth is Auth.PLATFORM:
        return who.user.platform_admin
    return route.role is None or is_enough(who.user.role, route.role)
