"""The activity stream: an agent's frames as server-sent events, resumed by number, over restarts too."""

from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import Annotated
from uuid import UUID

import msgspec

from sexton_actors.hub.messages import AwaitFrames
from sexton_engine import EngineError
from sexton_http.answers import Headers, Problem, RequestHead, StreamAnswer
from sexton_http.context import HttpContext
from sexton_http.operations import Call, NoBody, Wait, operation
from sexton_http.shapes import Query
from sexton_http.stopping import until_stopped
from sexton_storage.records import Frame
from sexton_storage.stores import StorageError

FRAMES_A_READ = 256
RETRY_MS = 2000
SLACK_S = 10.0
"""How much later than its own end an ask for frames is given up."""
MAX_SEQ = 2**62

HEADERS: Headers = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
)


class StreamQuery(Query):
    last_event_id: Annotated[int, msgspec.Meta(ge=0, le=MAX_SEQ)] | None = None
    """As the header Last-Event-ID, for those who cannot set it."""


@operation(
    "GET",
    "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/events/stream",
    tag="Events",
    wait=Wait.STREAM,
    media="text/event-stream",
    codes=("UZ-ZMB-009",),
)
async def stream_events(call: Call[NoBody, StreamQuery]) -> StreamAnswer:
    """Follow an agent's activity.

    Frames have `id`, `event` and `data`; with Last-Event-ID what was missed comes first. What is older
    than is kept comes as one `resync` frame. Without it the stream begins with what happens next.
    """
    ctx, zombie_id = call.ctx, call.id("zombie_id")
    await call.services.scopes.require_zombie(call.id("workspace_id"), zombie_id)
    asked = _last_event_id(call.head, call.query.last_event_id)
    oldest, newest = await ctx.world.storage.frames.bounds(zombie_id)
    after = newest if asked is None else min(asked, newest)
    return StreamAnswer(HEADERS, _follow(ctx, zombie_id, after, missed=after < oldest - 1, oldest=oldest))


def _last_event_id(head: RequestHead, query: int | None) -> int | None:
    text = head.header(b"last-event-id")
    if not text:
        return query
    if not text.isascii() or not text.isdigit() or int(text) > MAX_SEQ:
        raise Problem("UZ-REQ-001", "Last-Event-ID: not an id of this stream")
    return int(text)


async def _follow(
    ctx: HttpContext, zombie_id: UUID, after: int, *, missed: bool, oldest: int
) -> AsyncGenerator[bytes, None]:
    yield b"retry: %d\n\n" % RETRY_MS
    if missed:
        yield _resync(zombie_id, oldest, ctx.world.now_ms())
        after = oldest - 1
    wait_s = ctx.settings.stream_heartbeat_s
    while not ctx.stop.is_set():
        try:
            frames = await ctx.world.storage.frames.read(zombie_id, after=after, limit=FRAMES_A_READ)
            if frames:
                yield _spell(frames)
                after = frames[-1].seq
                continue
            message = AwaitFrames(zombie_id, after, wait_s)
            ask = partial(ctx.system.ask, "hub", "", message, timeout=wait_s + SLACK_S)
            newest = await until_stopped(ctx.stop, ask)
        except (StorageError, EngineError):
            return  # The client comes back by the id that it has.
        if newest is not None and newest <= after:
            yield b": keep\n\n"


def _resync(zombie_id: UUID, oldest: int, now: int) -> bytes:
    data = {"kind": "resync", "event_id": None, "zombie_id": zombie_id, "at_ms": now, "oldest_id": oldest}
    return b"id: %d\nevent: resync\ndata: %b\n\n" % (oldest - 1, msgspec.json.encode(data))


def _spell(frames: Sequence[Frame]) -> bytes:
    return b"".join(_spell_one(frame) for frame in frames)


def _spell_one(frame: Frame) -> bytes:
    own = {
        **frame.data,
        "kind": frame.kind,
        "event_id": frame.event_id,
        "zombie_id": frame.zombie_id,
        "at_ms": frame.at_ms,
    }
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (frame.seq, frame.kind.encode(), msgspec.json.encode(own))
