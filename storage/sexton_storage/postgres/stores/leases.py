"""Leases, read from PostgreSQL."""

from collections.abc import Sequence
from uuid import UUID

from sexton_storage.postgres.sql.schema import GATES, LEASES
from sexton_storage.postgres.stores.base import PostgresStore
from sexton_storage.records.gates import Gate
from sexton_storage.records.leases import Lease

_LEASE = f"SELECT {LEASES.columns()} FROM leases"
_LIVE = f"SELECT {LEASES.columns('l')} FROM live_leases n JOIN leases l ON l.id = n.lease_id"
_LIVE_OF_AGENT = f"""
SELECT {LEASES.columns("l")} FROM agent_heads h JOIN leases l ON l.id = h.live_lease_id
 WHERE h.zombie_id = $1 AND l.status IN ('active', 'cancelling')
"""
# No index holds a deadline: every renewal would have to move in it. A live lease has a time before which
# nobody need ask for its deadline. When that has come, and the lease was renewed meanwhile, it is put off
# until the deadline that it has by then: once a term, however often it is renewed. Whoever else has locked a
# row (another node, an end) puts it off or takes it away, so nobody waits for it.
LOOK = """
WITH due AS (
    SELECT n.workspace_id, n.zombie_id, n.lease_id, l.expires_at, l.expires_at <= sexton_now_ms() AS is_over
      FROM live_leases n JOIN leases l ON l.id = n.lease_id
     WHERE n.look_at <= sexton_now_ms()
     ORDER BY n.look_at LIMIT $1
), renewed AS (
    SELECT d.*
      FROM due d JOIN live_leases n USING (workspace_id, zombie_id, lease_id)
     WHERE NOT d.is_over
       FOR NO KEY UPDATE OF n SKIP LOCKED
), put_off AS (
    UPDATE live_leases n SET look_at = r.expires_at
      FROM renewed r
     WHERE n.workspace_id = r.workspace_id AND n.zombie_id = r.zombie_id AND n.lease_id = r.lease_id
)
SELECT lease_id, is_over FROM due ORDER BY expires_at, lease_id
"""
# A row for each gate, or one with one without: then the gate's id is NULL.
_LEASE_WITH_GATES = f"""
SELECT {LEASES.columns("l")}, {GATES.columns("g")}
  FROM leases l LEFT JOIN gates g ON g.lease_id = l.id
 WHERE l.id = $1 ORDER BY g.requested_at, g.id
"""
_GATE_AT = len(LEASES.names)
_GATE_ID = _GATE_AT + GATES.names.index("id")


class PostgresLeases(PostgresStore):
    async def load(self, lease_id: UUID) -> Lease | None:
        return LEASES.maybe(await self._row(f"{_LEASE} WHERE id = $1", lease_id))

    async def load_with_gates(self, lease_id: UUID) -> tuple[Lease, Sequence[Gate]] | None:
        rows = await self._rows(_LEASE_WITH_GATES, lease_id)
        if not rows:
            return None
        gates = [GATES.record(row, _GATE_AT) for row in rows if row[_GATE_ID] is not None]
        return LEASES.record(rows[0]), gates

    async def live_of_runner(self, runner_id: UUID) -> Sequence[Lease]:
        return LEASES.many(await self._rows(f"{_LIVE} WHERE n.runner_id = $1 ORDER BY l.id", runner_id))

    async def live_of_zombie(self, zombie_id: UUID) -> Lease | None:
        return LEASES.maybe(await self._row(_LIVE_OF_AGENT, zombie_id))

    async def count_live_by_runner(self, runner_ids: Sequence[UUID]) -> dict[UUID, int]:
        query = "SELECT runner_id, count(*) FROM live_leases WHERE runner_id = ANY($1) GROUP BY runner_id"
        held = {row[0]: row[1] for row in await self._rows(query, list(runner_ids))}
        return {runner_id: held.get(runner_id, 0) for runner_id in runner_ids}

    async def expired(self, *, limit: int) -> Sequence[UUID]:
        while True:
            rows = await self._rows(LOOK, limit)
            expired = [row["lease_id"] for row in rows if row["is_over"]]
            # All that was due was looked at, or there is as much to do as was asked for.
            if len(rows) < limit or len(expired) == limit:
                return expired
