"""Workspaces that stay, in PostgreSQL."""

from collections.abc import Sequence
from uuid import UUID

from sexton_storage.decisions import kept_workspaces as decide
from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.sql.rows import Rows
from sexton_storage.postgres.sql.schema import EVENTS
from sexton_storage.postgres.stores.agent_lock import Hold, lock_agent
from sexton_storage.postgres.stores.base import PostgresStore
from sexton_storage.postgres.stores.blobs import BLOBS
from sexton_storage.records.kept_workspaces import SNAPSHOTS_KEPT, Snapshot, Start, Started
from sexton_storage.records.leases import Lease, LeaseStatus, LeaseToken

SNAPSHOTS = Rows(Snapshot)
STARTS = Rows(Start)
_EVENT = f"SELECT {EVENTS.columns()} FROM events WHERE id = $1"
_START = f"SELECT {STARTS.columns()} FROM workspace_starts WHERE zombie_id = $1 AND event_id = $2"
_OF_AGENT = f"""
SELECT {SNAPSHOTS.columns("s")}, l.status AS lease_status
  FROM workspace_snapshots s JOIN leases l ON l.id = s.lease_id WHERE s.zombie_id = $1
"""
_RESET = "SELECT fencing_token FROM workspace_resets WHERE zombie_id = $1"
_BLOB = f"SELECT {BLOBS.columns()} FROM blobs WHERE id = $1"
_LOAD = f"SELECT {SNAPSHOTS.columns()} FROM workspace_snapshots WHERE lease_id = $1"
_DELETE = "DELETE FROM workspace_snapshots WHERE lease_id = ANY($1)"
_PUT_RESET = """
INSERT INTO workspace_resets (zombie_id, fencing_token)
SELECT zombie_id, fence FROM agent_heads WHERE zombie_id = $1
    ON CONFLICT (zombie_id) DO UPDATE SET fencing_token = excluded.fencing_token
"""
_AGENTS = f"""
SELECT s.zombie_id FROM workspace_snapshots s JOIN leases l ON l.id = s.lease_id
  LEFT JOIN workspace_resets r ON r.zombie_id = s.zombie_id
 GROUP BY s.zombie_id
HAVING count(*) > {SNAPSHOTS_KEPT} OR bool_or(l.status IN ('released', 'reclaimed'))
    OR bool_or(s.fencing_token <= r.fencing_token)
"""
Found = Sequence[tuple[Snapshot, LeaseStatus]]


class PostgresKeptWorkspaces(PostgresStore):
    async def start(self, lease: Lease) -> Started | None:
        async def work(connection: Connection) -> Started | None:
            held = LeaseToken(lease.id, lease.fencing_token)
            if await lock_agent(connection, lease.zombie_id, held) is not Hold.HELD:
                return None
            (event,) = EVENTS.many(await connection.fetch(_EVENT, lease.event_id))
            found, reset = await _snapshots(connection, lease.zombie_id)
            resumed = event.resumes_event_id
            rows = decide.StartRows(
                event,
                await _start(connection, lease.zombie_id, event.id),
                _left(found, event.id, LeaseStatus.PARKED),
                await _start(connection, lease.zombie_id, resumed),
                _left(found, resumed, LeaseStatus.REPORTED),
                decide.newest(found, reset),
            )
            start = decide.start(rows)
            if rows.settled is None:
                await connection.execute(STARTS.insert("workspace_starts"), *STARTS.values(start))
            named = [one for one, _ in found if one.lease_id == start.snapshot_id]
            return Started(start, next((one for one in named if one.fencing_token > reset), None))

        return await self._database.change(work)

    async def keep(self, lease: Lease, held: LeaseToken, blob_id: UUID, now: int) -> Snapshot | None:
        async def work(connection: Connection) -> Snapshot | None:
            hold = await lock_agent(connection, lease.zombie_id, held)
            snapshot = decide.snapshot_of(
                lease,
                await _start(connection, lease.zombie_id, lease.event_id),
                BLOBS.maybe(await connection.fetchrow(_BLOB, blob_id)),
                now,
                held=hold is Hold.HELD,
            )
            if snapshot is not None:
                await connection.execute(_DELETE, [lease.id])
                await connection.execute(SNAPSHOTS.insert("workspace_snapshots"), *SNAPSHOTS.values(snapshot))
            return snapshot

        return await self._database.change(work)

    async def newest(self, zombie_id: UUID) -> Snapshot | None:
        return decide.newest(*await self._database.read(lambda c: _snapshots(c, zombie_id)))

    async def load(self, lease_id: UUID) -> Snapshot | None:
        return SNAPSHOTS.maybe(await self._row(_LOAD, lease_id))

    async def reset(self, zombie_id: UUID) -> bool:
        async def work(connection: Connection) -> bool:
            if await lock_agent(connection, zombie_id) is Hold.GONE:
                return False
            await connection.execute(_PUT_RESET, zombie_id)
            return True

        return await self._database.change(work)

    async def prune(self, *, limit: int) -> int:
        pruned = 0
        for row in await self._rows(_AGENTS):
            if pruned < limit:
                pruned += await self._prune_agent(row[0], limit - pruned)
        return pruned

    async def _prune_agent(self, zombie_id: UUID, limit: int) -> int:
        async def work(connection: Connection) -> int:
            # A run that starts, or leaves something, waits for this lock.
            await lock_agent(connection, zombie_id)
            over = decide.outdated(*await _snapshots(connection, zombie_id))[:limit]
            if over:
                await connection.execute(_DELETE, [one.lease_id for one in over])
            return len(over)

        return await self._database.change(work)


async def _snapshots(connection: Connection, zombie_id: UUID) -> tuple[Found, int]:
    rows = await connection.fetch(_OF_AGENT, zombie_id)
    found = [(SNAPSHOTS.record(row), LeaseStatus(row["lease_status"])) for row in rows]
    return found, await connection.fetchval(_RESET, zombie_id) or 0


async def _start(connection: Connection, zombie_id: UUID, event_id: UUID | None) -> Start | None:
    return STARTS.maybe(await connection.fetchrow(_START, zombie_id, event_id))


def _left(found: Found, event_id: UUID | None, status: LeaseStatus) -> Snapshot | None:
    fit = [one for one, kept in found if one.event_id == event_id and kept is status]
    return max(fit, key=lambda one: one.fencing_token, default=None)
