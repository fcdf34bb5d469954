"""Leases, gates, frames and metering rows, read from PostgreSQL."""

from collections.abc import Sequence
from uuid import UUID

from sexton_storage.postgres.base import Conditions, PostgresStore
from sexton_storage.postgres.schema import FRAMES, GATES, LEASES, LIVE, LIVE_OF_AGENT, METERING
from sexton_storage.records import Frame, Gate, GateStatus, Lease, MeteringPeriod
from sexton_storage.stores import Page

_LEASE = f"SELECT {LEASES.columns()} FROM leases"
_GATE = f"SELECT {GATES.columns()} FROM gates"
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


class PostgresGates(PostgresStore):
    async def load(self, gate_id: UUID) -> Gate | None:
        return GATES.maybe(await self._row(f"{_GATE} WHERE id = $1", gate_id))

    async def find_by_action(self, zombie_id: UUID, action_id: str) -> Gate | None:
        query = f"{_GATE} WHERE zombie_id = $1 AND action_id = $2 ORDER BY requested_at DESC, id DESC LIMIT 1"
        return GATES.maybe(await self._row(query, zombie_id, action_id))

    async def list(
        self,
        workspace_id: UUID,
        *,
        limit: int,
        status: GateStatus | None = None,
        zombie_id: UUID | None = None,
        gate_kind: str | None = None,
        after: Page | None = None,
    ) -> Sequence[Gate]:
        where = Conditions("workspace_id = $1", workspace_id)
        if status is not None:
            where.add("status = {}", status)
        if zombie_id is not None:
            where.add("zombie_id = {}", zombie_id)
        if gate_kind is not None:
            where.add("gate_kind = {}", gate_kind)
        if after is not None:
            where.add("(requested_at, id) > ({}, {})", after.created_at, after.id)
        query = f"{_GATE} WHERE {where} ORDER BY requested_at, id LIMIT {int(limit)}"
        return GATES.many(await self._rows(query, *where.args))

    async def of_lease(self, lease_id: UUID) -> Sequence[Gate]:
        return GATES.many(
            await self._rows(f"{_GATE} WHERE lease_id = $1 ORDER BY requested_at, id", lease_id)
        )

    async def overdue(self, *, limit: int) -> Sequence[UUID]:
        query = (
            "SELECT id FROM gates WHERE status = 'pending' AND timeout_at <= sexton_now_ms()"
            " ORDER BY timeout_at, id LIMIT $1"
        )
        return [row[0] for row in await self._rows(query, limit)]

    async def orphaned(self, *, limit: int) -> Sequence[UUID]:
        query = (
            "SELECT g.id FROM gates g LEFT JOIN events e ON e.id = g.event_id"
            " WHERE g.status = 'pending' AND (e.id IS NULL OR e.completed_at IS NOT NULL) LIMIT $1"
        )
        return [row[0] for row in await self._rows(query, limit)]

    async def asked(
        self, zombie_id: UUID, tool_name: str, action_name: str, *, since: int, limit: int
    ) -> Sequence[tuple[int, str]]:
        query = (
            "SELECT requested_at, action_id FROM gates WHERE zombie_id = $1 AND tool_name = $2"
            " AND action_name = $3 AND requested_at >= $4 AND lease_id IS NOT NULL"
            " ORDER BY requested_at DESC, id DESC LIMIT $5"
        )
        rows = await self._rows(query, zombie_id, tool_name, action_name, since, limit)
        return [(row[0], row[1]) for row in reversed(rows)]


# Frames go by age first, for all agents alike; then those of agents that have more than they may keep.
_PRUNE_OLD = """
DELETE FROM frames WHERE (zombie_id, seq) IN (
    SELECT zombie_id, seq FROM frames WHERE at_ms < sexton_now_ms() - $1 LIMIT $2)
"""
_PRUNE_MANY = """
DELETE FROM frames WHERE (zombie_id, seq) IN (
    SELECT f.zombie_id, f.seq FROM agent_heads h
     CROSS JOIN LATERAL (SELECT zombie_id, seq FROM frames
                          WHERE zombie_id = h.zombie_id AND seq <= h.frame_seq - $1 ORDER BY seq LIMIT $2) f
     WHERE h.frame_seq > $1 LIMIT $2)
"""
_BOUNDS = """
SELECT (SELECT min(seq) FROM frames WHERE zombie_id = $1),
       (SELECT frame_seq FROM agent_heads WHERE zombie_id = $1)
"""


class PostgresFrames(PostgresStore):
    async def read(self, zombie_id: UUID, *, after: int, limit: int) -> Sequence[Frame]:
        query = (
            f"SELECT {FRAMES.columns()} FROM frames WHERE zombie_id = $1 AND seq > $2 ORDER BY seq LIMIT $3"
        )
        return FRAMES.many(await self._rows(query, zombie_id, after, limit))

    async def bounds(self, zombie_id: UUID) -> tuple[int, int]:
        row = await self._row(_BOUNDS, zombie_id)
        oldest, newest = (None, 0) if row is None else (row[0], row[1] or 0)
        return newest + 1 if oldest is None else oldest, newest

    async def heads(self, zombie_ids: Sequence[UUID]) -> dict[UUID, int]:
        query = "SELECT zombie_id, frame_seq FROM agent_heads WHERE zombie_id = ANY($1)"
        return {row[0]: row[1] for row in await self._rows(query, list(zombie_ids))}

    async def prune(self, *, keep_ms: int, keep_frames: int, limit: int) -> int:
        # Deleting what is past keeping may be done twice: no mark is needed.
        old = await self._database.read(lambda c: c.execute(_PRUNE_OLD, keep_ms, limit))
        pruned = _count(old)
        if pruned < limit:
            many = await self._database.read(lambda c: c.execute(_PRUNE_MANY, keep_frames, limit - pruned))
            pruned += _count(many)
        return pruned


def _count(command_tag: str) -> int:
    return int(command_tag.rsplit(" ", 1)[-1])


class PostgresMetering(PostgresStore):
    async def list(self, tenant_id: UUID, event_id: UUID) -> Sequence[MeteringPeriod]:
        query = (
            f"SELECT {METERING.columns()} FROM metering WHERE event_id = $2 AND tenant_id = $1"
            " ORDER BY attempt, slice_seq"
        )
        return METERING.many(await self._rows(query, tenant_id, event_id))
