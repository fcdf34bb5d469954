"""Frames, read from PostgreSQL and pruned there."""

from collections.abc import Sequence
from uuid import UUID

from sexton_storage.postgres.sql.schema import FRAMES
from sexton_storage.postgres.stores.base import PostgresStore
from sexton_storage.records.frames import PAGE_BYTES, Frame

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
# What is left out is not unpacked: the sizes stand beside the frames.
_READ = f"""
SELECT {FRAMES.columns("p")} FROM (
    SELECT f.*, sum(f.size) OVER (ORDER BY f.seq ROWS UNBOUNDED PRECEDING) AS upto FROM (
        SELECT zombie_id, seq, event_id, kind, at_ms, data, coalesce(size, octet_length(data::text)) AS size
          FROM frames WHERE zombie_id = $1 AND seq > $2 ORDER BY seq LIMIT $3) f) p
 WHERE p.upto <= $4 OR p.upto = p.size
 ORDER BY p.seq
"""
_LAST_OF_KIND = """
SELECT max(seq) FROM (SELECT seq, kind, at_ms FROM frames WHERE zombie_id = $1 ORDER BY seq DESC LIMIT $4) f
 WHERE kind = $2 AND at_ms >= $3
"""
_BOUNDS = """
SELECT (SELECT min(seq) FROM frames WHERE zombie_id = $1),
       (SELECT frame_seq FROM agent_heads WHERE zombie_id = $1)
"""


class PostgresFrames(PostgresStore):
    async def read(
        self, zombie_id: UUID, *, after: int, limit: int, max_bytes: int = PAGE_BYTES
    ) -> Sequence[Frame]:
        return FRAMES.many(await self._rows(_READ, zombie_id, after, limit, max_bytes))

    async def last_of_kind(self, zombie_id: UUID, kind: str, *, since: int, among: int) -> int | None:
        found: int | None = await self._value(_LAST_OF_KIND, zombie_id, kind, since, among)
        return found

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
