"""Saves the end of a lease, frees its agent, and tells whoever waits for that."""

from collections.abc import Callable

import msgspec

from sexton_actors.lease.row import LeaseRow
from sexton_actors.lease.transitions.state import LeaseState
from sexton_actors.protocol.gate import Close
from sexton_actors.protocol.queue import LeaseEnded
from sexton_actors.protocol.runner import LeaseOver
from sexton_actors.refusal import Refusal
from sexton_actors.terms import MAX_RACES
from sexton_storage.refusals import Lost
from sexton_storage.writes import Ended, EndLease

Decide = Callable[[LeaseState, int], EndLease | Refusal | None]


async def end_lease(row: LeaseRow, decide: Decide) -> Ended | Refusal | None:
    """Decide, save, adopt, tell; None when there is nothing to end."""
    for tries in range(1, MAX_RACES + 1):
        state = await row.current()
        if state is None:
            return row.unknown()
        write = decide(state, row.world.now_ms())
        if write is None:
            row.adopt(state)
            return None
        if isinstance(write, Refusal):
            return write
        ended = await row.world.storage.journal.write(write)
        if not isinstance(ended, Lost):
            _adopt(row, state, write)
            _tell(row, state, ended)
            row.world.meters.ended[str(write.status)] += 1
            row.world.meters.charged_nanos += ended.charged_nanos
            if ended.event.completed_at is not None:
                row.world.meters.finished[str(ended.event.status)] += 1
            return ended
        await row.lost_race("end", tries)
    return row.raced()


def _adopt(row: LeaseRow, state: LeaseState, write: EndLease) -> None:
    lease = msgspec.structs.replace(
        state.lease,
        status=write.status,
        version=write.version + 1,
        ended_at=write.now,
        report_digest=write.report_digest,
    )
    row.adopt(LeaseState(lease, state.waits))


def _tell(row: LeaseRow, state: LeaseState, ended: Ended) -> None:
    lease = state.lease
    row.context.tell("runner", lease.runner_id, LeaseOver(lease.id))
    row.context.tell("queue", lease.zombie_id, LeaseEnded(ended.next_event_at))
    if ended.event.completed_at is None:
        return
    # Whoever asked is gone for good, so nobody needs the answer any more.
    for wait in state.waits:
        if wait.until is None:
            row.context.tell("gate", wait.gate_id, Close())
