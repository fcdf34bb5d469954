"""Tells the runner of a lease that its run is to stop."""

from sexton_actors.lease.record import HeldLease
from sexton_actors.lease.transitions.state import LeaseState
from sexton_actors.protocol.runner import LeaseCancelling
from sexton_storage.records.leases import LeaseStatus
from sexton_storage.signals import Signal, Topic


async def cancel(held: HeldLease) -> None:
    """The row was marked: its runner is to know at once, before anybody asks the database."""
    told = held.is_live() and held.record is not None
    if told and held.record is not None:
        _tell_cancelling(held, held.record)
    state = await held.load()
    if not told and state is not None and state.lease.status is LeaseStatus.CANCELLING:
        _tell_cancelling(held, state)


def _tell_cancelling(held: HeldLease, state: LeaseState) -> None:
    runner_id = state.lease.runner_id
    held.context.tell("runner", runner_id, LeaseCancelling(held.id))
    # It may wait on any node.
    held.world.storage.signals.send(Signal(Topic.CANCEL, runner_id, about=held.id))
