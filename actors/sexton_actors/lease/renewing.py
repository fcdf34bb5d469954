"""Renews a lease: saved, adopted, answered."""

from sexton_actors.lease.messages import Renew, Renewal
from sexton_actors.lease.row import LeaseRow
from sexton_actors.lease.transitions import renewal
from sexton_actors.lease.transitions.state import LeaseState
from sexton_actors.refusal import Refusal
from sexton_actors.terms import MAX_RACES
from sexton_storage.writes import Lost


async def renew(row: LeaseRow, message: Renew) -> Renewal | Refusal:
    """Raises StorageUnavailable: the runner tries again with its next tick, and its counts are cumulative."""
    for _ in range(MAX_RACES):
        state = await row.current()
        if state is None:
            return row.unknown()
        decision = renewal.renew(state, message, row.world.now_ms())
        if isinstance(decision, Refusal):
            return decision
        saved = await row.world.storage.journal.write(decision)
        if not isinstance(saved, Lost):
            row.adopt(LeaseState(decision.lease, state.waits))
            return renewal.answer(decision.lease, saved)
        await row.load()
    return row.raced()
