"""Gates, read from PostgreSQL."""

from collections.abc import Sequence
from uuid import UUID

from sexton_storage.paging import Page
from sexton_storage.postgres.sql.schema import GATES
from sexton_storage.postgres.stores.base import Conditions, PostgresStore
from sexton_storage.records.gates import Gate, GateOrder, GateStatus

_GATE = f"SELECT {GATES.columns()} FROM gates"
_PENDING = """
SELECT count(*) FROM (SELECT FROM gates WHERE workspace_id = $1 AND status = 'pending' LIMIT $2) g
"""
_ORDERS = {
    GateOrder.OLDEST: ("requested_at", ">", "ASC"),
    GateOrder.NEWEST: ("requested_at", "<", "DESC"),
    GateOrder.DECIDED: ("updated_at", "<", "DESC"),
}


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
        order: GateOrder = GateOrder.OLDEST,
        after: Page | None = None,
    ) -> Sequence[Gate]:
        where = Conditions("workspace_id = $1", workspace_id)
        if status is not None:
            where.add("status = {}", status)
        if zombie_id is not None:
            where.add("zombie_id = {}", zombie_id)
        if gate_kind is not None:
            where.add("gate_kind = {}", gate_kind)
        time, goes_on, direction = _ORDERS[order]
        if order is GateOrder.DECIDED:
            where.add("status <> 'pending'")
        if after is not None:
            where.add(f"({time}, id) {goes_on} ({{}}, {{}})", after.created_at, after.id)
        query = f"{_GATE} WHERE {where} ORDER BY {time} {direction}, id {direction} LIMIT {int(limit)}"
        return GATES.many(await self._rows(query, *where.args))

    async def pending(self, workspace_id: UUID, *, most: int) -> int:
        found: int = await self._value(_PENDING, workspace_id, most)
        return found

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
            " AND NOT EXISTS (SELECT FROM leases l WHERE l.id = lease_id AND l.shadow)"
            " ORDER BY requested_at DESC, id DESC LIMIT $5"
        )
        rows = await self._rows(query, zombie_id, tool_name, action_name, since, limit)
        return [(row[0], row[1]) for row in reversed(rows)]
