"""Hands fresh leases over to the runner that polled; what cannot be handed over goes back."""

from collections.abc import Sequence
from typing import Any

from sexton_actors.lease.handover.mcp_servers import NotToBeHad
from sexton_actors.lease.handover.payload import lease_payload
from sexton_actors.lease.handover.secrets import MissingCredential
from sexton_actors.protocol.lease import Abort, Undelivered
from sexton_actors.protocol.queue import Grant
from sexton_actors.world import World
from sexton_engine import ActorSystem


async def deliver(grants: Sequence[Grant], system: ActorSystem, world: World) -> list[dict[str, Any]]:
    """The leases as the contract spells them (§9), ready to be encoded.

    One whose credential was deleted since its claim, or whose MCP server is not to be had, is left out, and
    its event ends. Raises
    StorageUnavailable; all leases go back to their queues then, as when the asking task is cancelled.
    """
    leases = []
    try:
        for grant in grants:
            lease = await lease_payload(grant, world)
            if isinstance(lease, MissingCredential | NotToBeHad):
                system.tell("lease", grant.lease.id, Abort(lease.label, lease.detail))
            else:
                leases.append(lease)
    except BaseException:
        for grant in grants:
            system.tell("lease", grant.lease.id, Undelivered())
        raise
    return leases
