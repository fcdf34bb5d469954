"""The actors of a server, down to one: what waits, what runs, what crashed, and a fresh start."""

from typing import Annotated, Any, Final, TypeVar
from uuid import UUID

import msgspec

from sexton_http.answers import Problem
from sexton_http.bodies.shapes import Body, Query
from sexton_http.gateway.audit_entries import tell_first
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import Auth, NoBody, NoQuery, operation
from sexton_http.routes.shared.actor_asks import Place, Told, ask_actors, strange
from sexton_http.routes.shared.actor_looks import (
    Key,
    LookAtActor,
    LookAtMessages,
    LookAtTree,
    Question,
    RestartActor,
    StopActor,
)
from sexton_http.routes.shared.actor_shapes import ActorDone, ActorTree, ActorView, MessageList

TAG: Final = "Fleet"
T = TypeVar("T")
Worker = Annotated[int, msgspec.Meta(ge=0, le=1023)]
NOT_THERE: Final = ("UZ-ACTOR-001", "UZ-ACTOR-003")
ACTOR: Final = "/v1/fleet/actors/{kind}"


class TreeQuery(Query):
    node: UUID | None = None
    """The server to look at; without it, the one that answers."""
    worker: Worker | None = None
    """The worker to look at; without it, the one that answers."""
    kind: Key | None = None
    """Lists the actors of this kind too, those with the most mail first."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 50


class ActorQuery(Query):
    key: Key = ""
    """The actor's key; empty for one that exists once."""
    node: UUID | None = None
    """The server to look at; without it, the one that answers."""
    worker: Worker | None = None
    """The worker to look at; without it, the one that answers, and then the others."""


class MessageQuery(ActorQuery):
    contents: bool = False
    """Show what is in the messages, too; what may be a secret is left out."""


class ActorKey(Body):
    key: Key = ""
    """The actor's key; empty for one that exists once."""
    node: UUID | None = None
    """The server to look at; without it, the one that answers."""
    worker: Worker | None = None
    """The worker to look at; without it, the one that answers, and then the others."""


@operation("GET", "/v1/fleet/tree", tag=TAG, auth=Auth.PLATFORM, codes=NOT_THERE)
async def view_tree(call: Call[NoBody, TreeQuery]) -> ActorTree:
    """Show the supervision tree with what each kind of actor has done, the latest crashes and dead letters.

    It is that of one process: each worker of a server has its own, and so has each node. It names all nodes.
    """
    query = call.query
    told = await ask_actors(call.ctx, LookAtTree(query.kind, query.limit), Place(query.node, query.worker))
    found = _read(told, ActorTree)
    if found is None:
        raise _missing(f"there is no kind of actor {query.kind!r}")
    nodes = await call.ctx.nodes.seen()
    found.nodes = sorted(nodes, key=lambda one: one.node != found.node)
    found.workers = told.workers
    return found


@operation("GET", ACTOR, tag=TAG, auth=Auth.PLATFORM, codes=NOT_THERE)
async def view_actor(call: Call[NoBody, ActorQuery]) -> ActorView:
    """Show one actor: its mail, what it works on, timers, crashes with their tracebacks, dead letters.

    Without `worker` it is looked for at all workers of the node; the answer says which has it.
    """
    query = call.query
    return await _found(call, query.key, Place(query.node, query.worker))


@operation("GET", f"{ACTOR}/messages", tag=TAG, auth=Auth.PLATFORM, codes=NOT_THERE)
async def list_actor_messages(call: Call[NoBody, MessageQuery]) -> MessageList:
    """Show the last 50 messages that an actor has handled, newest first.

    The first look begins the recording, so it shows nothing yet; it ends a minute after the last look.
    """
    query, kind = call.query, call.text("kind")
    question = LookAtMessages(kind, query.key, query.contents)
    found = await _ask(call, question, Place(query.node, query.worker), MessageList)
    if found is None:
        raise _no_actor(kind, query.key)
    return found


@operation("POST", f"{ACTOR}:restart", tag=TAG, auth=Auth.PLATFORM, codes=NOT_THERE)
async def restart_actor(call: Call[ActorKey, NoQuery]) -> ActorDone:
    """Have an actor begin again from what the database says, after the message that it works on.

    The mail that waits is kept. One that does not come to the end of its message is cut off within seconds,
    and gets that message again. Who waits for an answer that it has put off is told to ask again.
    """
    kind, key = call.text("kind"), call.body.key
    found = await _found(call, key, Place(call.body.node, call.body.worker))
    await tell_first(call, f"{kind}/{key}")
    return await _do(call, RestartActor(kind, key), found)


@operation("POST", f"{ACTOR}:stop", tag=TAG, auth=Auth.PLATFORM, codes=(*NOT_THERE, "UZ-ACTOR-002"))
async def stop_actor(call: Call[ActorKey, NoQuery]) -> ActorDone:
    """End an actor after the message that it works on; the mail that waits is refused, and its askers told.

    Its next message wakes a new one, which begins from what the database says. One that exists once can only
    be restarted.
    """
    kind, key = call.text("kind"), call.body.key
    found = await _found(call, key, Place(call.body.node, call.body.worker))
    if not found.actor.can_stop:
        raise Problem("UZ-ACTOR-002", f"there is one {kind}, and the server needs it: restart it instead")
    await tell_first(call, f"{kind}/{key}")
    return await _do(call, StopActor(kind, key), found)


async def _do(call: Call[Any, Any], question: RestartActor | StopActor, found: ActorView) -> ActorDone:
    done = await _ask(call, question, Place(found.node, found.worker), ActorDone)
    if done is None:
        raise _missing(f"{question.kind}/{question.key} is not awake any more, or on its way down already")
    return done


async def _found(call: Call[Any, Any], key: str, place: Place) -> ActorView:
    kind = call.text("kind")
    found = await _ask(call, LookAtActor(kind, key), place, ActorView)
    if found is None:
        raise _no_actor(kind, key)
    return found


async def _ask(call: Call[Any, Any], question: Question, place: Place, answered: type[T]) -> T | None:
    return _read(await ask_actors(call.ctx, question, place), answered)


def _read(told: Told, answered: type[T]) -> T | None:
    """Raises Problem where nobody could look, or what was said cannot be read."""
    if told.missing:
        raise _missing(told.missing)
    try:
        return msgspec.msgpack.decode(told.found, type=answered | None)
    except msgspec.MsgspecError:
        raise strange() from None


def _no_actor(kind: str, key: str) -> Problem:
    return _missing(f"there is no actor {kind}/{key} awake there")


def _missing(detail: str) -> Problem:
    return Problem("UZ-ACTOR-001", detail)
