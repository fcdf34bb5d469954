"""Saves the end of a lease, frees its agent, and tells whoever waits for that."""

from collections.abc import Callable

import msgspec

from sexton_actors.lease.record import HeldLease
from sexton_actors.lease.transitions.state import LeaseState
from sexton_actors.meters import Meters
from sexton_actors.protocol.gate import Close
from sexton_actors.protocol.queue import LeaseEnded
from sexton_actors.protocol.runner import LeaseOver
from sexton_actors.refusal import Refusal
from sexton_storage.refusals import Lost
from sexton_storage.writes import Ended, EndLease

Decide = Callable[[LeaseState, int], EndLease | Refusal | None]


async def end_lease(held: HeldLease, decide: Decide, *, lost: int = 0) -> Ended | Refusal | None:
    """Decide, save, adopt, tell; None when there is nothing to end. ``lost``: races noted before."""

    async def attempt(state: LeaseState, now: int) -> Ended | Refusal | Lost | None:
        write = decide(state, now)
        if write is None:
            held.adopt(state)
            return None
        if isinstance(write, Refusal):
            return write
        ended = await held.world.storage.journal.write(write)
        if isinstance(ended, Lost):
            return ended
        follow(held, state, write, ended)
        return ended

    return await held.until_kept(attempt, write="end", lost=lost)


def follow(held: HeldLease, state: LeaseState, write: EndLease, ended: Ended) -> None:
    """What follows from an end that was saved."""
    _adopt(held, state, write)
    _tell(held, state, write, ended)
    _count(held.world.meters, write, ended)
    over = ended.event.completed_at is not None
    held.world.traced(state.lease.event_id, state.lease.attempt, over=over)


def _count(meters: Meters, write: EndLease, ended: Ended) -> None:
    meters.ended[str(write.status)] += 1
    meters.charged_nanos += ended.charged_nanos
    if ended.event.completed_at is not None:
        meters.finished[str(ended.event.status)] += 1


def _adopt(held: HeldLease, state: LeaseState, write: EndLease) -> None:
    lease = msgspec.structs.replace(
        state.lease,
        status=write.status,
        version=write.version + 1,
        ended_at=write.now,
        report_digest=write.report_digest,
    )
    held.adopt(LeaseState(lease, state.waits))


def _tell(held: HeldLease, state: LeaseState, write: EndLease, ended: Ended) -> None:
    lease = state.lease
    held.context.tell("runner", lease.runner_id, LeaseOver(lease.id))
    held.context.tell(
        "queue", lease.zombie_id, LeaseEnded(ended.next_event_at, ended.agent_version, write.now)
    )
    if ended.event.completed_at is None:
        return
    # Whoever asked is gone for good, so nobody needs the answer any more.
    for wait in state.waits:
        if wait.until is None:
            held.context.tell("gate", wait.gate_id, Close())
