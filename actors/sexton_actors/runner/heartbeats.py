"""Answers heartbeats: what to stop at once, and whether to go on; a quiet one is held open."""

from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID

from sexton_actors.protocol import runner as m
from sexton_actors.protocol.dispatcher import Withdraw
from sexton_actors.refusal import Refusal
from sexton_actors.runner import transitions
from sexton_actors.runner.listeners import Listener
from sexton_actors.runner.record import HeldRunner
from sexton_engine import DEFERRED
from sexton_storage.records.runners import Runner
from sexton_storage.refusals import Lost

OFFERED_BY: Final = "system:heartbeat"


async def heartbeat(held: HeldRunner, runner: Runner, message: m.Heartbeat) -> Any:
    """A ``Beat``, now or when there is something to stop; refused once the runner is revoked."""
    tells = message.offers is not None or message.release not in {"", runner.release}
    if tells and (refusal := await _introduce(held, message)):
        return refusal
    beat = await _beat(held, runner, message.active_lease_ids)
    quiet = isinstance(beat, m.Beat) and beat.status != "stop" and not beat.cancelled_lease_ids
    waits = message.wait_ms > 0 and message.active_lease_ids and held.listeners.has_room()
    if not quiet or not waits:
        return beat
    held.listeners.add(message)
    return DEFERRED


async def _introduce(held: HeldRunner, message: m.Heartbeat) -> Refusal | None:
    """Keep what the runner is and offers now; an open poll ends, so that the next is by the new offers."""

    async def attempt(runner: Runner, _now: int) -> Refusal | Lost | None:
        changed = transitions.introduce(runner, message.offers, message.release)
        if changed is None:
            return None
        if not await held.save(changed, OFFERED_BY):
            return Lost()
        if changed.offers != runner.offers:
            held.context.tell("dispatcher", "", Withdraw(changed.id))
        return None

    return await held.until_kept(attempt)


async def _beat(held: HeldRunner, runner: Runner, claimed: tuple[UUID, ...]) -> m.Beat | Refusal:
    if refusal := transitions.revoked(runner):
        return refusal
    if not held.cancelling.issubset(claimed):
        # It may have stopped that already, and said so at another node.
        await held.load()
    lost = await held.lost(claimed)
    return m.Beat(transitions.beat_status(runner), (*held.cancelling, *lost))


async def look(held: HeldRunner, runner: Runner) -> None:
    """Another node may have marked a lease, or changed the runner's standing."""
    if not held.listeners:
        return
    await held.load()
    runner = held.record or runner
    if (
        held.cancelling
        or not held.leases.issuperset(held.listeners.claimed())
        or transitions.revoked(runner)
        or transitions.beat_status(runner) != "ok"
    ):
        await answer(held, runner, held.listeners.take_all())


async def answer(held: HeldRunner, runner: Runner, listeners: Iterator[Listener]) -> None:
    """Answer heartbeats that were held open, as things are now."""
    for listener in listeners:
        listener.port.set(await _beat(held, runner, listener.claimed))
