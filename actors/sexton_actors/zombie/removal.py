"""Deletes an agent: kills what it does, then purges what is kept of it."""

from sexton_actors.protocol import zombie as m
from sexton_actors.protocol.hub import AgentGone
from sexton_actors.protocol.lease import Expire
from sexton_actors.protocol.queue import AgentChanged
from sexton_actors.protocol.runner import LeaseCancelling
from sexton_actors.refusal import Refusal
from sexton_actors.zombie import transitions
from sexton_actors.zombie.record import ZombieRecord
from sexton_storage.records.leases import Lease
from sexton_storage.records.zombies import ZombieStatus


async def remove(record: ZombieRecord, message: m.Remove) -> m.Removed | Refusal:
    """Killed first, so that nothing new comes while the history goes.

    A crash in between leaves a killed agent, which can be deleted again.
    """
    if record.zombie is None:
        return record.unknown()
    if record.zombie.status is not ZombieStatus.KILLED:
        killed = await record.change(lambda zombie, now: transitions.kill(zombie, message.by, now))
        if isinstance(killed, Refusal):
            return killed
    storage = record.world.storage
    lease = await storage.leases.live_of_zombie(record.id)
    if lease is not None:
        # Told before its row goes: the lease's own actor may come too late to read it.
        record.context.tell("runner", lease.runner_id, LeaseCancelling(lease.id))
    deleted = await storage.zombies.delete(record.id)
    record.forget()
    _tell(record, lease)
    return m.Removed() if deleted else record.unknown()


def _tell(record: ZombieRecord, lease: Lease | None) -> None:
    """Those who hold something of it look again, and find that it is gone."""
    record.context.tell("queue", record.id, AgentChanged())
    record.context.tell("hub", "", AgentGone(record.id))
    if lease is not None:
        record.context.tell("lease", lease.id, Expire())
