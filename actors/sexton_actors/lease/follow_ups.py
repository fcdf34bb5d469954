"""Lets a run have its agent woken again later."""

from sexton_actors.lease.record import HeldLease
from sexton_actors.lease.transitions.follow_ups import follow_up, moment
from sexton_actors.lease.transitions.shadows import may_take_effect
from sexton_actors.lease.transitions.state import STALE, LeaseState, fenced
from sexton_actors.protocol import lease as m
from sexton_actors.protocol.scheduler import SchedulesChanged
from sexton_actors.refusal import Refusal
from sexton_storage.records.follow_ups import FollowUp
from sexton_storage.records.leases import Lease, LeaseToken
from sexton_storage.refusals import FULL, Lost
from sexton_storage.terms import FOLLOW_UPS_LIMIT


async def ask(held: HeldLease, message: m.AskFollowUp) -> FollowUp | Refusal:
    """The follow-up of that call, kept if there is none."""

    async def attempt(state: LeaseState, now: int) -> FollowUp | Refusal | Lost:
        if refusal := fenced(state.lease, message.runner_id, None, now, STALE):
            return refusal
        if refusal := may_take_effect(state.lease):
            return refusal
        new = await _asked(held, state.lease, message, now)
        if isinstance(new, Refusal):
            return new
        under = LeaseToken(state.lease.id, state.lease.fencing_token)
        kept = await held.world.storage.follow_ups.keep(new, under)
        if not isinstance(kept, Lost):
            held.context.tell("scheduler", "", SchedulesChanged())
            return kept
        if kept.reason == FULL:
            detail = f"{FOLLOW_UPS_LIMIT} follow-ups of the agent are pending; no more may."
            return Refusal("UZ-REQ-009", detail, {"current_state": FULL})
        return kept

    return await held.until_kept(attempt)


async def _asked(held: HeldLease, lease: Lease, message: m.AskFollowUp, now: int) -> FollowUp | Refusal:
    at = moment(message.delay_s, message.at, now)
    if isinstance(at, Refusal):
        # A repeat names a moment that may be close by now, or past.
        find = held.world.storage.follow_ups.find
        return await find(lease.zombie_id, lease.event_id, message.call_id) or at
    return follow_up(lease, held.world.new_id(), message.call_id, message.message, at=at, now=now)
