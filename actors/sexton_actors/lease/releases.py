"""Gives an event back before its run is over: released by its runner, parked at a gate, or not delivered."""

from sexton_actors.lease.end import end_lease
from sexton_actors.lease.record import HeldLease
from sexton_actors.lease.transitions import releases as transitions
from sexton_actors.protocol import lease as m
from sexton_actors.refusal import Refusal
from sexton_storage.writes import Ended


async def release(held: HeldLease, message: m.Release) -> m.Released | Refusal:
    ended = await end_lease(held, lambda state, now: transitions.release(state, message, now))
    return m.Released() if isinstance(ended, Ended) else ended or held.raced()


async def park(held: HeldLease, message: m.Park) -> m.Parked | Refusal:
    # Read before the decision; what becomes of it until the commit is settled by the commit.
    gate = await held.world.storage.gates.load(message.gate_id)
    ended = await end_lease(held, lambda state, now: transitions.park(state, message, gate, now))
    return m.Parked() if isinstance(ended, Ended) else ended or held.raced()


async def undelivered(held: HeldLease) -> None:
    """The grant reached no runner."""
    await end_lease(held, transitions.undelivered)
