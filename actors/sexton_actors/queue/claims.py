"""Claims the oldest event for a runner, and settles a claim of which nobody knows whether it was kept."""

from collections.abc import Coroutine
from typing import Any, Final, NamedTuple

from sexton_actors.protocol import queue as m
from sexton_actors.protocol.dispatcher import ClaimSettled
from sexton_actors.protocol.lease import Abort, Granted, Undelivered
from sexton_actors.protocol.runner import LeaseTaken
from sexton_actors.queue.preparation import Run, claim_of, prepared
from sexton_actors.queue.readiness import announce
from sexton_actors.queue.state import QueueState
from sexton_actors.traces.context import context_of
from sexton_actors.world import World
from sexton_engine import DEFERRED, Deferred
from sexton_storage.errors import StorageUnavailable
from sexton_storage.periods import DAY_MS, day_of
from sexton_storage.records.events import Event
from sexton_storage.records.zombies import Zombie
from sexton_storage.refusals import CHANGED, NOT_FOR_RUNNER, NOT_GRANTED, OTHER_VERSION, OVER_BUDGET
from sexton_storage.rules import LIVE_LEASE
from sexton_storage.spread import Example
from sexton_storage.writes import Claimed, ClaimEvent, Exhausted, NothingToClaim

SETTLE_AFTER_S: Final = 1.0
"""How often a claim of unknown outcome is asked about until the database answers."""
LOOKS_AGAIN: Final = 3
"""How often a claim is made again because the next event asks for another version of the agent."""
BUDGET_LOOK_MS: Final = 60_000
"""How soon an agent over its budget is looked at again: another node may have raised it."""
UNAVAILABLE: Final = NothingToClaim("unavailable")
Saved = Claimed | NothingToClaim | Exhausted


class _Try(NamedTuple):
    """A claim, and what it is made with."""

    zombie: Zombie
    run: Run
    write: ClaimEvent


async def claim(queue: QueueState, message: m.Claim) -> Deferred | None:
    """Claim for one offer, and tell the dispatcher what came of it. Raises StorageUnavailable.

    ``DEFERRED`` while it is held until its batch has committed: that costs no task a claim.
    """
    queue.announced = False
    try:
        tried = await _tried(queue, message)
        if not isinstance(tried, NothingToClaim):
            return _held(queue, message, tried)
    except BaseException:
        _settled(queue, message, UNAVAILABLE)
        raise
    finally:
        if message.part is not None:
            message.part.drop()
    _settled(queue, message, tried)
    await _look_again(queue, tried)
    return None


async def _tried(queue: QueueState, message: m.Claim) -> _Try | NothingToClaim:
    zombie, manifest = await queue.at_hand(), queue.manifest
    if zombie is not None and manifest is not None and queue.lending_of(zombie, manifest).withheld:
        # A claim names the version that it was made from, a refusal does not.
        zombie, manifest = await queue.refresh(), queue.manifest
    if zombie is None or manifest is None:
        return NothingToClaim("gone")
    if queue.world.now_ms() < queue.over_until:
        return NothingToClaim(OVER_BUDGET)
    if queue.lending_of(zombie, manifest).withheld:
        return NothingToClaim(NOT_GRANTED)
    run = await prepared(queue, zombie, manifest, None)
    return _Try(zombie, run, claim_of(queue, message, zombie, run))


def _held(queue: QueueState, message: m.Claim, tried: _Try) -> Deferred:
    hold = queue.context.hold()

    def landed(saved: Saved | Exception) -> None:
        if hold.is_over:
            # Killed or crashed while it was being committed: if it was, nobody has it.
            if isinstance(saved, Claimed | Exception):
                queue.context.tell("lease", tried.write.lease_id, Undelivered())
            _settled(queue, message, UNAVAILABLE)
        else:
            hold.finish(_saved, queue, message, tried, saved)

    if message.part is None or not message.part.submit(tried.write, landed):
        queue.world.storage.journal.submit(tried.write, landed)
    return DEFERRED


def _saved(
    queue: QueueState, message: m.Claim, tried: _Try, saved: Saved | Exception
) -> Coroutine[Any, Any, None] | None:
    if isinstance(saved, Exception):
        _in_doubt(queue, tried.write, saved)
        _settled(queue, message, UNAVAILABLE)
        raise saved
    if _asks_for_another(saved):
        return _again(queue, message, tried, saved)
    outcome = _taken(queue, message, tried, saved)
    _settled(queue, message, outcome)
    return _look_again(queue, outcome) if isinstance(outcome, NothingToClaim | Exhausted) else None


async def _again(queue: QueueState, message: m.Claim, tried: _Try, saved: Saved) -> None:
    try:
        outcome = await _in_the_end(queue, message, tried, saved)
    except BaseException:
        _settled(queue, message, UNAVAILABLE)
        raise
    _settled(queue, message, outcome)
    await _look_again(queue, outcome)


