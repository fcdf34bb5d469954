"""Ends a lease: settles it, frees its agent, and tells all who wait for that."""

from collections.abc import Callable

import msgspec

from sexton_actors.lease.row import LeaseRow
from sexton_actors.lease.transitions import endings
from sexton_actors.lease.transitions.state import LeaseState
from sexton_actors.proposal.drafts import BY_RUN, Origin, draft_fault, proposed
from sexton_actors.protocol import lease as m
from sexton_actors.protocol.gate import Close
from sexton_actors.protocol.queue import LeaseEnded
from sexton_actors.protocol.runner import LeaseOver
from sexton_actors.refusal import Refusal
from sexton_actors.terms import MAX_RACES
from sexton_storage.records.configs import ConfigVersion
from sexton_storage.records.events import Event
from sexton_storage.records.improvement import Proposal
from sexton_storage.records.leases import Lease, LeaseStatus
from sexton_storage.refusals import Lost
from sexton_storage.writes import Ended, EndLease

Decide = Callable[[LeaseState, int], EndLease | Refusal | None]


async def report(row: LeaseRow, message: m.Report) -> m.Reported | Refusal:
    """The run's own end; the same report again is answered as such, also when the first answer was lost."""
    if (again := await _reported_before(row, message)) is not None:
        return again
    proposals = await _proposals(row, message)
    if isinstance(proposals, Refusal):
        return proposals
    follower = await _follower(row, message)
    ended = await _finish(row, lambda state, now: endings.report(state, message, now, proposals, follower))
    if isinstance(ended, Ended):
        row.world.meters.heard[message.runner_id] = row.world.now_ms()
        return m.Reported(duplicate=False, status=str(ended.event.status), charged_nanos=ended.charged_nanos)
    # Lost to our own first try, of which nobody heard: the row has this very report by now.
    return await _reported_before(row, message) or ended or row.raced()


async def _reported_before(row: LeaseRow, message: m.Report) -> m.Reported | Refusal | None:
    lease = row.state.lease if row.state else None
    if lease is None or lease.status is not LeaseStatus.REPORTED or lease.runner_id != message.runner_id:
        return None
    if lease.report_digest != message.digest:
        return None
    event = await row.world.storage.events.load(lease.event_id)
    if event is None:
        return row.unknown()
    return m.Reported(duplicate=True, status=str(event.status), charged_nanos=0)


async def _follower(row: LeaseRow, message: m.Report) -> Event | None:
    """What goes on from the report's checkpoint; its id is the same however often the end is tried."""
    if message.checkpoint is None or row.state is None:
        return None
    event = await row.world.storage.events.load(row.state.lease.event_id)
    if event is None:
        return None
    return endings.continuation(event, message, row.world.new_id(), row.world.now_ms())


async def _proposals(row: LeaseRow, message: m.Report) -> tuple[Proposal, ...] | Refusal:
    """The report's drafts on top of what the run was given; none when its agent is gone."""
    state = row.state
    if not message.proposals or state is None:
        return ()
    for place, draft in enumerate(message.proposals):
        if refusal := draft_fault(draft, f"/proposals/{place}"):
            return refusal
    base = await _base(row, state.lease)
    if base is None:
        return ()
    lease, world = state.lease, row.world
    origin = Origin(lease.workspace_id, lease.tenant_id, BY_RUN, lease.event_id)
    return tuple(proposed(draft, base, origin, world.new_id(), world.now_ms()) for draft in message.proposals)


async def _base(row: LeaseRow, lease: Lease) -> ConfigVersion | None:
    zombies = row.world.storage.zombies
    given = lease.config_version_id
    base = None if given is None else await zombies.load_config(given)
    if base is not None:
        return base
    # Of a lease of before versions were noted, or so long ago that its version is kept no longer.
    zombie = await zombies.load(lease.zombie_id)
    return None if zombie is None else await zombies.load_config(zombie.config_version_id)


async def release(row: LeaseRow, message: m.Release) -> m.Released | Refusal:
    ended = await _finish(row, lambda state, now: endings.release(state, message, now))
    return m.Released() if isinstance(ended, Ended) else ended or row.raced()


async def park(row: LeaseRow, message: m.Park) -> m.Parked | Refusal:
    # Read before the decision; what becomes of it until the commit is settled by the commit.
    gate = await row.world.storage.gates.load(message.gate_id)
    ended = await _finish(row, lambda state, now: endings.park(state, message, gate, now))
    return m.Parked() if isinstance(ended, Ended) else ended or row.raced()


async def take_back(row: LeaseRow) -> None:
    """The grant reached nobody."""
    await _finish(row, endings.undelivered)


async def abort(row: LeaseRow, message: m.Abort) -> None:
    await _finish(row, lambda state, now: endings.abort(state, message, now))


async def reclaim(row: LeaseRow, cause: endings.Cause) -> None:
    """Nothing happens before the deadline, unless the runner was revoked or has died."""
    state = await row.current()
    event = None if state is None else await row.world.storage.events.load(state.lease.event_id)
    if event is None:
        # Purged with its agent: reading it again forgets the lease here too.
        await row.load()
        return
    held = event
    ended = await _finish(row, lambda state, now: endings.reclaim(state, held, now, cause))
    if isinstance(ended, Ended):
        row.world.meters.reclaimed[cause] += 1


async def _finish(row: LeaseRow, decide: Decide) -> Ended | Refusal | None:
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
