"""Renews a lease: saved, adopted, answered."""

from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from sexton_actors.held.races import RACED
from sexton_actors.lease.record import HeldLease, is_waiting
from sexton_actors.lease.transitions import renewals as transitions
from sexton_actors.lease.transitions.state import LeaseState
from sexton_actors.meters import RENEWED
from sexton_actors.protocol.lease import Renew, Renewal
from sexton_actors.refusal import Refusal
from sexton_actors.renewal_units import RenewalUnit
from sexton_actors.world import World
from sexton_engine import DEFERRED, Deferred, finish_all
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
    decision = _decided(held, message, state)
    # A write names the version that was seen. A refusal does not, and ends a run: the row may say otherwise.
    return _look(held, message) if isinstance(decision, Refusal) else _submit(held, message, decision)


async def _look(held: HeldLease, message: Renew) -> Reply:
    state = await held.refresh()
    if state is None:
        return held.unknown()
    decision = _decided(held, message, state)
    return _refused(held, decision) if isinstance(decision, Refusal) else _submit(held, message, decision)


def _decided(held: HeldLease, message: Renew, state: LeaseState) -> RenewLease | Refusal:
    world = held.world
    unit = world.renewal_units.open
    return transitions.renew(state, message, world.now_ms() if unit is None else unit.at)


def _submit(held: HeldLease, message: Renew, decision: RenewLease) -> Reply:
    world = held.world
    unit = world.renewal_units.open
    if unit is not None:
        unit.add(held.context.hold(), (held, message, decision), decision)
        return DEFERRED
    hold = held.context.hold(partial(_saved, held, message, decision))
    world.storage.journal.submit(decision, hold.give)
    return DEFERRED


def send_unit(world: World) -> None:
    """Write what a burst has decided as one unit; it is answered by one call, unless rows of it are held."""
    unit = world.renewal_units.end()
    if unit is not None:
        world.storage.journal.submit_unit(unit.writes, partial(_unit_saved, world, unit))


def _unit_saved(world: World, unit: RenewalUnit, places: Sequence[int], answers: Sequence[Any]) -> None:
    tally = _UnitTally(world)
    holds, asked = unit.holds, unit.asked
    if len(places) != len(holds):
        holds, asked = [holds[place] for place in places], [asked[place] for place in places]
    finish_all(holds, tally.finish, list(zip(asked, answers, strict=True)))
    tally.note()


class _UnitTally:
    """Finishes the renewals of a unit, and counts them once for all."""

    __slots__ = ("_charged_nanos", "_heard", "_renewed", "_slack_s", "_world")

    def __init__(self, world: World) -> None:
        self._world = world
        self._renewed = 0
        self._charged_nanos = 0
        self._slack_s: list[float] = []
        self._heard: dict[int, tuple[UUID, int]] = {}
        """By the number of the id, which is hashed without a call of Python."""

    def finish(
        self, answered: tuple[tuple[HeldLease, Renew, RenewLease], Any]
    ) -> Reply | Coroutine[Any, Any, Reply]:
        """The rest of one message; as ``_saved``."""
        (held, message, decision), saved = answered
        if type(saved) is not Renewed:
            return _saved(held, message, decision, saved)
        before, lease = held.record, decision.lease
        if before is not None:
            self._slack_s.append((before.lease.expires_at - decision.now) / 1000)
        self._charged_nanos += saved.charged_nanos
        self._heard[lease.runner_id.int] = lease.runner_id, decision.now
        reply = _adopt(held, decision, saved)
        if isinstance(reply, Refusal):
            self._world.meters.renewed(reply)
        else:
            self._renewed += 1
        return reply

    def note(self) -> None:
        """Hand the counts over."""
        meters = self._world.meters
        meters.slack.note_all(self._slack_s)
        meters.charged_nanos += self._charged_nanos
        meters.heard.update(self._heard.values())
        meters.renewals[RENEWED] += self._renewed


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
    reply = _adopt(held, decision, saved)
    meters.renewed(reply)
    return reply


def _adopt(held: HeldLease, decision: RenewLease, saved: Renewed) -> Renewal | Refusal:
    before, lease = held.record, decision.lease
    if saved.balance_nanos <= 0 and not saved.unlimited:
        held.world.entitlements.forget(lease.tenant_id)
    # What is known of the gates is still what the decision saw: nothing was handled meanwhile.
    held.adopt_renewed(LeaseState(lease, before.waits if before else ()))
    return transitions.answer(lease, saved)
