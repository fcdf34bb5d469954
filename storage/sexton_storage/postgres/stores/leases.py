"""Leases, read from PostgreSQL."""

from collections.abc import Sequence
from uuid import UUID

from sexton_storage.postgres.sql.schema import GATES, LEASES, LIVE, LIVE_OF_AGENT
from sexton_storage.postgres.stores.base import PostgresStore
from sexton_storage.records.gates import Gate
from sexton_storage.records.leases import Lease

_LEASE = f"SELECT {LEASES.columns()} FROM leases"
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
        return LEASES.many(
            await self._rows(f"{_LEASE} WHERE runner_id = $1 AND {LIVE} ORDER BY id", runner_id)
        )

    async def live_of_zombie(self, zombie_id: UUID) -> Lease | None:
        return LEASES.maybe(await self._row(f"{_LEASE} WHERE zombie_id = $1 AND {LIVE_OF_AGENT}", zombie_id))

    async def count_live_by_runner(self, runner_ids: Sequence[UUID]) -> dict[UUID, int]:
        query = (
            f"SELECT runner_id, count(*) FROM leases WHERE runner_id = ANY($1) AND {LIVE} GROUP BY runner_id"
        )
        held = {row[0]: row[1] for row in await self._rows(query, list(runner_ids))}
        return {runner_id: held.get(runner_id, 0) for runner_id in runner_ids}

    async def expired(self, *, limit: int) -> Sequence[UUID]:
        # There is no index on expires_at: every renewal would have to move in it. The live ones are few
        # enough to scan.
        query = (
            f"SELECT id FROM leases WHERE {LIVE} AND expires_at <= sexton_now_ms()"
            " ORDER BY expires_at, id LIMIT $1"
        )
        return [row[0] for row in await self._rows(query, limit)]
