"""Renews a lease: saved, adopted, answered."""

from collections.abc import Coroutine
from typing import Any

from sexton_actors.lease.row import LeaseRow, is_waiting
from sexton_actors.lease.transitions import renewals as transitions
from sexton_actors.lease.transitions.state import LeaseState
from sexton_actors.protocol.lease import Renew, Renewal
from sexton_actors.refusal import Refusal
from sexton_actors.terms import MAX_RENEWAL_RACES
from sexton_engine import DEFERRED, Deferred
from sexton_storage.refusals import Lost
from sexton_storage.writes import Renewed, RenewLease

Reply = Renewal | Refusal | Deferred
"""``DEFERRED`` while the message is held until its batch has committed: that costs no task a renewal."""


def renew(row: LeaseRow, message: Renew) -> Reply | Coroutine[Any, Any, Reply]:
    """Raises StorageUnavailable: the runner tries again with its next tick, and its counts are cumulative."""
    state = row.state
    if state is None or row.is_shared or (state.waits and is_waiting(state)):
        return _look(row, message)
    return _decide(row, message, state, 0)


async def _look(row: LeaseRow, message: Renew) -> Reply:
    state = await row.current()
    return row.unknown() if state is None else _decide(row, message, state, 0)


def _decide(row: LeaseRow, message: Renew, state: LeaseState, races: int) -> Reply:
    world = row.world
    decision = transitions.renew(state, message, world.now_ms())
    if isinstance(decision, Refusal):
        world.meters.renewed(decision)
        world.meters.refused("renew", decision)
        return decision
    hold = row.context.hold()
    world.storage.journal.submit(
        decision, lambda saved: hold.finish(_saved, row, message, decision, races, saved)
    )
    return DEFERRED


def _saved(
    row: LeaseRow,
    message: Renew,
    decision: RenewLease,
    races: int,
    saved: Renewed | Lost | Exception,
) -> Reply | Coroutine[Any, Any, Reply]:
    if isinstance(saved, Exception):
        raise saved
    if isinstance(saved, Lost):
        return _again(row, message, races + 1)
    meters, before = row.world.meters, row.state
    if before is not None:
        meters.slack.note((before.lease.expires_at - decision.now) / 1000)
    meters.charged_nanos += saved.charged_nanos
    meters.heard[decision.lease.runner_id] = decision.now
    if saved.balance_nanos <= 0 and not saved.unlimited:
        row.world.entitlements.forget(decision.lease.tenant_id)
    # What is known of the gates is still what the decision saw: nothing was handled meanwhile.
    row.adopt(LeaseState(decision.lease, before.waits if before else ()))
    reply = transitions.answer(decision.lease, saved)
    meters.renewed(reply)
    return reply


async def _again(row: LeaseRow, message: Renew, races: int) -> Reply:
    state = await row.lost_race("renew", races)
    if state is None:
        return row.unknown()
    if races < MAX_RENEWAL_RACES:
        return _decide(row, message, state, races)
    raced = row.raced()
    row.world.meters.renewed(raced)
    return raced
