"""What is asked of the actors of one process, and what it answers; by itself, or for another worker."""

import platform
from collections.abc import Hashable
from typing import Annotated, Final, NamedTuple
from uuid import UUID

import msgspec

from sexton_engine import (
    ActorStatistics,
    ActorSystem,
    CrashRecord,
    DeadLetter,
    HandledMessage,
    KindStatistics,
    UnknownKind,
)
from sexton_http.routes.shared.actor_shapes import (
    ActorDone,
    ActorItem,
    ActorKind,
    ActorTimer,
    ActorTree,
    ActorView,
    CrashItem,
    DeadLetterItem,
    MessageCount,
    MessageList,
    RecordedMessage,
)
from sexton_http.routes.shared.message_text import text_of

SHOWN: Final = 20
"""Crashes and dead letters that are shown, the latest first."""
RECORDED_S: Final = 60.0
"""How long a look keeps the recording of an actor going."""
Key = Annotated[str, msgspec.Meta(max_length=256)]


class Here(NamedTuple):
    """Where an answer is from."""

    node: UUID
    version: str
    worker: int | None


class LookAtTree(msgspec.Struct, frozen=True, tag="tree"):
    kind: str | None
    limit: int


class LookAtActor(msgspec.Struct, frozen=True, tag="actor"):
    kind: str
    key: str


class LookAtMessages(msgspec.Struct, frozen=True, tag="messages"):
    kind: str
    key: str
    contents: bool


class RestartActor(msgspec.Struct, frozen=True, tag="restart"):
    kind: str
    key: str


class StopActor(msgspec.Struct, frozen=True, tag="stop"):
    kind: str
    key: str


Question = LookAtTree | LookAtActor | LookAtMessages | RestartActor | StopActor
QUESTIONS: Final = msgspec.msgpack.Decoder[Question](Question)


async def answer_question(system: ActorSystem, here: Here, question: bytes) -> bytes:
    """What this process says to it, spelled as the type that belongs to the question; null: there is none."""
    return msgspec.msgpack.encode(await _answer(system, here, QUESTIONS.decode(question)))


async def _answer(
    system: ActorSystem, here: Here, question: Question
) -> ActorTree | ActorView | MessageList | ActorDone | None:
    try:
        match question:
            case LookAtTree():
                return _tree(system, here, question)
            case LookAtActor(kind=kind, key=text):
                return _view(system, here, kind, text)
            case LookAtMessages():
                return _messages(system, here, question)
            case RestartActor() | StopActor():
                return await _act(system, here, question)
    except UnknownKind:
        return None


async def _act(system: ActorSystem, here: Here, question: RestartActor | StopActor) -> ActorDone | None:
    kind, key = question.kind, key_of(question.key)
    found = system.inspection.actor(kind, key)
    if found is None:
        return None
    if isinstance(question, RestartActor):
        done = await system.inspection.restart(kind, key)
    else:
        done = not found.is_single and await system.stop(kind, key)
    if not done:
        return None
    return ActorDone(here.node, here.version, platform.node(), here.worker, is_cut=False, actor=_item(found))


def key_of(text: str) -> Hashable:
    """Keys are ids, or texts that are none.

    >>> key_of(""), key_of("019363b0-0000-7000-8000-00000000ffff")
    ('', UUID('019363b0-0000-7000-8000-00000000ffff'))
    """
    try:
        return UUID(text)
    except ValueError:
        return text


def _tree(system: ActorSystem, here: Here, question: LookAtTree) -> ActorTree:
    kind = question.kind
    actors = [] if kind is None else system.inspection.actors(kind, limit=question.limit)
    return ActorTree(
        node=here.node,
        version=here.version,
        host=platform.node(),
        worker=here.worker,
        is_cut=False,
        nodes=[],
        workers=[],
        tree=system.tree(),
        kinds=[_kind(one) for one in system.statistics().kinds if kind in {None, one.kind}],
        actors=[_item(one) for one in actors],
        crashes=_crashes(system, kind, None),
        dead_letters=_dead_letters(system, kind, None),
    )


def _view(system: ActorSystem, here: Here, kind: str, text: str) -> ActorView | None:
    key = key_of(text)
    found = system.inspection.actor(kind, key)
    if found is None:
        return None
    return ActorView(
        node=here.node,
        version=here.version,
        host=platform.node(),
        worker=here.worker,
        is_cut=False,
        actor=_item(found),
        messages=_kind(system.statistics().kind(kind)).messages,
        crashes=_crashes(system, kind, key),
        dead_letters=_dead_letters(system, kind, key),
    )


def _messages(system: ActorSystem, here: Here, question: LookAtMessages) -> MessageList | None:
    key, inspection = key_of(question.key), system.inspection
    if inspection.actor(question.kind, key) is None:
        return None
    recorded = inspection.record(question.kind, key, RECORDED_S)
    now = inspection.now()
    items = [_recorded(one, now, shows=question.contents) for one in recorded]
    return MessageList(
        node=here.node,
        version=here.version,
        host=platform.node(),
        worker=here.worker,
        is_cut=False,
        recorded_for_s=RECORDED_S,
        items=items,
    )


def _recorded(one: HandledMessage, now: float, *, shows: bool) -> RecordedMessage:
    return RecordedMessage(
        message=type(one.message).__name__,
        age_s=now - one.began_at,
        waited_s=one.waited_s,
        took_s=one.took_s,
        has_failed=one.has_failed,
        contents=text_of(one.message) if shows else None,
    )


def _kind(one: KindStatistics) -> ActorKind:
    return ActorKind(
        kind=one.kind,
        live=one.live,
        mailbox_depth=one.mailbox_depth,
        mailbox_age_s=one.mailbox_age_s,
        messages=[MessageCount(m.message, m.count, m.seconds) for m in one.messages],
        activations=one.activations,
        passivations=one.passivations,
        crashes=one.crashes,
        restarts=one.restarts,
        escalations=one.escalations,
        dead_letters=one.dead_letters,
    )


def _item(one: ActorStatistics) -> ActorItem:
    return ActorItem(
        kind=one.kind,
        key=one.key,
        state=one.state,
        mailbox_depth=one.mailbox_depth,
        mailbox_age_s=one.mailbox_age_s,
        mailbox_capacity=one.mailbox_capacity,
        mailbox_peak=one.mailbox_peak,
        handling=one.handling,
        handling_s=one.handling_s,
        timers=[ActorTimer(name, due_s) for name, due_s in one.timers],
        tasks=one.tasks,
        replies_owed=one.replies_owed,
        restarts=one.restarts,
        can_stop=not one.is_single,
    )


def _crashes(system: ActorSystem, kind: str | None, key: Hashable | None) -> list[CrashItem]:
    now = system.inspection.now()

    def view(one: CrashRecord) -> CrashItem:
        return CrashItem(one.kind, one.key, one.message, one.error, one.traceback, now - one.at)

    return [view(one) for one in system.inspection.crashes(kind, key)[:SHOWN]]


def _dead_letters(system: ActorSystem, kind: str | None, key: Hashable | None) -> list[DeadLetterItem]:
    now = system.inspection.now()

    def view(one: DeadLetter) -> DeadLetterItem:
        message = type(one.message).__name__
        return DeadLetterItem(one.kind, str(one.key), message, one.reason.value, now - one.at)

    return [view(one) for one in system.inspection.dead_letters(kind, key)[:SHOWN]]
