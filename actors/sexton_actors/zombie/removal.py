"""Deletes an agent: kills what it does, then purges what is kept of it."""

from sexton_actors.protocol import zombie as m
from sexton_actors.protocol.hub import AgentGone
from sexton_actors.protocol.lease import Expire
from sexton_actors.protocol.queue import AgentChanged
from sexton_actors.protocol.runner import LeaseCancelling
from sexton_actors.refusal import Refusal
from sexton_actors.zombie import transitions
from sexton_actors.zombie.record import HeldZombie
from sexton_storage.records.leases import Lease
from sexton_storage.records.zombies import ZombieStatus


async def remove(held: HeldZombie, message: m.Remove) -> m.Removed | Refusal:
    """Killed first, so that nothing new comes while the history goes.

    A crash in between leaves a killed agent, which can be deleted again.
    """
    if held.record is None:
        return held.unknown()
    if held.record.status is not ZombieStatus.KILLED:
        killed = await held.change(lambda zombie, now: transitions.kill(zombie, message.by, now))
        if isinstance(killed, Refusal):
            return killed
    storage = held.world.storage
    lease = await storage.leases.live_of_zombie(held.id)
    if lease is not None:
        # Told before its row goes: the lease's own actor may come too late to read it.
        held.context.tell("runner", lease.runner_id, LeaseCancelling(lease.id))
    deleted = await storage.zombies.delete(held.id)
    held.forget()
    _tell(held, lease)
    return m.Removed() if deleted else held.unknown()


def _tell(held: HeldZombie, lease: Lease | None) -> None:
    """Those who hold something of it look again, and find that it is gone."""
    held.context.tell("queue", held.id, AgentChanged())
    held.context.tell("hub", "", AgentGone(held.id))
    if lease is not None:
        held.context.tell("lease", lease.id, Expire())
