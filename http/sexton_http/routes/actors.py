"""The actors of a server, down to one: what waits, what runs, what crashed, and a fresh start."""

from typing import Annotated, Any, Final, TypeVar

import msgspec

from sexton_http.answers import Problem
from sexton_http.bodies.shapes import Body, Query
from sexton_http.gateway.audit_entries import tell_first
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import Auth, NoBody, NoQuery, operation
from sexton_http.routes.shared.actor_looks import (
    Key,
    LookAtActor,
    LookAtMessages,
    LookAtTree,
    Question,
    RestartActor,
    StopActor,
    answer_question,
)
from sexton_http.routes.shared.actor_shapes import ActorDone, ActorTree, ActorView, MessageList

TAG: Final = "Fleet"
NOTHING: Final = msgspec.msgpack.encode(None)
T = TypeVar("T")
Worker = Annotated[int, msgspec.Meta(ge=0, le=1023)]
ACTOR: Final = "/v1/fleet/actors/{kind}"


class TreeQuery(Query):
    worker: Worker | None = None
    """The worker to look at; without it, the one that answers."""
    kind: Key | None = None
    """Lists the actors of this kind too, those with the most mail first."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 50


class ActorQuery(Query):
    key: Key = ""
    """The actor's key; empty for one that exists once."""
    worker: Worker | None = None
    """Where to look; without it, at the worker that answers, and then at the others."""


class MessageQuery(ActorQuery):
    contents: bool = False
    """Show what is in the messages, too; what may be a secret is left out."""


class ActorKey(Body):
    key: Key = ""
    """The actor's key; empty for one that exists once."""
    worker: Worker | None = None
    """Where to look; without it, at the worker that answers, and then at the others."""


@operation("GET", "/v1/fleet/tree", tag=TAG, auth=Auth.PLATFORM, codes=("UZ-ACTOR-001",))
async def view_tree(call: Call[NoBody, TreeQuery]) -> ActorTree:
    """Show the supervision tree with what each kind of actor has done, the latest crashes and dead letters.

    It is that of one process: each worker of a server has its own, and so has each node.
    """
    query = call.query
    found = await _ask(call, LookAtTree(query.kind, query.limit), query.worker, ActorTree, own_only=True)
    if found is None:
        raise _missing(f"there is no kind of actor {query.kind!r}")
    crew = call.ctx.questions
    found.workers = [] if crew is None else crew.up()
    return found


@operation("GET", ACTOR, tag=TAG, auth=Auth.PLATFORM, codes=("UZ-ACTOR-001",))
async def view_actor(call: Call[NoBody, ActorQuery]) -> ActorView:
    """Show one actor: its mail, what it works on, timers, crashes with their tracebacks, dead letters.

    Without `worker` it is looked for at all workers of this server; the answer says which has it.
    """
    return await _found(call, call.query.key, call.query.worker)


@operation("GET", f"{ACTOR}/messages", tag=TAG, auth=Auth.PLATFORM, codes=("UZ-ACTOR-001",))
async def list_actor_messages(call: Call[NoBody, MessageQuery]) -> MessageList:
    """Show the last 50 messages that an actor has handled, newest first.

    The first look begins the recording, so it shows nothing yet; it ends a minute after the last look.
    """
    query, kind = call.query, call.text("kind")
    question = LookAtMessages(kind, query.key, query.contents)
    found = await _ask(call, question, query.worker, MessageList)
    if found is None:
        raise _no_actor(kind, query.key)
    return found


@operation("POST", f"{ACTOR}:restart", tag=TAG, auth=Auth.PLATFORM, codes=("UZ-ACTOR-001",))
async def restart_actor(call: Call[ActorKey, NoQuery]) -> ActorDone:
    """Have an actor begin again from what the database says, after the message that it works on.

    The mail that waits is kept. One that does not come to the end of its message is cut off within seconds,
    and gets that message again. Who waits for an answer that it has put off is told to ask again.
    """
    kind, key = call.text("kind"), call.body.key
    found = await _found(call, key, call.body.worker)
    await tell_first(call, f"{kind}/{key}")
    return await _do(call, RestartActor(kind, key), found)


@operation("POST", f"{ACTOR}:stop", tag=TAG, auth=Auth.PLATFORM, codes=("UZ-ACTOR-001", "UZ-ACTOR-002"))
async def stop_actor(call: Call[ActorKey, NoQuery]) -> ActorDone:
    """End an actor after the message that it works on; the mail that waits is refused, and its askers told.

    Its next message wakes a new one, which begins from what the database says. One that exists once can only
    be restarted.
    """
    kind, key = call.text("kind"), call.body.key
    found = await _found(call, key, call.body.worker)
    if not found.actor.can_stop:
        raise Problem("UZ-ACTOR-002", f"there is one {kind}, and the server needs it: restart it instead")
    await tell_first(call, f"{kind}/{key}")
    return await _do(call, StopActor(kind, key), found)


async def _do(call: Call[Any, Any], question: RestartActor | StopActor, found: ActorView) -> ActorDone:
    done = await _ask(call, question, found.worker, ActorDone)
    if done is None:
        raise _missing(f"{question.kind}/{question.key} is not awake any more, or on its way down already")
    return done


async def _found(call: Call[Any, Any], key: str, worker: int | None) -> ActorView:
    kind = call.text("kind")
    found = await _ask(call, LookAtActor(kind, key), worker, ActorView)
    if found is None:
        raise _no_actor(kind, key)
    return found


async def _ask(
    call: Call[Any, Any], question: Question, worker: int | None, answered: type[T], *, own_only: bool = False
) -> T | None:
    """The answer of the worker that is named, or of the first that has one. Raises Problem UZ-ACTOR-001."""
    body, crew = msgspec.msgpack.encode(question), call.ctx.questions
    if crew is None:
        if worker is not None:
            raise _missing("this server has one process, and no workers")
        told: bytes | None = await answer_question(call.ctx.system, None, body)
        return None if told is None else msgspec.msgpack.decode(told, type=answered | None)
    first = crew.worker if worker is None else worker
    others = [] if own_only or worker is not None else [slot for slot in crew.up() if slot != first]
    for slot in (first, *others):
        told = await crew.ask(slot, body)
        if told is None and worker is not None:
            raise _missing(f"worker {worker} does not serve, or does not answer")
        if told not in {None, NOTHING}:
            return msgspec.msgpack.decode(told or b"", type=answered)
    return None


def _no_actor(kind: str, key: str) -> Problem:
    return _missing(f"there is no actor {kind}/{key} awake at this server")


def _missing(detail: str) -> Problem:
    return Problem("UZ-ACTOR-001", detail)
