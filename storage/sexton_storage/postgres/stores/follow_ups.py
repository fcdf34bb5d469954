"""Follow-ups in PostgreSQL."""

from collections.abc import Sequence
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.documents import storable
from sexton_storage.paging import Page
from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.sql.fragments import opaque_to_planner
from sexton_storage.postgres.sql.rows import Rows
from sexton_storage.postgres.stores.agent_lock import Hold, lock_agent
from sexton_storage.postgres.stores.base import Conditions, PostgresStore
from sexton_storage.records.follow_ups import FollowUp, FollowUpStatus
from sexton_storage.records.leases import LeaseToken
from sexton_storage.refusals import FENCED, FULL, GONE, Lost
from sexton_storage.terms import FOLLOW_UPS_KEEP_MS, FOLLOW_UPS_LIMIT

FOLLOW_UPS = Rows(FollowUp)
_SELECT = f"SELECT {FOLLOW_UPS.columns()} FROM follow_ups"
_ASKED = f"{_SELECT} WHERE zombie_id = $1 AND event_id = $2 AND call_id = $3"
_DUE = f"{_SELECT} WHERE status = 'pending' AND at <= $1 ORDER BY at, id LIMIT $2"
_PENDING = opaque_to_planner("id", "status = 'pending'")
_WAITING = f"SELECT count(*) FROM follow_ups WHERE zombie_id = $1 AND {_PENDING}"
_CLOSE = f"UPDATE follow_ups SET status = $2, closed_at = $3 WHERE id = $1 AND {_PENDING}"
_DROP_ALL = """
UPDATE follow_ups SET status = 'dropped', closed_at = $2 WHERE zombie_id = $1 AND status = 'pending'
"""
_SWEEP = """
DELETE FROM follow_ups WHERE ctid IN (SELECT ctid FROM follow_ups WHERE closed_at <= $1 LIMIT $2)
"""


class PostgresFollowUps(PostgresStore):
    """Whoever changes one locks its agent's head first, as the journal's batches do."""

    async def load(self, follow_up_id: UUID) -> FollowUp | None:
        return FOLLOW_UPS.maybe(await self._row(f"{_SELECT} WHERE id = $1", follow_up_id))

    async def find(self, zombie_id: UUID, event_id: UUID, call_id: str) -> FollowUp | None:
        return FOLLOW_UPS.maybe(await self._row(_ASKED, zombie_id, event_id, storable(call_id)))

    async def keep(self, follow_up: FollowUp, held: LeaseToken) -> FollowUp | Lost:
        new = replace(follow_up, message=storable(follow_up.message), call_id=storable(follow_up.call_id))

        async def work(connection: Connection) -> FollowUp | Lost:
            hold = await lock_agent(connection, new.zombie_id, held)
            if hold is not Hold.HELD:
                return Lost(GONE if hold is Hold.GONE else FENCED)
            row = await connection.fetchrow(_ASKED, new.zombie_id, new.event_id, new.call_id)
            if (asked := FOLLOW_UPS.maybe(row)) is not None:
                return asked
            if await connection.fetchval(_WAITING, new.zombie_id) >= FOLLOW_UPS_LIMIT:
                return Lost(FULL)
            await connection.execute(FOLLOW_UPS.insert("follow_ups"), *FOLLOW_UPS.values(new))
            return new

        return await self._database.change(work)

    async def due(self, *, before: int, limit: int) -> Sequence[FollowUp]:
        return FOLLOW_UPS.many(await self._rows(_DUE, before, limit))

    async def next_at(self) -> int | None:
        earliest: int | None = await self._value("SELECT min(at) FROM follow_ups WHERE status = 'pending'")
        return earliest

    async def list(self, zombie_id: UUID, *, limit: int, before: Page | None = None) -> Sequence[FollowUp]:
        where = Conditions("zombie_id = $1", zombie_id)
        if before is not None:
            where.add("(created_at, id) < ({}, {})", before.created_at, before.id)
        query = f"{_SELECT} WHERE {where} ORDER BY created_at DESC, id DESC LIMIT {int(limit)}"
        return FOLLOW_UPS.many(await self._rows(query, *where.args))

    async def close(self, follow_up: FollowUp, status: FollowUpStatus, now: int) -> bool:
        async def work(connection: Connection) -> bool:
            # An event of it is before us or after us.
            await lock_agent(connection, follow_up.zombie_id)
            done = await connection.execute(_CLOSE, follow_up.id, status, now)
            return done.endswith(" 1")

        return await self._database.change(work)


async def drop_follow_ups(connection: Connection, zombie_id: UUID, now: int) -> None:
    """End all that wait, in the transaction that kills their agent."""
    await connection.execute(_DROP_ALL, zombie_id, now)


async def sweep_follow_ups(connection: Connection, now: int, limit: int) -> int:
    """Delete those that are over for long; how many rows."""
    done = await connection.execute(_SWEEP, now - FOLLOW_UPS_KEEP_MS, limit)
    return int(done.split()[-1])
