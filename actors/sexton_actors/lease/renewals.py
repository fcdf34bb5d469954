"""Renews a lease: saved, adopted, answered."""

from collections.abc import Coroutine
from functools import partial
from typing import Any

from sexton_actors.held.races import RACED
from sexton_actors.lease.record import HeldLease, is_waiting
from sexton_actors.lease.transitions import renewals as transitions
from sexton_actors.lease.transitions.state import LeaseState
from sexton_actors.protocol.lease import Renew, Renewal
from sexton_actors.refusal import Refusal
from sexton_engine import DEFERRED, Deferred
from sexton_storage.refusals import Lost
from sexton_storage.writes import Renewed, RenewLease

Reply = Renewal | Refusal | Deferred
"""``DEFERRED`` while the message is held until its batch has committed: that costs no task a renewal."""


def renew(held: HeldLease, message: Renew) -> Reply | Coroutine[Any, Any, Reply]:
    """Raises StorageUnavailable: the runner tries again with its next tick, and its counts are cumulative."""
    state = held.record
    # As ``refresh`` would decide, but without a coroutine: nearly all renewals find their lease held.
    if state is None or held.freshness.shared or (state.waits and is_waiting(state)):
        return _look(held, message)
    return _submit(held, message, state)


async def _look(held: HeldLease, message: Renew) -> Reply:
    state = await held.refresh()
    return held.unknown() if state is None else _submit(held, message, state)


def _submit(held: HeldLease, message: Renew, state: LeaseState) -> Reply:
    decision = transitions.renew(state, message, held.world.now_ms())
    if isinstance(decision, Refusal):
        return _refused(held, decision)
    hold = held.context.hold(partial(_saved, held, message, decision))
    held.world.storage.journal.submit(decision, hold.give)
    return DEFERRED


def _saved(
    held: HeldLease, message: Renew, decision: RenewLease, saved: Renewed | Lost | Exception
) -> Reply | Coroutine[Any, Any, Reply]:
    if isinstance(saved, Renewed):
        return _kept(held, decision, saved)
    if isinstance(saved, Exception):
        raise saved
    held.race_lost("renew")
    return _again(held, message)


async def _again(held: HeldLease, message: Renew) -> Reply:
    async def attempt(state: LeaseState, now: int) -> Renewal | Refusal | Lost:
        decision = transitions.renew(state, message, now)
        if isinstance(decision, Refusal):
            return _refused(held, decision)
        saved = await held.world.storage.journal.write(decision)
        return saved if isinstance(saved, Lost) else _kept(held, decision, saved)

    reply: Renewal | Refusal = await held.until_kept(attempt, write="renew", lost=1)
    if isinstance(reply, Refusal) and reply.code == RACED:
        held.world.meters.renewed(reply)
    return reply


def _refused(held: HeldLease, refusal: Refusal) -> Refusal:
    held.world.meters.renewed(refusal)
    held.world.meters.refused("renew", refusal)
    return refusal


def _kept(held: HeldLease, decision: RenewLease, saved: Renewed) -> Renewal | Refusal:
    meters, before, lease = held.world.meters, held.record, decision.lease
    if before is not None:
        meters.slack.note((before.lease.expires_at - decision.now) / 1000)
    meters.charged_nanos += saved.charged_nanos
    meters.heard[lease.runner_id] = decision.now
    if saved.balance_nanos <= 0 and not saved.unlimited:
        held.world.entitlements.forget(lease.tenant_id)
    # What is known of the gates is still what the decision saw: nothing was handled meanwhile.
    held.adopt_renewed(LeaseState(lease, before.waits if before else ()))
    reply = transitions.answer(lease, saved)
    meters.renewed(reply)
    return reply