async def _in_the_end(queue: QueueState, message: m.Claim, tried: _Try, saved: Saved) -> m.ClaimOutcome:
    """Claim again as long as the next event turns out to ask for another version of the agent."""
    for _ in range(LOOKS_AGAIN):
        if not (isinstance(saved, NothingToClaim) and _asks_for_another(saved)):
            break
        run = await prepared(queue, tried.zombie, tried.run.active, saved.asked)
        tried = _Try(tried.zombie, run, claim_of(queue, message, tried.zombie, run))
        saved = await _write(queue, tried.write)
    return _taken(queue, message, tried, saved)


def _asks_for_another(saved: Saved) -> bool:
    return isinstance(saved, NothingToClaim) and saved.reason == OTHER_VERSION


def _settled(queue: QueueState, message: m.Claim, outcome: m.ClaimOutcome) -> None:
    # Told even when storage failed: an offer must never wait for an answer that will not come.
    queue.context.tell("dispatcher", "", ClaimSettled(message.offer_id, queue.id, outcome))


async def _look_again(queue: QueueState, outcome: m.ClaimOutcome) -> None:
    if isinstance(outcome, NothingToClaim) and outcome.reason in {CHANGED, OTHER_VERSION}:
        # It may need another runner now.
        queue.doubt()
        await announce(queue)
    if isinstance(outcome, NothingToClaim) and outcome.reason in NOT_FOR_RUNNER:
        # Nothing is wrong with the agent: another runner may have it.
        await announce(queue)
    if isinstance(outcome, Exhausted):
        # That event is set aside; those behind it are set aside in their turn, or a credit frees them
        # all.
        await announce(queue)


def _taken(queue: QueueState, message: m.Claim, tried: _Try, taken: Saved) -> m.ClaimOutcome:
    """What a claim that was written comes to, once it is told to whom it concerns."""
    zombie, run, now = tried.zombie, tried.run, tried.write.now
    if not isinstance(taken, Claimed):
        if isinstance(taken, NothingToClaim) and taken.reason == OVER_BUDGET:
            queue.over_until = min(now + BUDGET_LOOK_MS, (day_of(now) + 1) * DAY_MS)
        return taken
    queue.confirm(zombie.version, now)
    queue.leased = queue.looked = True
    queue.last_runner_id = message.runner_id
    queue.world.backlog.take(queue.id, zombie.workspace_id)
    if taken.lease.attempt == 1:
        waited_ms = taken.lease.granted_at - taken.event.created_at
        note_wait(queue.world, taken.event, waited_ms / 1000)
    queue.context.tell("lease", taken.lease.id, Granted(taken.lease))
    if (fault := run.fault) is not None:
        # It is claimed all the same: only under a lease can an event end.
        queue.context.tell("lease", taken.lease.id, Abort(*fault))
        return NothingToClaim(fault.label)
    queue.context.tell("runner", message.runner_id, LeaseTaken(taken.lease.id))
    return m.Grant(
        taken.event,
        taken.lease,
        run.version.manifest,
        run.choice,
        taken.endowed,
        run.unlent,
        run.models.fallbacks,
    )


async def _write(queue: QueueState, write: ClaimEvent) -> Saved:
    try:
        return await queue.world.storage.journal.write(write)
    except BaseException as fault:
        _in_doubt(queue, write, fault)
        raise


def _in_doubt(queue: QueueState, write: ClaimEvent, fault: BaseException) -> None:
    if isinstance(fault, StorageUnavailable):
        queue.context.set_timer(write.lease_id, SETTLE_AFTER_S, m.SettleClaim(write.lease_id))
    else:
        # Killed or crashed while it was being committed: if it was, nobody has it.
        queue.context.tell("lease", write.lease_id, Undelivered())


async def settle(queue: QueueState, message: m.SettleClaim) -> None:
    """Give back the lease if it was granted; asked again until the database answers."""
    queue.context.set_timer(message.lease_id, SETTLE_AFTER_S, message)
    lease = await queue.world.storage.leases.load(message.lease_id)
    queue.context.cancel_timer(message.lease_id)
    if lease is not None and lease.status in LIVE_LEASE:
        queue.leased = True
        queue.context.tell("lease", lease.id, Undelivered())


def note_wait(world: World, event: Event, waited_s: float) -> None:
    """Note how long an event waited; with its trace, where traces are sent."""
    spread = world.meters.ingress_to_lease
    if world.traces is None or not (context := context_of(event)).sampled:
        spread.note(waited_s)
    else:
        spread.note_example(Example(context.trace_id, waited_s, world.now_ms()))
