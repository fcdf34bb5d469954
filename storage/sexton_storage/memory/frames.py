"""Frames, in memory."""

from collections.abc import Collection, Sequence
from itertools import accumulate
from operator import itemgetter
from uuid import UUID

from sexton_storage.memory.base import MemoryStore
from sexton_storage.records.frames import (
    NO_AGENT,
    PAGE_BYTES,
    Frame,
    FramePlace,
    WorkspaceFrames,
    place_before,
)


class MemoryFrames(MemoryStore):
    async def read(
        self, zombie_id: UUID, *, after: int, limit: int, max_bytes: int = PAGE_BYTES
    ) -> Sequence[Frame]:
        await self._round_trip()
        found = [f for f in self._tables.frames.get(zombie_id, ()) if f.seq > after]
        return _within(found[:limit], max_bytes)

    async def of_event(
        self, zombie_id: UUID, event_id: UUID, *, after: int, limit: int, max_bytes: int = PAGE_BYTES
    ) -> Sequence[Frame]:
        await self._round_trip()
        kept = self._tables.frames.get(zombie_id, ())
        found = [f for f in kept if f.seq > after and f.event_id == event_id]
        return _within(found[:limit], max_bytes)

    async def last_of_kind(self, zombie_id: UUID, kind: str, *, since: int, among: int) -> int | None:
        await self._round_trip()
        newest = self._tables.frames.get(zombie_id, [])[-among:]
        return max((f.seq for f in newest if f.kind == kind and f.at_ms >= since), default=None)

    async def bounds(self, zombie_id: UUID) -> tuple[int, int]:
        await self._round_trip()
        head = self._tables.heads.get(zombie_id)
        newest = 0 if head is None else head.frame_seq
        kept = self._tables.frames.get(zombie_id)
        return kept[0].seq if kept else newest + 1, newest

    async def workspace_head(self) -> FramePlace:
        await self._round_trip()
        return self._head()

    def _head(self) -> FramePlace:
        return place_before(self._tables.frames_written + 1, self._tables.now())

    async def read_workspace(
        self, workspace_id: UUID, *, after: FramePlace, limit: int, max_bytes: int = PAGE_BYTES
    ) -> WorkspaceFrames:
        await self._round_trip()
        placed = sorted(
            (
                (place, frame)
                for zombie_id in self._agents(workspace_id)
                for frame in self._tables.frames.get(zombie_id, ())
                if (place := self._place(frame)) > after
            ),
            key=itemgetter(0),
        )[:limit]
        sums = list(accumulate(frame.size for _, frame in placed))
        kept = [one for one, upto in zip(placed, sums, strict=True) if upto <= max_bytes or one is placed[0]]
        if not kept:
            return WorkspaceFrames((), (), max(after, self._head()), is_all=True)
        places, frames = zip(*kept, strict=True)
        return WorkspaceFrames(frames, places, places[-1], is_all=False)

    def _agents(self, workspace_id: UUID) -> list[UUID]:
        return [one.id for one in self._tables.zombies.values() if one.workspace_id == workspace_id]

    def _place(self, frame: Frame) -> FramePlace:
        commit = self._tables.frame_commits[frame.zombie_id, frame.seq]
        return FramePlace(commit, frame.zombie_id, frame.seq)

    async def has_gap(self, workspace_id: UUID, after: FramePlace, *, keep_ms: int, keep_frames: int) -> bool:
        await self._round_trip()
        kept = {zombie_id: self._tables.frames.get(zombie_id, []) for zombie_id in self._agents(workspace_id)}
        if after.zombie_id != NO_AGENT:
            if after not in map(self._place, kept.get(after.zombie_id, ())):
                return True
        elif after.seq < self._tables.now() - keep_ms:
            return True
        return any(
            frames[0].seq > 1
            and self._tables.heads[zombie_id].frame_seq - frames[0].seq + 1 >= keep_frames
            and self._place(frames[0]) > after
            for zombie_id, frames in kept.items()
            if frames
        )

    async def has_changed(self, scope_ids: Collection[UUID], *, after: FramePlace, upto: FramePlace) -> bool:
        await self._round_trip()
        changes = self._tables.page_changes
        return any(after.commit <= commit < upto.commit and scope in scope_ids for scope, commit in changes)

    async def heads(self, zombie_ids: Sequence[UUID]) -> dict[UUID, int]:
        await self._round_trip()
        return {z: head.frame_seq for z in zombie_ids if (head := self._tables.heads.get(z))}

    async def prune(self, *, keep_ms: int, keep_frames: int, limit: int) -> int:
        await self._round_trip()
        oldest_at, pruned = self._tables.now() - keep_ms, 0
        for zombie_id, kept in self._tables.frames.items():
            first_seq = self._tables.heads[zombie_id].frame_seq - keep_frames + 1
            old = [f for f in kept if f.at_ms < oldest_at or f.seq < first_seq][: limit - pruned]
            self._tables.frames[zombie_id] = [f for f in kept if f not in old]
            pruned += len(old)
        return pruned


def _within(found: Sequence[Frame], max_bytes: int) -> Sequence[Frame]:
    """As many as have these bytes together, and at least one."""
    sums = accumulate(frame.size for frame in found)
    return [frame for frame, upto in zip(found, sums, strict=True) if upto <= max_bytes or frame is found[0]]
