"""Takes a run's report: its end, its proposals, and what goes on from its checkpoint."""

from collections.abc import Coroutine
from typing import Any

from sexton_actors.event_files import names_files
from sexton_actors.lease.end import end_lease, follow
from sexton_actors.lease.record import HeldLease, is_waiting
from sexton_actors.lease.transitions import reports as transitions
from sexton_actors.lease.transitions.state import LeaseState
from sexton_actors.proposal.drafts import BY_RUN, Origin, draft_fault, proposed
from sexton_actors.protocol import lease as m
from sexton_actors.refusal import Refusal
from sexton_engine import DEFERRED, Deferred
from sexton_storage.records.configs import ConfigVersion
from sexton_storage.records.events import Event
from sexton_storage.records.improvement import Proposal
from sexton_storage.records.leases import Lease, LeaseStatus
from sexton_storage.refusals import Lost
from sexton_storage.rules import LIVE_LEASE
from sexton_storage.writes import Ended, EndLease

Reply = m.Reported | Refusal | Deferred
"""``DEFERRED`` while the message is held until its batch has committed: that costs no task a report."""


def is_plain(held: HeldLease, message: m.Report) -> LeaseState | None:
    """The lease as it is held here, where nothing has to be read to decide on the report: nearly always."""
    state = held.record
    if state is None or held.freshness.shared or is_waiting(state):
        return None
    if message.proposals or message.checkpoint is not None or state.lease.status not in LIVE_LEASE:
        return None
    return state


def end(
    held: HeldLease, message: m.Report, state: LeaseState
) -> Reply | Coroutine[Any, Any, m.Reported | Refusal]:
    """The run's own end, as ``report`` has it, of a lease that ``is_plain``."""
    decision = transitions.report(state, message, held.world.now_ms())
    if isinstance(decision, Refusal):
        return _again(held, message, lost=0)  # A lease that seems over is read first.
    hold = held.context.hold()
    held.world.storage.journal.submit(
        decision, lambda saved: hold.finish(_saved, held, message, state, decision, saved)
    )
    return DEFERRED


def _saved(
    held: HeldLease, message: m.Report, state: LeaseState, decision: EndLease, saved: Ended | Lost | Exception
) -> m.Reported | Coroutine[Any, Any, m.Reported | Refusal]:
    if isinstance(saved, Exception):
        raise saved
    if isinstance(saved, Lost):
        held.race_lost("end")
        return _again(held, message, lost=1)
    follow(held, state, decision, saved)
    return _reported(held, message, saved)


async def _again(held: HeldLease, message: m.Report, *, lost: int) -> m.Reported | Refusal:
    reply = await report(held, message, lost=lost)
    held.world.meters.refused("report", reply)
    return reply


def _reported(held: HeldLease, message: m.Report, ended: Ended) -> m.Reported:
    held.world.meters.heard[message.runner_id] = held.world.now_ms()
    return m.Reported(duplicate=False, status=str(ended.event.status), charged_nanos=ended.charged_nanos)


async def report(held: HeldLease, message: m.Report, *, lost: int = 0) -> m.Reported | Refusal:
    """The run's own end; the same report again is answered as such, also when the first answer was lost.

    ``lost``: races that this decision has lost before, noted by whoever lost them.
    """
    if (again := await _reported_before(held, message)) is not None:
        return again
    proposals = await _proposals(held, message)
    if isinstance(proposals, Refusal):
        return proposals
    continuation = await _continuation(held, message)
    ended = await end_lease(
        held, lambda state, now: transitions.report(state, message, now, proposals, continuation), lost=lost
    )
    if isinstance(ended, Ended):
        return _reported(held, message, ended)
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
    if message.checkpoint is None or held.record is None or held.record.lease.shadow:
        return None
    event = await held.world.storage.events.load(held.record.lease.event_id)
    if event is None:
        return None
    going_on = transitions.continuation_of(event, message, held.world.new_id(), held.world.now_ms())
    if going_on is not None and names_files(event):
        # Before the event itself, as always; should the report be lost, they go in time.
        await held.world.storage.event_files.copy(event.id, going_on.id)
    return going_on


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
