"""Declares pages of the console and their forms; each belongs to a workspace."""

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import parse_qsl, urlencode
from uuid import UUID

import msgspec

from sexton_http.answers import Answer, Problem
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import Auth, Operation, operation
from sexton_http.gateway.page_parts import AS_OF, asks_for_parts
from sexton_http.identity.principals import SignedIn
from sexton_http.pages.accept import prefers_pages
from sexton_http.pages.form_actions import MEDIA, SEE_OTHER, TAG, form_operation
from sexton_http.pages.forms import CLIENT_FAULT, sentence
from sexton_http.pages.layout import see
from sexton_http.pages.people import sign_in_page
from sexton_http.pages.side_by_side import side_by_side
from sexton_http.pages.templates.frame import Frame, show
from sexton_storage.records.frames import place_of

MOST_COUNTED: Final = 99
"""Gates that wait are counted up to here."""

SHOWN: Final = b"sexton-shown"
"""The header that says beside it when what the page shows now was begun, in ms."""
OK: Final = 200
TIME_DIGITS: Final = 15
NOW: Final = 10**TIME_DIGITS
NOT_DONE: Final = (400, 402, 403, 404, 409, 413)
"""With these the page that a form is on comes back and says why."""

ConsoleHandler = Callable[[Call[Any, Any], Frame], Awaitable[Answer]]


class Notice(NamedTuple):
    """What a page says above all else: why a form came back."""

    status: int
    sentence: str
    trace: str


def notice_of(problem: Problem, request_id: str) -> Notice:
    return Notice(problem.status, sentence(problem.detail), f"{problem.code}, request {request_id}")


ComesBack = Callable[[Call[Any, Any], Frame, Notice], Awaitable[Answer]]
"""What makes the page that a form is on, with a notice above it."""
Q = TypeVar("Q", bound=msgspec.Struct)


def query_of(call: Call[Any, Any], shape: type[Q]) -> Q:
    """What the address of a page asks for; of a form, which has no query, what the bare address does."""
    return call.query if isinstance(call.query, shape) else shape()


def show_page(
    call: Call[Any, Any],
    frame: Frame,
    template: str,
    notice: Notice | None = None,
    *,
    status: int = OK,
    **values: Any,
) -> Answer:
    """A page as of now. One that comes back with a notice has the status of that."""
    shown = {"now": call.ctx.world.now_ms(), "notice": notice, **values}
    return show(frame, template, status=status if notice is None else notice.status, **shown)


def older_of(call: Call[Any, Any], frame: Frame, path: str, cursor: str | None) -> str | None:
    """Where the list on this page goes on, by the same choice; None where it has ended."""
    return None if cursor is None else f"{frame.address(path)}?{with_cursor(call.head.query, cursor)}"


def with_cursor(query: bytes, cursor: str) -> str:
    """The query of a list's next page: what was chosen stays chosen.

    >>> with_cursor(b"verdict=refused&cursor=one", "two"), with_cursor(b"", "two")
    ('verdict=refused&cursor=two', 'cursor=two')
    """
    chosen = [(name, value) for name, value in parse_qsl(query.decode("latin-1")) if name != "cursor"]
    return urlencode([*chosen, ("cursor", cursor)])


def see_page(call: Call[Any, Any], *path: UUID | str) -> Answer:
    """After a form has done its work: the page of the workspace to look at."""
    return see("/".join(map(str, ("/console", call.id("workspace_id"), *path))))


def console_operation(path: str, here: str, title: str) -> Callable[[ConsoleHandler], Operation]:
    """Declare a page below ``/console/{workspace_id}/``; a stranger gets the page to sign in."""

    def declare(handler: ConsoleHandler) -> Operation:
        @wraps(handler)
        async def look(call: Call[Any, Any]) -> Answer:
            browsers, is_open = call.services.browsers, asks_for_parts(call.head, MEDIA)
            who = await (browsers.find_again(call.head) if is_open else browsers.find(call.head))
            if who is None:
                return sign_in_page(call.services.ways, f"?next={call.head.path}")
            try:
                return await _shown(call, who, here, title, handler)
            except Problem as problem:
                if problem.status not in CLIENT_FAULT or not prefers_pages(call.head):
                    raise
                frame = Frame(problem.row.title, here, who)
                trace = f"{problem.code}, request {call.request_id}"
                return refused_page(frame, sentence(problem.detail), problem.status, problem.code, trace)

        declared = operation(
            "GET", f"/console/{{workspace_id}}/{path}", tag=TAG, auth=Auth.PUBLIC, media=MEDIA
        )
        return declared(look)

    return declare


