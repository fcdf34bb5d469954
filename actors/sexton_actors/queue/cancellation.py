"""Ends an event that is not over: one that waits at once, one that runs by way of its lease."""

from sexton_actors.protocol import queue as m
from sexton_actors.protocol.gate import Refresh
from sexton_actors.protocol.lease import CancelRun
from sexton_actors.queue import transitions
from sexton_actors.queue.readiness import announce
from sexton_actors.queue.state import QueueState
from sexton_actors.refusal import Refusal
from sexton_storage.writes import Cancelled


async def cancel(queue: QueueState, message: m.Cancel) -> m.Cancelling | Refusal:
    """Answered when it is kept. Raises StorageUnavailable."""
    write = transitions.cancel(queue.id, message.event_id, message.by, queue.world.now_ms())
    outcome = await queue.world.storage.journal.write(write)
    if isinstance(outcome, Cancelled):
        for gate_id in outcome.gate_ids:
            queue.context.tell("gate", gate_id, Refresh())
        if outcome.lease_id is not None:
            queue.context.tell("lease", outcome.lease_id, CancelRun())
        elif not queue.leased:
            # It may have been what made the agent ready.
            await announce(queue)
    return transitions.answer(message.event_id, outcome)
