"""Numbers and keeps the stream frames of a batch."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

import msgspec

from sexton_storage.documents import to_json
from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.sql.columns import Columns
from sexton_storage.postgres.sql.fragments import insert_from
from sexton_storage.records.frames import NewFrame
from sexton_storage.refusals import FENCED, GONE, Lost
from sexton_storage.writes import AppendFrames, FramesAppended


# Every agent's counter moves once, by as many as it has frames here. The numbers go on from the counter as it
# was before: the heads are locked by the batch, so nobody else moves it meanwhile.
class _Count(msgspec.Struct, frozen=True, gc=False):
    zombie_id: UUID
    frames: int


class _Numbered(msgspec.Struct, frozen=True, gc=False):
    """A frame with its number in the batch, from 1 for each agent."""

    frame: NewFrame
    number: int


def _data(numbered: _Numbered) -> str:
    return to_json(numbered.frame.data)


_COUNTS = Columns(_Count, "zombie_id", "frames")
_NEW = Columns(
    _Numbered, "frame.zombie_id", "number", "frame.event_id", "frame.kind", "frame.at_ms", _data, first=3
)
_KEEP = insert_from(
    "frames",
    {
        "zombie_id": "v.frame_zombie_id",
        "seq": "h.frame_seq + v.number",
        "event_id": "v.frame_event_id",
        "kind": "v.frame_kind",
        "at_ms": "v.frame_at_ms",
        "data": "v.data::json",
        "size": "octet_length(v.data)",
    },
    f"{_NEW.rows} JOIN agent_heads h ON h.zombie_id = v.frame_zombie_id",
)
_APPEND = f"""
WITH moved AS (
    UPDATE agent_heads h SET frame_seq = h.frame_seq + v.frames
      FROM {_COUNTS.rows} WHERE h.zombie_id = v.zombie_id
    RETURNING h.zombie_id, h.frame_seq
), kept AS (
    {_KEEP}
)
SELECT zombie_id, frame_seq FROM moved
"""
_FENCED = Columns(AppendFrames, "zombie_id", "lease_id", "fencing_token")
_FENCE = f"""
SELECT v.ord, h.zombie_id IS NOT NULL AS exists,
       v.lease_id IS NULL OR (
           h.live_lease_id = v.lease_id AND h.fence = v.fencing_token AND EXISTS (
               SELECT FROM leases l
                WHERE l.id = v.lease_id AND l.status IN ('active', 'cancelling')
                  AND l.expires_at > sexton_now_ms())) AS held
  FROM {_FENCED.numbered_rows}
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
        new = [_Numbered(frame, number) for frame, number in zip(frames, _numbers(frames), strict=True)]
        counted = [_Count(zombie_id, count) for zombie_id, count in counts.items()]
        rows = await connection.fetch(_APPEND, *_COUNTS.arrays(counted), *_NEW.arrays(new))
        return [(row["zombie_id"], row["frame_seq"]) for row in rows]


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
    rows = await connection.fetch(_FENCE, *_FENCED.arrays([w for _, w in writes]))
    for row in rows:
        ord_, write = writes[row["ord"] - 1]
        if row["exists"] and row["held"]:
            answers[ord_] = FramesAppended(len(write.frames))
            frames.add(ord_, write.frames)
        else:
            answers[ord_] = Lost(FENCED if row["exists"] else GONE)
