"""Tells the runner of a lease that its run is to stop."""

from sexton_actors.lease.row import LeaseRow
from sexton_actors.lease.transitions.state import LeaseState
from sexton_actors.protocol.runner import LeaseCancelling
from sexton_storage.records.leases import LeaseStatus
from sexton_storage.signals import Signal, Topic


async def cancel(row: LeaseRow) -> None:
    """The row was marked: its runner is to know at once, before anybody asks the database."""
    told = row.is_live() and row.state is not None
    if told and row.state is not None:
        _tell_cancelling(row, row.state)
    state = await row.load()
    if not told and state is not None and state.lease.status is LeaseStatus.CANCELLING:
        _tell_cancelling(row, state)


def _tell_cancelling(row: LeaseRow, state: LeaseState) -> None:
    runner_id = state.lease.runner_id
    row.context.tell("runner", runner_id, LeaseCancelling(row.id))
    # It may wait on any node.
    row.world.storage.signals.send(Signal(Topic.CANCEL, runner_id, about=row.id))
