"""What agents remember, in PostgreSQL."""

from collections.abc import Sequence
from uuid import UUID

from sexton_storage.attribution import current_entry
from sexton_storage.documents import storable
from sexton_storage.postgres.connections.audit_entries import APPEND, entry_json
from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.journal.memories import remember
from sexton_storage.postgres.sql.rows import Rows
from sexton_storage.postgres.stores.agent_lock import Hold, lock_agent
from sexton_storage.postgres.stores.base import PostgresStore
from sexton_storage.records.leases import LeaseToken
from sexton_storage.records.memories import DAILY, Memory, MemoryChange, Remembered, words_of
from sexton_storage.terms import DAILY_KEEP_MS

MEMORIES = Rows(Memory)
_ALIVE = f"m.zombie_id = $1 AND (m.category <> '{DAILY}' OR m.updated_at + {DAILY_KEEP_MS} > sexton_now_ms())"
# An agent has a thousand entries at most, so its own are read through; an index over words would cost every
# write of every agent, and find other things in other databases.
_SEARCH = f"""
SELECT {MEMORIES.columns()}, count(*) OVER ()
  FROM (SELECT m.*, (SELECT count(*) FROM unnest($3::text[]) AS w WHERE strpos(m.folded, w) > 0) AS found
          FROM memories m WHERE {_ALIVE} AND ($2::text IS NULL OR m.category = $2)) AS seen
 WHERE found > 0 OR cardinality($3) = 0
 ORDER BY found DESC, updated_at DESC, key COLLATE "C" LIMIT $4
"""
_FORGET = "DELETE FROM memories WHERE zombie_id = $1 AND key = $2"
_OF_LEASE = f"""
SELECT {MEMORIES.columns("m")} FROM memories m WHERE {_ALIVE}
 ORDER BY (m.category = 'core') DESC, m.updated_at DESC, m.key COLLATE "C" LIMIT $2
"""
_SWEEP = """
DELETE FROM memories WHERE ctid IN
    (SELECT ctid FROM memories WHERE category = 'daily' AND updated_at <= $1 LIMIT $2)
"""


class PostgresMemories(PostgresStore):
    async def keep(
        self, zombie_id: UUID, held: LeaseToken, changes: Sequence[MemoryChange], now: int
    ) -> Remembered | None:
        async def work(connection: Connection) -> Remembered | None:
            if await lock_agent(connection, zombie_id, held) is not Hold.HELD:
                return None
            return Remembered((await remember(connection, zombie_id, changes, now)).refused)

        return await self._database.change(work)

    async def forget(self, zombie_id: UUID, key: str) -> bool:
        entry = current_entry()

        async def work(connection: Connection) -> bool:
            if await connection.execute(_FORGET, zombie_id, storable(key)) == "DELETE 0":
                return False
            if entry is not None:
                # Runs write this table all the time, so it has no trigger that would look for an entry.
                await connection.execute(APPEND, entry_json(entry))
            return True

        return await self._database.change(work)

    async def search(
        self, zombie_id: UUID, *, query: str, category: str | None, limit: int
    ) -> tuple[Sequence[Memory], int]:
        rows = await self._rows(_SEARCH, zombie_id, storable(category), list(words_of(query)), limit)
        return MEMORIES.many(rows), rows[0][-1] if rows else 0

    async def of_lease(self, zombie_id: UUID, *, limit: int) -> Sequence[Memory]:
        return MEMORIES.many(await self._rows(_OF_LEASE, zombie_id, limit))


async def sweep_memories(connection: Connection, now: int, limit: int) -> int:
    """Delete entries that have outlived their category; how many rows."""
    done = await connection.execute(_SWEEP, now - DAILY_KEEP_MS, limit)
    return int(done.split()[-1])
