"""Puts a question about actors to where they are: this process, another worker, or another node."""

from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from sexton_engine import ActorSystem
from sexton_http.answers import Problem
from sexton_http.identity.context import VERSION, HttpContext, Questions
from sexton_http.routes.shared.actor_looks import (
    Here,
    LookAtActor,
    LookAtMessages,
    LookAtTree,
    Question,
    RestartActor,
    StopActor,
    answer_question,
)
from sexton_http.routes.shared.actor_shapes import ActorDone, ActorTree, ActorView, MessageList

LOOK_S: Final = 2.0
"""How long another node may take to show something."""
ACT_S: Final = 10.0
"""How long it may take to restart or stop an actor, which may have to be cut off."""
FIT_BYTES: Final = 255 * 1024
"""An answer that another node asked for is cut to this."""
NOTHING: Final = msgspec.msgpack.encode(None)
NOBODY: Final = msgspec.Raw(NOTHING)
Shown = ActorTree | ActorView | MessageList | ActorDone
SHOWN: Final[dict[type[Question], type[Shown]]] = {
    LookAtTree: ActorTree,
    LookAtActor: ActorView,
    LookAtMessages: MessageList,
    RestartActor: ActorDone,
    StopActor: ActorDone,
}
LISTS: Final = ("actors", "crashes", "dead_letters", "items")
"""What may be shown in part, the later ones left out."""


class Wanted(msgspec.Struct, frozen=True):
    """What one node asks another."""

    question: Question
    worker: int | None


class Told(msgspec.Struct, frozen=True):
    found: msgspec.Raw
    """The shape that belongs to the question; null: there is no such actor or kind."""
    workers: list[int]
    """Those that serve at the node."""
    missing: str = ""
    """Why nobody could look."""


class Place(NamedTuple):
    """Where to ask; None stands for this node, and for whichever worker has it."""

    node: UUID | None = None
    worker: int | None = None


async def ask_actors(ctx: HttpContext, question: Question, place: Place) -> Told:
    """What is said at that place.

    Raises Problem: UZ-ACTOR-001 where nobody is asked, UZ-ACTOR-003 where a node does not answer.
    """
    wanted, node = Wanted(question, place.worker), place.node
    if node is None or node == ctx.nodes.node:
        return await _told(ctx.system, ctx.questions, Here(ctx.nodes.node, VERSION, None), wanted)
    within_s = ACT_S if isinstance(question, RestartActor | StopActor) else LOOK_S
    body = await ctx.nodes.ask(node, msgspec.msgpack.encode(wanted), within_s)
    try:
        return msgspec.msgpack.decode(body, type=Told)
    except msgspec.MsgspecError:
        raise strange() from None


def strange() -> Problem:
    """The problem of an answer that cannot be read."""
    return Problem("UZ-ACTOR-003", "the node is of another release: ask at its own address")


async def answer_node(system: ActorSystem, crew: Questions | None, here: Here, body: bytes) -> bytes:
    """What this node says to another one's question. Raises MsgspecError for what is none."""
    wanted = msgspec.msgpack.decode(body, type=Wanted)
    told = await _told(system, crew, here, wanted)
    if len(memoryview(told.found)) > FIT_BYTES:
        shape = msgspec.msgpack.decode(told.found, type=SHOWN[type(wanted.question)])
        told = msgspec.structs.replace(told, found=msgspec.Raw(fitted(shape, FIT_BYTES)))
    return msgspec.msgpack.encode(told)


def fitted(shape: Shown, limit: int) -> bytes:
    """The shape in no more than ``limit`` bytes, if that can be: the longest list is halved until it fits.

    >>> from sexton_http.routes.shared.actor_shapes import RecordedMessage
    >>> def cut(limit):
    ...     items = [RecordedMessage("Wake", 1.0, 0.1, 0.1, False, "x" * 100) for _ in range(50)]
    ...     said = MessageList(UUID(int=1), "1.0", "a", None, False, 60.0, items)
    ...     read = msgspec.msgpack.decode(fitted(said, limit), type=MessageList)
    ...     return read.is_cut, len(read.items)
    >>> cut(100_000), cut(6_000), cut(10)
    ((False, 50), (True, 25), (True, 0))
    """
    spelled = msgspec.msgpack.encode(shape)
    while len(spelled) > limit:
        sizes = {name: len(msgspec.msgpack.encode(getattr(shape, name, None))) for name in LISTS}
        longest = max(sizes, key=lambda name: sizes[name])
        if not getattr(shape, longest, None):
            break
        kept = getattr(shape, longest)
        setattr(shape, longest, kept[: len(kept) // 2])
        shape.is_cut = True
        spelled = msgspec.msgpack.encode(shape)
    return spelled


async def _told(system: ActorSystem, crew: Questions | None, here: Here, wanted: Wanted) -> Told:
    """The answer of the worker that is named, or of the first that has one."""
    worker, body = wanted.worker, msgspec.msgpack.encode(wanted.question)
    if crew is None:
        if worker is not None:
            return Told(NOBODY, [], "this server has one process, and no workers")
        return Told(msgspec.Raw(await answer_question(system, here, body)), [])
    up = crew.up()
    first = crew.worker if worker is None else worker
    only = worker is not None or isinstance(wanted.question, LookAtTree)
    for slot in (first, *([] if only else [slot for slot in up if slot != first])):
        said = await crew.ask(slot, body)
        if said is None and worker is not None:
            return Told(NOBODY, up, f"worker {worker} does not serve, or does not answer")
        if said not in {None, NOTHING}:
            return Told(msgspec.Raw(said or b""), up)
    return Told(NOBODY, up)
