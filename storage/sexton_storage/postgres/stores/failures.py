"""Groups of failures in PostgreSQL."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

from sexton_storage.documents import storable
from sexton_storage.paging import Page
from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.sql.rows import Rows
from sexton_storage.postgres.stores.base import Conditions, PostgresStore
from sexton_storage.records.failures import (
    END_CHARS,
    HOUR_MS,
    Failure,
    FailureGroup,
    FailureStatus,
    Sorted,
)
from sexton_storage.terms import HOURS_KEEP

GROUPS: Final = Rows(FailureGroup)
_SELECT = f"SELECT {GROUPS.columns()} FROM failure_groups"
_UNSORTED = f"""
SELECT f.event_id, f.zombie_id, f.at, e.failure_label, e.error_code,
       CASE WHEN e.response_text IS NULL THEN ''
            WHEN char_length(e.response_text) <= {2 * END_CHARS} THEN e.response_text
            ELSE left(e.response_text, {END_CHARS}) || E'\\n' || right(e.response_text, {END_CHARS}) END
  FROM failure_events f JOIN events e ON e.id = f.event_id
 WHERE f.group_id IS NULL ORDER BY f.at LIMIT $1
"""
# Whoever sorts at the same time has others; an agent that is being purged is left alone, and gains no rows.
_TAKE = """
SELECT f.event_id, h.tenant_id, h.workspace_id
  FROM failure_events f JOIN agent_heads h ON h.zombie_id = f.zombie_id
 WHERE (f.zombie_id, f.event_id) IN (SELECT * FROM unnest($1::uuid[], $2::uuid[])) AND f.group_id IS NULL
 ORDER BY f.zombie_id, f.event_id FOR UPDATE OF f SKIP LOCKED FOR KEY SHARE OF h SKIP LOCKED
"""
_PUT = """
INSERT INTO failure_groups AS g (id, tenant_id, workspace_id, zombie_id, digest, failure_label, error_code,
                                 message, sample_event_id, first_seen_at, last_seen_at, count)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
ON CONFLICT ON CONSTRAINT failure_groups_alike DO UPDATE
   SET count = g.count + excluded.count,
       first_seen_at = least(g.first_seen_at, excluded.first_seen_at),
       last_seen_at = greatest(g.last_seen_at, excluded.last_seen_at),
       sample_event_id = CASE WHEN excluded.last_seen_at >= g.last_seen_at THEN excluded.sample_event_id
                              ELSE g.sample_event_id END
