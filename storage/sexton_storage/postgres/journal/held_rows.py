"""Finds out which tenants' rows somebody else holds, without waiting for any of them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.sql.columns import Columns
from sexton_storage.writes import (
    AppendEvent,
    AppendFrames,
    CancelEvent,
    ClaimEvent,
    EndLease,
    OpenGate,
    RenewLease,
    ResolveGate,
    Write,
)

NOBODY = UUID(int=0)


class Place(NamedTuple):
    """Where a write belongs: its tenant (``NOBODY`` where what it is about is gone) and its agent."""

    tenant_id: UUID
    zombie_id: UUID | None


class _Named(NamedTuple):
    """What a write itself says of its place."""

    lease_id: UUID | None = None
    gate_id: UUID | None = None
    zombie_id: UUID | None = None


_NAMED: Mapping[type, Callable[[Any], _Named]] = {
    RenewLease: lambda w: _Named(lease_id=w.lease.id, zombie_id=w.lease.zombie_id),
    EndLease: lambda w: _Named(lease_id=w.lease_id),
    AppendEvent: lambda w: _Named(zombie_id=w.event.zombie_id),
    ClaimEvent: lambda w: _Named(zombie_id=w.zombie_id),
    OpenGate: lambda w: _Named(zombie_id=w.gate.zombie_id),
    ResolveGate: lambda w: _Named(gate_id=w.gate_id),
    CancelEvent: lambda w: _Named(zombie_id=w.zombie_id),
    AppendFrames: lambda w: _Named(zombie_id=w.zombie_id),
}
_COLUMNS = Columns(_Named, *_Named._fields)
_PLACES = f"""
SELECT coalesce(h.tenant_id, l.tenant_id, g.tenant_id) AS tenant_id, h.zombie_id
  FROM {_COLUMNS.numbered_rows}
  LEFT JOIN leases l ON l.id = v.lease_id
  LEFT JOIN gates g ON g.id = v.gate_id
  LEFT JOIN agent_heads h ON h.zombie_id = coalesce(v.zombie_id, l.zombie_id, g.zombie_id)
 ORDER BY v.ord
"""
# Whatever is passed over is held. The locks that are taken on the way last as long as the statement.
_HELD_TENANTS = """
WITH free AS (SELECT id FROM tenants WHERE id = ANY($1) FOR NO KEY UPDATE SKIP LOCKED)
SELECT id FROM tenants WHERE id = ANY($1) AND id NOT IN (SELECT id FROM free)
"""
_HELD_HEADS = """
WITH free AS (SELECT zombie_id FROM agent_heads WHERE zombie_id = ANY($1) FOR NO KEY UPDATE SKIP LOCKED)
SELECT zombie_id FROM agent_heads WHERE zombie_id = ANY($1) AND zombie_id NOT IN (SELECT zombie_id FROM free)
"""


async def places_of(connection: Connection, writes: Sequence[Write[Any]]) -> Sequence[Place]:
    """Where each of the writes belongs."""
    named = [_NAMED[type(write)](write) for write in writes]
    rows = await connection.fetch(_PLACES, *_COLUMNS.arrays(named))
    return [Place(row["tenant_id"] or NOBODY, row["zombie_id"]) for row in rows]


async def held_tenants(connection: Connection, places: Collection[Place]) -> Collection[UUID]:
    """Tenants of which somebody holds the ledger's row, or the head of one of these agents."""
    tenants = list({place.tenant_id for place in places})
    of_head = {p.zombie_id: p.tenant_id for p in places if p.zombie_id is not None}
    held = {row["id"] for row in await connection.fetch(_HELD_TENANTS, tenants)}
    return held | {of_head[row["zombie_id"]] for row in await connection.fetch(_HELD_HEADS, list(of_head))}
