"""What a run may show of its work."""

from sexton_actors.lease.transitions.chunks import coalesced
from sexton_actors.lease.transitions.frame_sizes import bounded
from sexton_actors.lease.transitions.state import STALE, LeaseState, fenced
from sexton_actors.protocol.lease import Activity
from sexton_actors.refusal import Refusal
from sexton_storage.records.frame_kinds import RUN_KINDS, FrameKind
from sexton_storage.records.frames import NewFrame
from sexton_storage.writes import AppendFrames

CONNECTION = FrameKind.CONNECTION


def activity(state: LeaseState, message: Activity, now: int) -> AppendFrames | Refusal:
    """A runner's frames, stamped no later than now; only the kinds that are a runner's to write."""
    lease = state.lease
    if refusal := fenced(lease, message.runner_id, message.fencing_token, now, STALE):
        return refusal
    for place, frame in enumerate(message.frames):
        if frame.kind not in RUN_KINDS:
            return Refusal("UZ-REQ-001", f"/frames/{place}/kind: a runner may not write {frame.kind!r}.")
    frames = tuple(
        NewFrame(lease.zombie_id, lease.event_id, f.kind, _at(f.at_ms, lease.granted_at, now), f.data)
        for f in message.frames
    )
    return AppendFrames(lease.zombie_id, bounded(coalesced(frames)), lease.id, lease.fencing_token)


def _at(said: int | None, granted_at: int, now: int) -> int:
    # A runner's clock may be wrong, but what it did lies between its grant and now.
    return now if said is None else max(granted_at, min(said, now))
