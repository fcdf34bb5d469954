"""Takes a lease back without its runner, when its deadline has passed or its run must not start."""

from sexton_actors.lease.end import end_lease
from sexton_actors.lease.row import LeaseRow
from sexton_actors.lease.transitions import reclaim as transitions
from sexton_actors.protocol import lease as m
from sexton_storage.writes import Ended


async def reclaim(row: LeaseRow, cause: transitions.Cause) -> None:
    """Nothing happens before the deadline, unless the runner was revoked or has died."""
    state = await row.current()
    event = None if state is None else await row.world.storage.events.load(state.lease.event_id)
    if event is None:
        # Purged with its agent: reading it again forgets the lease here too.
        await row.load()
        return
    held = event
    ended = await end_lease(row, lambda state, now: transitions.reclaim(state, held, now, cause))
    if isinstance(ended, Ended):
        row.world.meters.reclaimed[cause] += 1


async def abort(row: LeaseRow, message: m.Abort) -> None:
    await end_lease(row, lambda state, now: transitions.abort(state, message, now))
