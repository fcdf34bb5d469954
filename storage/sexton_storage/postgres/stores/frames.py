"""Frames, read from PostgreSQL and pruned there."""

from collections.abc import Sequence
from uuid import UUID

from sexton_storage.postgres.sql.schema import FRAMES
from sexton_storage.postgres.stores.base import PostgresStore
from sexton_storage.records.frames import Frame

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