async def _shown(
    call: Call[Any, Any], who: SignedIn, here: str, title: str, handler: ConsoleHandler
) -> Answer:
    """The whole page; or for one that is open, what people of the same role share of it."""
    place = place_of(call.head.header(AS_OF) or "")
    if place is None:
        return await handler(call, await frame_of(call, who, here, title))

    async def make() -> Answer:
        return await handler(call, (await frame_of(call, who, here, title))._replace(bare=True))

    # Whose workspace it is has not been asked yet: who makes the page asks it, for those who share it.
    rights = (who.tenant.id, who.user.role, who.user.platform_admin)
    return await call.services.page_parts.share(
        (call.head.path, call.head.query, place, *rights),
        make,
        now_ms=call.ctx.world.now_ms(),
        newer_than_ms=time_of(call.head.header(SHOWN)),
    )


def time_of(text: str | None) -> int:
    """A time in ms; what is none counts as now.

    >>> time_of("1700000000000"), time_of("-1") == time_of(None) == time_of("9" * 99) == NOW
    (1700000000000, True)
    """
    return int(text) if text is not None and text.isdecimal() and len(text) <= TIME_DIGITS else NOW


def refused_page(frame: Frame, words: str, status: int, code: str = "", trace: str = "") -> Answer:
    """Tell a person on a page what an answer to a program would say in a document."""
    return show(frame, "refused", status=status, sentence=words, code=code, trace=trace)


async def frame_of(call: Call[Any, Any], who: SignedIn, here: str, title: str) -> Frame:
    """Give what stands around a page. Raises Problem UZ-WORKSPACE-001 for another tenant's workspace."""
    storage, began_ms = call.ctx.world.storage, call.ctx.world.now_ms()
    workspace_id = call.id("workspace_id")
    async with side_by_side() as ask:
        listed = ask(storage.workspaces.list, who.tenant.id)
        waiting = ask(storage.gates.pending, workspace_id, most=MOST_COUNTED)
    mine = listed.answer
    chosen = [workspace for workspace in mine if workspace.id == workspace_id]
    if not chosen:
        raise Problem("UZ-WORKSPACE-001", f"there is no workspace {workspace_id}")
    counts = {"approvals": waiting.answer}
    return Frame(
        title, here, who, chosen[0], mine, counts, calls=call.services.documents.operations, began_ms=began_ms
    )


def console_form(
    path: str,
    here: str,
    title: str,
    comes_back: ComesBack,
    *,
    form: type[msgspec.Struct] | None,
    status: int = SEE_OTHER,
    shows: tuple[int, ...] = (),
) -> Callable[[Callable[[Call[Any, Any]], Awaitable[Answer]]], Operation]:
    """Declare what a form of a page does; when the route refuses it the page comes back and says why.

    ``shows``: statuses by which the form shows its outcome itself, where that is seen only once.
    """

    async def refused(call: Call[Any, Any], problem: Problem) -> Answer:
        if problem.status not in CLIENT_FAULT or problem.code in {"UZ-REQ-005", "UZ-WORKSPACE-001"}:
            raise problem
        notice = notice_of(problem, call.request_id)
        frame = await frame_of(call, call.signed_in, here, title)
        try:
            return await comes_back(call, frame, notice)
        except Problem as gone:
            if gone.status not in CLIENT_FAULT:
                raise
            # What the form was about is not there any more, so its page is not, either.
            return refused_page(frame, notice.sentence, notice.status, problem.code, notice.trace)

    return form_operation(
        f"/console/{{workspace_id}}/{path}",
        refused,
        statuses=(*shows, *NOT_DONE),
        form=form,
        status=status,
    )