RETURNING id
"""
_MARK = "UPDATE failure_events SET group_id = $1 WHERE zombie_id = $2 AND event_id = ANY($3)"
_COUNT = """
INSERT INTO failure_hours AS h (zombie_id, group_id, hour, count) VALUES ($1, $2, $3, $4)
ON CONFLICT (zombie_id, group_id, hour) DO UPDATE SET count = h.count + excluded.count
"""
_HOURS = "SELECT group_id, hour, count FROM failure_hours WHERE group_id = ANY($1) AND hour >= $2"
_IS_MUTED = "coalesce(muted_until, 0) > {}"
_IS_KNOWN = "coalesce(acknowledged_at, -1) >= last_seen_at"
_IN_STATUS: Final[Mapping[FailureStatus, str]] = {
    FailureStatus.MUTED: _IS_MUTED,
    FailureStatus.ACKNOWLEDGED: f"NOT {_IS_MUTED} AND {_IS_KNOWN}",
    FailureStatus.OPEN: f"NOT {_IS_MUTED} AND NOT {_IS_KNOWN}",
}
_ACKNOWLEDGE = f"""
UPDATE failure_groups SET acknowledged_by = $2, acknowledged_at = $3 WHERE id = $1
RETURNING {GROUPS.columns()}
"""
_MUTE = f"""
UPDATE failure_groups SET muted_by = $2, muted_until = $3 WHERE id = $1 RETURNING {GROUPS.columns()}
"""
_SWEEP_HOURS = """
DELETE FROM failure_hours WHERE ctid IN (SELECT ctid FROM failure_hours WHERE hour < $1 LIMIT $2)
"""


class PostgresFailures(PostgresStore):
    async def unsorted(self, *, limit: int) -> Sequence[Failure]:
        return [Failure(*row) for row in await self._rows(_UNSORTED, limit)]

    async def sort(self, failures: Sequence[Sorted]) -> int:
        async def work(connection: Connection) -> int:
            agents, events = [f.failure.zombie_id for f in failures], [f.failure.event_id for f in failures]
            rows = await connection.fetch(_TAKE, agents, events)
            homes = {row[0]: (row[1], row[2]) for row in rows}
            alike: defaultdict[tuple[UUID, bytes], list[Sorted]] = defaultdict(list)
            for one in failures:
                if one.failure.event_id in homes:
                    alike[one.failure.zombie_id, one.digest].append(one)
            # In one order on every node, so that none waits for another crosswise.
            for key in sorted(alike):
                await _put(connection, alike[key], homes[alike[key][0].failure.event_id])
            return len(homes)

        return await self._database.change(work)

    async def load(self, failure_id: UUID) -> FailureGroup | None:
        return GROUPS.maybe(await self._row(f"{_SELECT} WHERE id = $1", failure_id))

    async def list(
        self,
        workspace_id: UUID,
        *,
        limit: int,
        now: int,
        before: Page | None = None,
        zombie_id: UUID | None = None,
        status: FailureStatus | None = None,
    ) -> Sequence[FailureGroup]:
        where = Conditions("workspace_id = $1", workspace_id)
        if before is not None:
            where.add("(last_seen_at, id) < ({}, {})", before.created_at, before.id)
        if zombie_id is not None:
            where.add("zombie_id = {}", zombie_id)
        if status is not None:
            where.add(_IN_STATUS[status], now)
        order = f"ORDER BY last_seen_at DESC, id DESC LIMIT {int(limit)}"
        return GROUPS.many(await self._rows(f"{_SELECT} WHERE {where} {order}", *where.args))

    async def hours(
        self, failure_ids: Sequence[UUID], *, since_hour: int
    ) -> Mapping[UUID, Mapping[int, int]]:
        found: dict[UUID, dict[int, int]] = {one: {} for one in failure_ids}
        if found:
            for group_id, hour, count in await self._rows(_HOURS, list(failure_ids), since_hour):
                found[group_id][hour] = count
        return found

    async def acknowledge(self, failure_id: UUID, by: str, now: int) -> FailureGroup | None:
        return GROUPS.maybe(
            await self._database.change(lambda c: c.fetchrow(_ACKNOWLEDGE, failure_id, by, now))
        )

    async def mute(self, failure_id: UUID, by: str, until: int | None) -> FailureGroup | None:
        return GROUPS.maybe(await self._database.change(lambda c: c.fetchrow(_MUTE, failure_id, by, until)))


async def _put(connection: Connection, alike: Sequence[Sorted], home: tuple[UUID, UUID]) -> None:
    first = min(alike, key=lambda one: one.failure.at)
    last = max(alike, key=lambda one: one.failure.at)
    zombie_id = last.failure.zombie_id
    group_id = await connection.fetchval(
        _PUT,
        last.new_id,
        *home,
        zombie_id,
        last.digest,
        last.failure.failure_label,
        last.failure.error_code,
        storable(last.message),
        last.failure.event_id,
        first.failure.at,
        last.failure.at,
        len(alike),
    )
    await connection.execute(_MARK, group_id, zombie_id, [one.failure.event_id for one in alike])
    hours = Counter(one.failure.at // HOUR_MS for one in alike)
    await connection.executemany(_COUNT, [(zombie_id, group_id, *pair) for pair in sorted(hours.items())])


async def sweep_failures(connection: Connection, now: int, limit: int) -> int:
    """Delete the counts of hours that nobody asks for any more; how many rows."""
    done = await connection.execute(_SWEEP_HOURS, now // HOUR_MS - HOURS_KEEP, limit)
    return int(done.split()[-1])
