"""Takes a lease back without its runner, when its deadline has passed or its run must not start."""

from sexton_actors.lease.end import end_lease
from sexton_actors.lease.record import HeldLease
from sexton_actors.lease.transitions import reclaim as transitions
from sexton_actors.protocol import lease as m
from sexton_storage.writes import Ended


async def reclaim(held: HeldLease, cause: transitions.Cause) -> None:
    """Nothing happens before the deadline, unless the runner was revoked or has died."""
    state = await held.refresh()
    event = None if state is None else await held.world.storage.events.load(state.lease.event_id)
    if event is None:
        # Purged with its agent: reading it again forgets the lease here too.
        await held.load()
        return
    known = event
    ended = await end_lease(held, lambda state, now: transitions.reclaim(state, known, now, cause))
    if isinstance(ended, Ended):
        held.world.meters.reclaimed[cause] += 1


async def abort(held: HeldLease, message: m.Abort) -> None:
    await end_lease(held, lambda state, now: transitions.abort(state, message, now))
