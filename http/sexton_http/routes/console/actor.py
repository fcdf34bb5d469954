"""The page of one actor: its mail, what it handles, why it crashed, and a fresh start."""

from typing import Annotated, Any, Final, Literal
from urllib.parse import quote, urlencode

import msgspec

from sexton_http.answers import Answer
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
from sexton_http.routes.console.tree import HERE, REFUSED, rows_of_actor
from sexton_http.routes.shared.actor_looks import Key
from sexton_http.routes.shared.actor_shapes import ActorView, MessageList
from sexton_http.routes.shared.told_acts import act_told

TITLE: Final = "Actor"
_CHANGES: Final = {"restart": restart_actor, "stop": stop_actor}


class ActorPageQuery(ActorQuery):
    """Where the actor is, and whether its messages are recorded: that begins with the button."""

    record: bool = False
    contents: bool = False


class ActorWish(Body):
    """What the buttons of an actor send."""

    verb: Literal["restart", "stop"]
    key: Key = ""
    worker: Annotated[str, msgspec.Meta(max_length=4, pattern=r"^[0-9]*\Z")] = ""


_WISH: Final = FormDecoder(ActorWish)


@console_operation(HERE + "/{kind}", HERE, TITLE)
async def show_actor(call: Call[NoBody, ActorPageQuery], frame: Frame) -> Answer:
    """Show one actor to platform admins; its messages are recorded once somebody asks for them."""
    return await _page(call, frame, call.query)


async def _again(call: Call[Any, Any], frame: Frame, notice: Notice) -> Answer:
    del call  # The actor may be gone, so its page cannot come back.
    return refused_page(frame, notice.sentence, notice.status, trace=notice.trace)


@console_form(HERE + "/{kind}", HERE, TITLE, _again, form=ActorWish)
async def submit_actor(call: Call[NoBody, NoQuery]) -> Answer:
    """Have an actor begin again, or end it."""
    wish = _WISH.decode(call)
    worker = int(wish.worker) if wish.worker else None
    await act_told(call, call.signed_in, _CHANGES[wish.verb], body=ActorKey(wish.key, worker))
    home, kind = f"/console/{call.id('workspace_id')}/{HERE}", call.text("kind")
    if wish.verb == "stop":
        return see(f"{home}?{urlencode({'kind': kind})}")
    return see(f"{home}/{quote(kind, safe='')}?{_where(wish.key, wish.worker)}")


def _where(key: str, worker: str) -> str:
    """The query of an actor's page.

    >>> _where("a b", ""), _where("", "1")
    ('key=a+b', 'key=&worker=1')
    """
    return urlencode({"key": key, "worker": worker} if worker else {"key": key})


async def _page(call: Call[Any, Any], frame: Frame, query: ActorPageQuery) -> Answer:
    who = frame.signed_in
    if not may(who, view_actor):
        return refused_page(frame, REFUSED, status=403)
    where = ActorQuery(query.key, query.worker)
    seen: ActorView = await act(call, who, view_actor, query=where)
    messages: MessageList | None = None
    if query.record:
        wanted = MessageQuery(query.key, seen.worker, contents=query.contents)
        messages = await act(call, who, list_actor_messages, query=wanted)
    kind, key = seen.actor.kind, seen.actor.key
    address = frame.to(HERE, kind)
    worker = "" if seen.worker is None else str(seen.worker)
    return show(
        frame._replace(title=f"{kind} {key}".strip()),
        "actor",
        seen=seen,
        rows=rows_of_actor(seen.actor),
        messages=messages,
        contents=query.contents,
        address=address,
        here=f"{address}?{_where(key, worker)}",
        told={"key": key, "worker": worker},
    )
