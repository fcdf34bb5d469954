"""Numbers and keeps the stream frames of a batch."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from sexton_storage.documents import to_json
from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.sql.columns import Columns
from sexton_storage.postgres.sql.fragments import unnest
from sexton_storage.records.frames import NewFrame
from sexton_storage.refusals import FENCED, GONE, Lost
from sexton_storage.writes import AppendFrames, FramesAppended

# Every agent's counter moves once, by as many as it has frames here. The numbers go on from the counter as it
# was before: the heads are locked by the batch, so nobody else moves it meanwhile.
_COUNTS, _NEW = Columns("uuid bigint"), Columns("uuid bigint uuid text bigint text", first=3)
_APPEND = f"""
WITH moved AS (
    UPDATE agent_heads h SET frame_seq = h.frame_seq + n.frames
      FROM {_COUNTS.unnest} AS n(zombie_id, frames) WHERE h.zombie_id = n.zombie_id
    RETURNING h.zombie_id, h.frame_seq
), kept AS (
    INSERT INTO frames (zombie_id, seq, event_id, kind, at_ms, data)
    SELECT v.zombie_id, h.frame_seq + v.number, v.event_id, v.kind, v.at_ms, v.data::json
      FROM {_NEW.unnest}
        AS v(zombie_id, number, event_id, kind, at_ms, data)
      JOIN agent_heads h ON h.zombie_id = v.zombie_id
)
SELECT zombie_id, frame_seq FROM moved
"""
_FENCE = f"""
SELECT v.ord, h.zombie_id IS NOT NULL,
       v.lease_id IS NULL OR (
           h.live_lease_id = v.lease_id AND h.fence = v.token AND EXISTS (
               SELECT FROM leases l
                WHERE l.id = v.lease_id AND l.status IN ('active', 'cancelling')
                  AND l.expires_at > sexton_now_ms()))
  FROM {unnest("int uuid uuid bigint")} AS v(ord, zombie_id, lease_id, token)
  LEFT JOIN agent_heads h ON h.zombie_id = v.zombie_id
"""
News = Sequence[tuple[UUID, int]]
"""Agents with new frames, each with its newest number."""


class NumberedFrames:
    """Collects the frames of the writes that hold, to be numbered in the order of their arrival."""

    def __init__(self) -> None:
        self._frames: list[tuple[int, NewFrame]] = []

    def add(self, ord_: int, frames: Iterable[NewFrame]) -> None:
        self._frames += [(ord_, frame) for frame in frames]

    async def save(self, connection: Connection) -> News:
        """Keep them; those of agents that are gone are dropped."""
        if not self._frames:
            return ()
        frames = [frame for _, frame in sorted(self._frames, key=lambda pair: pair[0])]
        counts = Counter(frame.zombie_id for frame in frames)
        new = [
            (f.zombie_id, number, f.event_id, f.kind, f.at_ms, to_json(f.data))
            for f, number in zip(frames, _numbers(frames), strict=True)
        ]
        rows = await connection.fetch(_APPEND, *_COUNTS.arrays(counts.items()), *_NEW.arrays(new))
        return [(row[0], row[1]) for row in rows]


def _numbers(frames: Sequence[NewFrame]) -> list[int]:
    """Count each agent's frames from 1."""
    last: Counter[UUID] = Counter()
    numbers = []
    for frame in frames:
        last[frame.zombie_id] += 1
        numbers.append(last[frame.zombie_id])
    return numbers


async def check_appends(
    connection: Connection,
    writes: Sequence[tuple[int, AppendFrames]],
    answers: list[Any],
    frames: NumberedFrames,
) -> None:
    """Let the frames pass whose agent exists and whose lease, where one is named, is held."""
    rows = await connection.fetch(
        _FENCE,
        [ord_ for ord_, _ in writes],
        [w.zombie_id for _, w in writes],
        [w.lease_id for _, w in writes],
        [w.fencing_token for _, w in writes],
    )
    asked = dict(writes)
    for ord_, exists, held in rows:
        if exists and held:
            answers[ord_] = FramesAppended(len(asked[ord_].frames))
            frames.add(ord_, asked[ord_].frames)
        else:
            answers[ord_] = Lost(FENCED if exists else GONE)
