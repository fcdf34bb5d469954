"""The activity of a whole workspace as server-sent events, resumed by place, over restarts too."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Annotated, Final, NamedTuple
from uuid import UUID

import msgspec
import trio

from sexton_actors.terms import FRAMES_KEEP_COUNT, FRAMES_KEEP_MS
from sexton_http.answers import Problem, StreamAnswer
from sexton_http.bodies.sse import encode_placed, pieces
from sexton_http.ceilings import Claim
from sexton_http.gateway.byte_budget import no_room
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, Wait, operation
from sexton_http.gateway.replays import NoRoom, ReplayPage
from sexton_http.gateway.services import Services
from sexton_http.retry_after import jittered_ms
from sexton_http.routes.shared.event_filters import EventFilterQuery, filter_of
from sexton_http.routes.stream import HEADERS, RETRY_MS, SignInWatch
from sexton_http.wire.stop_signal import until_stopped
from sexton_storage.errors import StorageError
from sexton_storage.records.event_filters import EventFilter
from sexton_storage.records.frames import PLACE, FramePlace, WorkspaceFrames, place_of

TICK_S: Final = 0.25
"""How often it is looked for what is new. All streams look at the same moments, so that those of one
workspace share what is read."""


class WorkspaceStreamQuery(EventFilterQuery, kw_only=True):
    last_event_id: Annotated[str, msgspec.Meta(pattern=PLACE)] | None = None
    """As the header Last-Event-ID, for those who cannot set it."""


class WorkspaceReader(NamedTuple):
    """One who follows a workspace: where he begins, and what he wants to see."""

    workspace_id: UUID
    owner: Claim
    """The one whose share of the bytes under way what he is sent counts in."""
    after: FramePlace
    is_behind: bool
    """What he missed is not all kept."""
    picked: EventFilter


@operation(
    "GET",
    "/v1/workspaces/{workspace_id}/events/stream",
    tag="Events",
    wait=Wait.STREAM,
    cookie=True,
    media="text/event-stream",
    resumes="LastPlace",
)
async def stream_workspace_events(call: Call[NoBody, WorkspaceStreamQuery]) -> StreamAnswer:
    """Follow the activity of all agents of a workspace.

    Frames are those of the agents' own streams, with the agent's number as `seq`; their `id` is a place in
    the workspace. With Last-Event-ID what was missed comes first; where some of it is not kept any more one
    `resync` frame says so, and the stream goes on with what happens next. With a filter only frames of the
    events come that it picks at that moment. It ends as an agent's stream does.
    """
    ctx, workspace_id = call.ctx, call.id("workspace_id")
    picked = filter_of(call.query, ctx.world.now_ms())
    frames = ctx.world.storage.frames
    asked = _last_place(call)
    head = await frames.workspace_head()
    after = head if asked is None else min(asked, head)
    is_behind = asked is not None and await frames.has_gap(
        workspace_id, after, keep_ms=FRAMES_KEEP_MS, keep_frames=FRAMES_KEEP_COUNT
    )
    owner = call.claim
    call.leave_door()  # What it may wait for now is room, and no work.
    if after < head and not await call.services.replays.has_room(owner):
        raise no_room()
    reader = WorkspaceReader(workspace_id, owner, head if is_behind else after, is_behind, picked)
    watch = SignInWatch(call.services, call.caller, call.head)
    return StreamAnswer(HEADERS, _follow(call.services, watch, reader))


def _last_place(call: Call[NoBody, WorkspaceStreamQuery]) -> FramePlace | None:
    text = call.head.header(b"last-event-id") or call.query.last_event_id
    if not text:
        return None
    place = place_of(text)
    if place is None:
        raise Problem("UZ-REQ-001", "Last-Event-ID: not an id of this stream")
    return place


async def _follow(
    services: Services, watch: SignInWatch, reader: WorkspaceReader
) -> AsyncGenerator[bytes, None]:
    yield b"retry: %d\nid: %b\n\n" % (jittered_ms(RETRY_MS), str(reader.after).encode())
    if reader.is_behind:
        yield _resync(reader, services.ctx.world.now_ms())
    with watch:
        async with aclosing(_frames(services, watch, reader)) as chunks:
            async for chunk in chunks:
                yield chunk


async def _frames(
    services: Services, watch: SignInWatch, reader: WorkspaceReader
) -> AsyncGenerator[bytes, None]:
    ctx, after = services.ctx, reader.after
    told_at = ctx.monotonic()
    while not ctx.stop.is_set() and await watch.left_s() > 0:
        try:
            page = await services.replays.take_of_workspace(reader.owner, reader.workspace_id, after)
        except (NoRoom, StorageError):
            return  # The client comes back by the id that it has.
        try:
            body = await _shown(services, reader, page)
            for piece in pieces(body):
                yield piece
        except StorageError:
            return
        finally:
            services.replays.release(page)
        found = page.found
        if found is None or found.upto == after or found.is_all:
            await _until_next_look(services, watch)
        after = after if found is None else found.upto
        if body:
            told_at = ctx.monotonic()
        elif ctx.monotonic() - told_at >= ctx.settings.stream_heartbeat_s:
            told_at = ctx.monotonic()
            # Where nothing is shown for long, the place moves all the same.
            yield b"id: %b\n: keep\n\n" % str(after).encode()


async def _shown(services: Services, reader: WorkspaceReader, page: ReplayPage) -> bytes:
    """What the reader is sent of a page: all of it, or the frames of the events that his filter picks."""
    if not reader.picked or page.found is None:
        return page.body
    found: WorkspaceFrames = page.found
    ids = {frame.event_id for frame in found.frames if frame.event_id is not None}
    if not ids:
        return b""
    mine = await services.ctx.world.storage.events.picked_among(tuple(ids), reader.picked)
    return b"".join(
        encode_placed(frame, place)
        for frame, place in zip(found.frames, found.places, strict=True)
        if frame.event_id in mine
    )


async def _until_next_look(services: Services, watch: SignInWatch) -> None:
    left_s = TICK_S - services.ctx.monotonic() % TICK_S
    await until_stopped(partial(trio.sleep, left_s), services.ctx.stop, watch.over)


def _resync(reader: WorkspaceReader, now: int) -> bytes:
    data = {
        "kind": "resync",
        "event_id": None,
        "zombie_id": None,
        "workspace_id": reader.workspace_id,
        "at_ms": now,
    }
    return b"id: %b\nevent: resync\ndata: %b\n\n" % (str(reader.after).encode(), msgspec.json.encode(data))
