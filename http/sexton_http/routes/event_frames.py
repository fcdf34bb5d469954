"""The raw frames of one event: what its stream told, to be read afterwards."""

from typing import Annotated, Any, Final
from uuid import UUID

import msgspec

from sexton_http.bodies.cursors import Numbered, decode_numbered, encode, fingerprint
from sexton_http.bodies.shapes import Cursor, Query, Shape
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, operation
from sexton_http.routes.shared.event_lookup import find_event
from sexton_storage.records.frames import PAGE_BYTES, Frame

TAG: Final = "Events"


class FramesQuery(Query):
    limit: Annotated[int, msgspec.Meta(ge=1, le=500)] = 100
    cursor: Cursor | None = None


class FrameItem(Shape):
    seq: int
    """The agent's number, as in its stream."""
    kind: str
    at_ms: int
    data: Any


class FramesPage(Shape):
    event_id: UUID
    items: list[FrameItem]
    next_cursor: str | None
    """Null: there is nothing more yet. An event that goes on may add frames later."""


@operation(
    "GET",
    "/v1/workspaces/{workspace_id}/events/{event_id}/frames",
    tag=TAG,
    codes=("UZ-EVENT-001",),
)
async def list_event_frames(call: Call[NoBody, FramesQuery]) -> FramesPage:
    """List the frames of an event in the order in which they came, as its agent's stream told them.

    Frames are kept for a day, and the newest 10,000 of an agent; what is older is gone. A page ends with
    `limit` items or 256 KiB, whichever comes first.
    """
    query, event_id = call.query, call.id("event_id")
    event = await find_event(call)
    filters = fingerprint("frames", event_id)
    after = 0 if query.cursor is None else decode_numbered(query.cursor, filters).number
    await call.reserve(PAGE_BYTES)
    frames = call.ctx.world.storage.frames
    rows = await frames.of_event(event.zombie_id, event_id, after=after, limit=query.limit)
    # A page that its bytes have ended is shorter than asked for, so only an empty one says that this was all.
    following = encode(Numbered(rows[-1].seq, filters)) if rows else None
    if rows and not await frames.of_event(event.zombie_id, event_id, after=rows[-1].seq, limit=1):
        following = None
    return FramesPage(event_id, [view_frame(row) for row in rows], following)


def view_frame(frame: Frame) -> FrameItem:
    return FrameItem(frame.seq, frame.kind, frame.at_ms, frame.data)
