"""Frames, read from PostgreSQL and pruned there."""

from collections.abc import Collection, Sequence
from uuid import UUID

from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.sql.schema import FRAMES
from sexton_storage.postgres.stores.base import PostgresStore
from sexton_storage.records.frames import (
    NO_AGENT,
    PAGE_BYTES,
    PAGE_CHANGES_KEEP_MS,
    Frame,
    FramePlace,
    WorkspaceFrames,
    place_before,
)

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
def _read_where(condition: str) -> str:
    return f"""
SELECT {FRAMES.columns("p")} FROM (
    SELECT f.*, sum(f.size) OVER (ORDER BY f.seq ROWS UNBOUNDED PRECEDING) AS upto FROM (
        SELECT zombie_id, seq, event_id, kind, at_ms, data, coalesce(size, octet_length(data::text)) AS size
          FROM frames WHERE zombie_id = $1 AND seq > $2{condition} ORDER BY seq LIMIT $3) f) p
 WHERE p.upto <= $4 OR p.upto = p.size
 ORDER BY p.seq
"""


_READ = _read_where("")
_OF_EVENT = _read_where(" AND event_id = $5")
_LAST_OF_KIND = """
SELECT max(seq) FROM (SELECT seq, kind, at_ms FROM frames WHERE zombie_id = $1 ORDER BY seq DESC LIMIT $4) f
 WHERE kind = $2 AND at_ms >= $3
"""
_BOUNDS = """
SELECT (SELECT min(seq) FROM frames WHERE zombie_id = $1),
       (SELECT frame_seq FROM agent_heads WHERE zombie_id = $1)
"""
_HORIZON = "SELECT txid_snapshot_xmin(txid_current_snapshot()), sexton_now_ms()"
# By windows of commits: whoever comes back after a long time does not have all of it sorted for each page.
_READ_WORKSPACE = f"""
SELECT p.txid, {FRAMES.columns("p")} FROM (
    SELECT f.*, sum(f.size) OVER (ORDER BY f.txid, f.zombie_id, f.seq ROWS UNBOUNDED PRECEDING) AS upto
      FROM (SELECT f.txid, f.zombie_id, f.seq, f.event_id, f.kind, f.at_ms, f.data,
                   coalesce(f.size, octet_length(f.data::text)) AS size
              FROM frames f
             WHERE f.txid >= $2 AND f.txid < $5 AND (f.txid, f.zombie_id, f.seq) > ($2, $3, $4)
               AND EXISTS (SELECT FROM agent_heads h WHERE h.zombie_id = f.zombie_id AND h.workspace_id = $1)
             ORDER BY f.txid, f.zombie_id, f.seq LIMIT $6) f) p
 WHERE p.upto <= $7 OR p.upto = p.size
 ORDER BY p.txid, p.zombie_id, p.seq
"""
WINDOW_COMMITS = 20_000
WINDOWS = 16
"""Looked through by one read."""
_IS_KEPT = """
SELECT EXISTS (
    SELECT FROM frames f JOIN agent_heads h ON h.zombie_id = f.zombie_id AND h.workspace_id = $1
     WHERE f.zombie_id = $2 AND f.seq = $3 AND f.txid = $4)
"""
# Those that are too old are older than the place. Of an agent that has as many as it may, the oldest one that
# is kept tells how far the others are gone.
_LOST_FRAMES = """
SELECT EXISTS (
    SELECT FROM agent_heads h
     CROSS JOIN LATERAL (SELECT zombie_id, seq, txid FROM frames
                          WHERE zombie_id = h.zombie_id ORDER BY zombie_id, seq LIMIT 1) f
     WHERE h.workspace_id = $1 AND h.frame_seq > $5 AND h.frame_seq - f.seq + 1 >= $5 AND f.seq > 1
       AND (f.txid, f.zombie_id, f.seq) > ($2, $3, $4))
"""


_HAS_CHANGED = """
SELECT EXISTS (SELECT FROM page_changes WHERE scope_id = ANY($1) AND txid >= $2 AND txid < $3)
"""
_FORGET_CHANGES = "DELETE FROM page_changes WHERE at < sexton_now_ms() - $1"


