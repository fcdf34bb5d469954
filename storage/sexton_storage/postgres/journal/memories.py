"""Keeps what runs remember, inside a transaction that somebody else begins and that has locked the agent."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sexton_storage.postgres.connections.connection import Connection, Row
from sexton_storage.postgres.sql.columns import Columns
from sexton_storage.records.memories import Mark, MemoryChange, Plan, folded, plan
from sexton_storage.writes import EndLease

_KEPT = "SELECT key, category, updated_at FROM memories WHERE zombie_id = $1"
_DROP = "DELETE FROM memories WHERE zombie_id = $1 AND key = ANY($2)"


def _folded(change: MemoryChange) -> str:
    return folded(f"{change.key}\n{change.content}")


_CHANGES = Columns(MemoryChange, "key", "content", "category", _folded, first=3)
_PUT = f"""
INSERT INTO memories (zombie_id, key, content, category, folded, updated_at)
SELECT $1, v.key, v.content, v.category, v.folded, $2
  FROM {_CHANGES.rows}
ON CONFLICT (zombie_id, key) DO UPDATE
   SET content = excluded.content, category = excluded.category, folded = excluded.folded,
       updated_at = excluded.updated_at
"""


async def remember(
    connection: Connection, zombie_id: UUID, changes: Sequence[MemoryChange], now: int
) -> Plan:
    """Decide over the entries that are kept, and change them; what was done comes back."""
    kept = {
        row["key"]: Mark(row["category"], row["updated_at"])
        for row in await connection.fetch(_KEPT, zombie_id)
    }
    decided = plan(kept, changes, now)
    if decided.drop:
        await connection.execute(_DROP, zombie_id, list(decided.drop))
    if decided.put:
        await connection.execute(_PUT, zombie_id, now, *_CHANGES.arrays(list(decided.put.values())))
    return decided


async def remember_reports(
    connection: Connection, ends: Sequence[tuple[int, EndLease, Row]], answers: Sequence[Any]
) -> None:
    """Keep what the runs of ended leases bring back; for what finds no room there is nobody to tell."""
    for ord_, write, _ in ends:
        if write.memory:
            await remember(connection, answers[ord_].event.zombie_id, write.memory, write.now)
