"""Shows what a run does: its frames go to the agent's stream."""

from collections.abc import Coroutine
from typing import Any

from sexton_actors.lease.record import HeldLease
from sexton_actors.lease.transitions import activity as transitions
from sexton_actors.lease.transitions.state import LeaseState
from sexton_actors.protocol import lease as m
from sexton_actors.refusal import Refusal
from sexton_engine import DEFERRED, Deferred
from sexton_storage.refusals import Lost
from sexton_storage.writes import AppendFrames, FramesAppended

Taken = m.FramesTaken | Refusal | Deferred


def activity(held: HeldLease, message: m.Activity) -> Taken | Coroutine[Any, Any, Taken]:
    """Frames are kept in batches of their own; until then the message is held, without a task."""
    state = held.record
    write = None if state is None else transitions.activity(state, message, held.world.now_ms())
    # A write names the lease and its token. A refusal ends a run, so it is made by what was read.
    return (
        _look(held, message) if write is None or isinstance(write, Refusal) else _submit(held, message, write)
    )


async def _look(held: HeldLease, message: m.Activity) -> Taken:
    state = await held.load()
    if state is None:
        return held.unknown()
    write = transitions.activity(state, message, held.world.now_ms())
    return _refused(held, write) if isinstance(write, Refusal) else _submit(held, message, write)


def _submit(held: HeldLease, message: m.Activity, write: AppendFrames) -> Taken:
    hold = held.context.hold()
    held.world.storage.journal.submit(write, lambda answer: hold.finish(_saved, held, message, answer))
    return DEFERRED


def _saved(
    held: HeldLease, message: m.Activity, answer: FramesAppended | Lost | Exception
) -> Taken | Coroutine[Any, Any, Taken]:
    if isinstance(answer, Exception):
        raise answer
    if isinstance(answer, Lost):
        held.race_lost()
        return _again(held, message)
    return _taken(held, message)


async def _again(held: HeldLease, message: m.Activity) -> Taken:
    async def attempt(state: LeaseState, now: int) -> m.FramesTaken | Refusal | Lost:
        write = transitions.activity(state, message, now)
        if isinstance(write, Refusal):
            return _refused(held, write)
        answer = await held.world.storage.journal.write(write)
        return answer if isinstance(answer, Lost) else _taken(held, message)

    return await held.until_kept(attempt, lost=1)


def _refused(held: HeldLease, refusal: Refusal) -> Refusal:
    held.world.meters.refused("activity", refusal)
    return refusal


def _taken(held: HeldLease, message: m.Activity) -> m.FramesTaken:
    for frame in message.frames:
        if frame.kind == transitions.CONNECTION:
            held.world.meters.connected(frame.data)
    # As many as the runner sent, however few they were joined to.
    return m.FramesTaken(len(message.frames))