class PostgresFrames(PostgresStore):
    async def read(
        self, zombie_id: UUID, *, after: int, limit: int, max_bytes: int = PAGE_BYTES
    ) -> Sequence[Frame]:
        return FRAMES.many(await self._rows(_READ, zombie_id, after, limit, max_bytes))

    async def of_event(
        self, zombie_id: UUID, event_id: UUID, *, after: int, limit: int, max_bytes: int = PAGE_BYTES
    ) -> Sequence[Frame]:
        return FRAMES.many(await self._rows(_OF_EVENT, zombie_id, after, limit, max_bytes, event_id))

    async def last_of_kind(self, zombie_id: UUID, kind: str, *, since: int, among: int) -> int | None:
        found: int | None = await self._value(_LAST_OF_KIND, zombie_id, kind, since, among)
        return found

    async def bounds(self, zombie_id: UUID) -> tuple[int, int]:
        row = await self._row(_BOUNDS, zombie_id)
        oldest, newest = (None, 0) if row is None else (row[0], row[1] or 0)
        return newest + 1 if oldest is None else oldest, newest

    async def workspace_head(self) -> FramePlace:
        async def work(connection: Connection) -> FramePlace:
            return place_before(*await _horizon(connection))

        return await self._database.read(work)

    async def read_workspace(
        self, workspace_id: UUID, *, after: FramePlace, limit: int, max_bytes: int = PAGE_BYTES
    ) -> WorkspaceFrames:
        async def work(connection: Connection) -> WorkspaceFrames:
            horizon, now = await _horizon(connection)
            place = after
            for _ in range(WINDOWS):
                end = min(horizon, place.commit + WINDOW_COMMITS)
                rows = await connection.fetch(
                    _READ_WORKSPACE,
                    workspace_id,
                    place.commit,
                    place.zombie_id,
                    place.seq,
                    end,
                    limit,
                    max_bytes,
                )
                if rows:
                    frames = tuple(FRAMES.record(row, 1) for row in rows)
                    places = tuple(
                        FramePlace(row[0], frame.zombie_id, frame.seq)
                        for row, frame in zip(rows, frames, strict=True)
                    )
                    return WorkspaceFrames(frames, places, places[-1], is_all=False)
                if end >= horizon:
                    return WorkspaceFrames((), (), max(after, place_before(horizon, now)), is_all=True)
                place = place_before(end, now)
            return WorkspaceFrames((), (), place, is_all=False)

        return await self._database.read(work)

    async def has_gap(self, workspace_id: UUID, after: FramePlace, *, keep_ms: int, keep_frames: int) -> bool:
        async def work(connection: Connection) -> bool:
            if after.zombie_id != NO_AGENT:
                kept = await connection.fetchval(
                    _IS_KEPT, workspace_id, after.zombie_id, after.seq, after.commit
                )
                if not kept:
                    return True
            elif after.seq < (await _horizon(connection))[1] - keep_ms:
                return True
            lost: bool = await connection.fetchval(
                _LOST_FRAMES, workspace_id, after.commit, after.zombie_id, after.seq, keep_frames
            )
            return lost

        return await self._database.read(work)

    async def has_changed(self, scope_ids: Collection[UUID], *, after: FramePlace, upto: FramePlace) -> bool:
        changed: bool = await self._value(_HAS_CHANGED, list(scope_ids), after.commit, upto.commit)
        return changed

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
        await self._database.read(lambda c: c.execute(_FORGET_CHANGES, PAGE_CHANGES_KEEP_MS))
        return pruned


async def _horizon(connection: Connection) -> tuple[int, int]:
    """Below which number every commit is there to be read, and the database's time."""
    row = await connection.fetchrow(_HORIZON)
    if row is None:
        raise LookupError("a statement without a condition gave no row")
    return row[0], row[1]


def _count(command_tag: str) -> int:
    return int(command_tag.rsplit(" ", 1)[-1])
