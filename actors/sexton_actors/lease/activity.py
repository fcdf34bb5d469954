"""Shows what a run does: its frames go to the agent's stream."""

from collections.abc import Coroutine
from typing import Any

from sexton_actors.lease.row import LeaseRow
from sexton_actors.lease.transitions import activity as transitions
from sexton_actors.lease.transitions.state import LeaseState
from sexton_actors.protocol import lease as m
from sexton_actors.refusal import Refusal
from sexton_actors.terms import MAX_RACES
from sexton_engine import DEFERRED, Deferred
from sexton_storage.refusals import Lost
from sexton_storage.writes import FramesAppended

Taken = m.FramesTaken | Refusal | Deferred


def activity(row: LeaseRow, message: m.Activity) -> Taken | Coroutine[Any, Any, Taken]:
    """Frames are kept in batches of their own; until then the message is held, without a task."""
    state = row.state
    return _look(row, message, MAX_RACES) if state is None else _take(row, message, state, MAX_RACES)


async def _look(row: LeaseRow, message: m.Activity, races_left: int) -> Taken:
    state = await row.load()
    if not races_left:
        return row.raced()
    return row.unknown() if state is None else _take(row, message, state, races_left)


def _take(row: LeaseRow, message: m.Activity, state: LeaseState, races_left: int) -> Taken:
    write = transitions.activity(state, message, row.world.now_ms())
    if isinstance(write, Refusal):
        row.world.meters.refused("activity", write)
        return write
    hold = row.context.hold()
    row.world.storage.journal.submit(
        write, lambda answer: hold.finish(_taken, row, message, races_left, answer)
    )
    return DEFERRED


def _taken(
    row: LeaseRow, message: m.Activity, races_left: int, answer: FramesAppended | Lost | Exception
) -> Taken | Coroutine[Any, Any, Taken]:
    if isinstance(answer, Exception):
        raise answer
    if isinstance(answer, Lost):
        return _look(row, message, races_left - 1)
    # As many as the runner sent, however few they were joined to.
    return m.FramesTaken(len(message.frames))
