"""The page of one actor: its mail, what it handles, why it crashed, and a fresh start."""

from typing import Annotated, Any, Final, Literal
from urllib.parse import quote, urlencode
from uuid import UUID

import msgspec

from sexton_http.answers import Answer, Problem
from sexton_http.bodies.shapes import Body
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, NoQuery
from sexton_http.pages.console import Notice, console_form, console_operation, refused_page
from sexton_http.pages.form_actions import FormDecoder, act, may
from sexton_http.pages.layout import see
from sexton_http.pages.templates.frame import Frame, show
from sexton_http.routes.actors import (
    ActorKey,
    ActorQuery,
    MessageQuery,
    list_actor_messages,
    restart_actor,
    stop_actor,
    view_actor,
)
from sexton_http.routes.console.tree import HERE, REFUSED, SILENT, rows_of_actor, silent_page
from sexton_http.routes.shared.actor_looks import Key
from sexton_http.routes.shared.actor_shapes import ActorView, MessageList
from sexton_http.routes.shared.told_acts import act_told

TITLE: Final = "Actor"
NOT_KNOWN: Final = 409
"""The page says so: whether a silent node has done it is not known."""
NODE_OR_NONE: Final = r"^([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})?\Z"
_CHANGES: Final = {"restart": restart_actor, "stop": stop_actor}


class ActorPageQuery(ActorQuery):
    """Where the actor is, and whether its messages are recorded: that begins with the button."""

    record: bool = False
    contents: bool = False


class ActorWish(Body):
    """What the buttons of an actor send."""

    verb: Literal["restart", "stop"]
    key: Key = ""
    node: Annotated[str, msgspec.Meta(max_length=36, pattern=NODE_OR_NONE)] = ""
    worker: Annotated[str, msgspec.Meta(max_length=4, pattern=r"^[0-9]*\Z")] = ""


_WISH: Final = FormDecoder(ActorWish)


@console_operation(HERE + "/{kind}", HERE, TITLE)
async def show_actor(call: Call[NoBody, ActorPageQuery], frame: Frame) -> Answer:
    """Show one actor to platform admins; its messages are recorded once somebody asks for them."""
    try:
        return await _page(call, frame, call.query)
    except Problem as problem:
        if problem.row.code != SILENT:
            raise
        return silent_page(call, frame, problem)


async def _again(call: Call[Any, Any], frame: Frame, notice: Notice) -> Answer:
    del call  # The actor may be gone, so its page cannot come back.
    return refused_page(frame, notice.sentence, notice.status, trace=notice.trace)


@console_form(HERE + "/{kind}", HERE, TITLE, _again, form=ActorWish)
async def submit_actor(call: Call[NoBody, NoQuery]) -> Answer:
    """Have an actor begin again, or end it."""
    wish = _WISH.decode(call)
    worker = int(wish.worker) if wish.worker else None
    node = UUID(wish.node) if wish.node else None
    try:
        await act_told(call, call.signed_in, _CHANGES[wish.verb], body=ActorKey(wish.key, node, worker))
    except Problem as problem:
        if problem.row.code != SILENT:
            raise
        raise Problem(SILENT, problem.detail, status=NOT_KNOWN) from None
    home, kind = f"/console/{call.id('workspace_id')}/{HERE}", call.text("kind")
    if wish.verb == "stop":
        return see(f"{home}?{_given(kind=kind, node=wish.node)}")
    return see(f"{home}/{quote(kind, safe='')}?{_where(wish.key, wish.node, wish.worker)}")


def _where(key: str, node: str, worker: str) -> str:
    """The query of an actor's page.

    >>> _where("a b", "", ""), _where("", "", "1")
    ('key=a+b', 'key=&worker=1')
    """
    rest = _given(node=node, worker=worker)
    return urlencode({"key": key}) + (f"&{rest}" if rest else "")


def _given(**fields: str) -> str:
    return urlencode({name: value for name, value in fields.items() if value})


async def _page(call: Call[Any, Any], frame: Frame, query: ActorPageQuery) -> Answer:
    who = frame.signed_in
    if not may(who, view_actor):
        return refused_page(frame, REFUSED, status=403)
    where = ActorQuery(query.key, query.node, query.worker)
    seen: ActorView = await act(call, who, view_actor, query=where)
    messages: MessageList | None = None
    if query.record:
        wanted = MessageQuery(query.key, query.node, seen.worker, contents=query.contents)
        messages = await act(call, who, list_actor_messages, query=wanted)
    kind, key = seen.actor.kind, seen.actor.key
    address = frame.to(HERE, kind)
    node = "" if query.node is None else str(query.node)
    worker = "" if seen.worker is None else str(seen.worker)
    return show(
        frame._replace(title=f"{kind} {key}".strip()),
        "actor",
        seen=seen,
        rows=rows_of_actor(seen.actor),
        messages=messages,
        contents=query.contents,
        address=address,
        here=f"{address}?{_where(key, node, worker)}",
        told={"key": key, "node": node, "worker": worker},
    )
