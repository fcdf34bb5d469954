"""Takes a run's report: its end, its proposals, and what goes on from its checkpoint."""

from sexton_actors.lease.end import end_lease
from sexton_actors.lease.record import HeldLease
from sexton_actors.lease.transitions import reports as transitions
from sexton_actors.proposal.drafts import BY_RUN, Origin, draft_fault, proposed
from sexton_actors.protocol import lease as m
from sexton_actors.refusal import Refusal
from sexton_storage.records.configs import ConfigVersion
from sexton_storage.records.events import Event
from sexton_storage.records.improvement import Proposal
from sexton_storage.records.leases import Lease, LeaseStatus
from sexton_storage.writes import Ended


async def report(held: HeldLease, message: m.Report) -> m.Reported | Refusal:
    """The run's own end; the same report again is answered as such, also when the first answer was lost."""
    if (again := await _reported_before(held, message)) is not None:
        return again
    proposals = await _proposals(held, message)
    if isinstance(proposals, Refusal):
        return proposals
    continuation = await _continuation(held, message)
    ended = await end_lease(
        held, lambda state, now: transitions.report(state, message, now, proposals, continuation)
    )
    if isinstance(ended, Ended):
        held.world.meters.heard[message.runner_id] = held.world.now_ms()
        return m.Reported(duplicate=False, status=str(ended.event.status), charged_nanos=ended.charged_nanos)
    # Lost to our own first try, of which nobody heard: the row has this very report by now.
    return await _reported_before(held, message) or ended or held.raced()


async def _reported_before(held: HeldLease, message: m.Report) -> m.Reported | Refusal | None:
    lease = held.record.lease if held.record else None
    if lease is None or lease.status is not LeaseStatus.REPORTED or lease.runner_id != message.runner_id:
        return None
    if lease.report_digest != message.digest:
        return None
    event = await held.world.storage.events.load(lease.event_id)
    if event is None:
        return held.unknown()
    return m.Reported(duplicate=True, status=str(event.status), charged_nanos=0)


async def _continuation(held: HeldLease, message: m.Report) -> Event | None:
    """What goes on from the report's checkpoint; its id is the same however often the end is tried."""
    if message.checkpoint is None or held.record is None:
        return None
    event = await held.world.storage.events.load(held.record.lease.event_id)
    if event is None:
        return None
    return transitions.continuation_of(event, message, held.world.new_id(), held.world.now_ms())


async def _proposals(held: HeldLease, message: m.Report) -> tuple[Proposal, ...] | Refusal:
    """The report's drafts on top of what the run was given; none when its agent is gone."""
    state = held.record
    if not message.proposals or state is None:
        return ()
    for place, draft in enumerate(message.proposals):
        if refusal := draft_fault(draft, f"/proposals/{place}"):
            return refusal
    base = await _base(held, state.lease)
    if base is None:
        return ()
    lease, world = state.lease, held.world
    origin = Origin(lease.workspace_id, lease.tenant_id, BY_RUN, lease.event_id)
    return tuple(proposed(draft, base, origin, world.new_id(), world.now_ms()) for draft in message.proposals)


async def _base(held: HeldLease, lease: Lease) -> ConfigVersion | None:
    zombies = held.world.storage.zombies
    given = lease.config_version_id
    base = None if given is None else await zombies.load_config(given)
    if base is not None:
        return base
    # Of a lease of before versions were noted, or so long ago that its version is kept no longer.
    zombie = await zombies.load(lease.zombie_id)
    return None if zombie is None else await zombies.load_config(zombie.config_version_id)
