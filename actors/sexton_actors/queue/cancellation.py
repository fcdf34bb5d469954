"""Ends events that are not over: those that wait at once, one that runs by way of its lease."""

from collections.abc import Sequence
from functools import partial
from uuid import UUID

import trio
from msgspec.structs import replace

from sexton_actors.protocol import queue as m
from sexton_actors.protocol.gate import Refresh
from sexton_actors.protocol.lease import CancelRun
from sexton_actors.queue import transitions
from sexton_actors.queue.readiness import announce
from sexton_actors.queue.state import QueueState
from sexton_actors.refusal import Refusal
from sexton_storage.refusals import Lost
from sexton_storage.writes import CancelEvent, Cancelled, CancelOutcome


async def cancel(queue: QueueState, message: m.Cancel) -> m.Cancelling | Refusal:
    """Answered when it is kept. Raises StorageUnavailable."""
    write = transitions.cancel(queue.id, message.event_id, message.by, queue.world.now_ms())
    outcome = await queue.world.storage.journal.write(replace(write, audit=message.audit))
    await _tell(queue, [(message.event_id, outcome)])
    return transitions.answer(message.event_id, outcome)


async def cancel_many(queue: QueueState, message: m.CancelMany) -> tuple[m.Cancelling | Refusal, ...]:
    """The same for several: they are written together, and told of once. Raises StorageUnavailable."""
    now = queue.world.now_ms()
    writes = [transitions.cancel(queue.id, event_id, message.by, now) for event_id in message.event_ids]
    outcomes = await _write(queue, writes)
    pairs = zip(message.event_ids, outcomes, strict=True)
    await _tell(queue, [(one, outcome) for one, outcome in pairs if not isinstance(outcome, Exception)])
    kept = []
    for event_id, outcome in zip(message.event_ids, outcomes, strict=True):
        if isinstance(outcome, Exception):
            raise outcome
        kept.append(transitions.answer(event_id, outcome))
    return tuple(kept)


async def _write(queue: QueueState, writes: Sequence[CancelEvent]) -> Sequence[Cancelled | Lost | Exception]:
    outcomes: dict[int, Cancelled | Lost | Exception] = {}
    all_are_kept = trio.Event()

    def landed(place: int, outcome: Cancelled | Lost | Exception) -> None:
        outcomes[place] = outcome
        if len(outcomes) == len(writes):
            all_are_kept.set()

    queue.world.storage.journal.submit_all(
        [(write, partial(landed, place)) for place, write in enumerate(writes)]
    )
    if writes:
        await all_are_kept.wait()
    return [outcomes[place] for place in range(len(writes))]


async def _tell(queue: QueueState, outcomes: Sequence[tuple[UUID, Cancelled | Lost]]) -> None:
    ended = False
    for event_id, outcome in outcomes:
        if isinstance(outcome, Lost):
            continue
        for gate_id in outcome.gate_ids:
            queue.context.tell("gate", gate_id, Refresh())
        if outcome.lease_id is not None:
            queue.context.tell("lease", outcome.lease_id, CancelRun())
        else:
            ended = True
            # It may have been over before, and was traced then.
            if outcome.outcome is CancelOutcome.ENDED:
                queue.world.traced(event_id, None, over=True)
    if ended and not queue.leased:
        # One of them may have been what made the agent ready.
        await announce(queue)
