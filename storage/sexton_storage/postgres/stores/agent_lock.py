"""Locks an agent, and asks whether a lease still holds it."""

from enum import Enum
from uuid import UUID

from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.records.leases import LeaseToken

_LOCK = "SELECT live_lease_id, fence FROM agent_heads WHERE zombie_id = $1 FOR NO KEY UPDATE"
_LIVE = """
SELECT EXISTS (SELECT FROM leases WHERE id = $1 AND status IN ('active', 'cancelling')
                                    AND expires_at > sexton_now_ms())
"""


class Hold(Enum):
    GONE = "there is no such agent"
    LOST = "the lease does not hold it"
    HELD = "nobody else changes it until the transaction ends"


async def lock_agent(connection: Connection, zombie_id: UUID, held: LeaseToken | None = None) -> Hold:
    """Lock the agent's head; without ``held`` whoever asks may."""
    head = await connection.fetchrow(_LOCK, zombie_id)
    if head is None:
        return Hold.GONE
    if held is None:
        return Hold.HELD
    if head["live_lease_id"] != held.lease_id or head["fence"] != held.fencing_token:
        return Hold.LOST
    return Hold.HELD if await connection.fetchval(_LIVE, held.lease_id) else Hold.LOST
