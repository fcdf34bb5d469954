"""The activity stream: an agent's frames as server-sent events, resumed by number, over restarts too."""

import math
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Annotated, NamedTuple, Self
from uuid import UUID

import msgspec

from sexton_actors.protocol.hub import GONE, AwaitFrames, News
from sexton_engine import EngineError
from sexton_http.answers import Headers, Problem, RequestHead, StreamAnswer
from sexton_http.bodies.numbers import read_number
from sexton_http.bodies.shapes import Query
from sexton_http.bodies.sse import pieces
from sexton_http.ceilings import Claim
from sexton_http.gateway.byte_budget import no_room
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import MAX_SEQ, NoBody, Wait, operation
from sexton_http.gateway.replays import NoRoom
from sexton_http.gateway.services import Services
from sexton_http.identity.context import HttpContext
from sexton_http.identity.principals import Delegate, Member
from sexton_http.retry_after import jittered_ms
from sexton_http.routes.events import Since, parse_since
from sexton_http.wire.stop_signal import Stop, until_stopped
from sexton_storage.errors import StorageError
from sexton_storage.records.frame_kinds import FrameKind

COMPLETE = FrameKind.EVENT_COMPLETE
LOOKED_THROUGH = 256
"""How many of the newest frames are searched for the end of the last event."""
EXPIRED = "UZ-AUTH-003"
RETRY_MS = 2000
"""At least; all that are cut off together come back over as long again."""
SLACK_S = 10.0
"""How much later than its own end an ask for frames is given up."""
LOOK_S = 1.0
"""How often a busy stream checks at most whether its browser is still signed in."""
RECHECK_S = 15.0
"""How often a stream is checked whose caller has a token; of a change it is told, see ``AccessChanges``."""

HEADERS: Headers = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
)


class StreamQuery(Query):
    last_event_id: Annotated[int, msgspec.Meta(ge=0, le=MAX_SEQ)] | None = None
    """As the header Last-Event-ID, for those who cannot set it."""
    since: Since | None = None
    """A duration (15s, 30m, 2h, 7d) back from now, or an RFC 3339 time: begin with the end of the
    agent's last event, if it ended since then. Without meaning beside Last-Event-ID."""


@operation(
    "GET",
    "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/events/stream",
    tag="Events",
    wait=Wait.STREAM,
    cookie=True,
    media="text/event-stream",
    codes=("UZ-ZMB-009",),
    agents="UZ-AUTH-001",
    resumes="LastEventId",
)
async def stream_events(call: Call[NoBody, StreamQuery]) -> StreamAnswer:
    """Follow an agent's activity.

    Frames have `id`, `event` and `data`; before the first an `id` alone says where the stream begins. With
    Last-Event-ID what was missed comes first, and what is older than is kept as one `resync` frame; without
    it the stream begins with what happens next, or with the last frame of the agent's last event, if that
    ended after `since`. It ends when the browser that opened it is signed out, when the key is revoked, and
    when the person's role or status is changed.
    """
    ctx, zombie_id = call.ctx, call.id("zombie_id")
    await call.services.scopes.require_zombie(call.id("workspace_id"), zombie_id)
    asked = _last_event_id(call.head, call.query.last_event_id)
    oldest, newest = await ctx.world.storage.frames.bounds(zombie_id)
    since = parse_since(call.query.since, ctx.world.now_ms())
    if asked is not None:
        after = min(asked, newest)
    else:
        after = newest if since is None else await _before_the_end(ctx, zombie_id, newest, since)
    reader = Reader(zombie_id, call.claim, after, newest, oldest)
    call.leave_door()  # What it may wait for now is room, and no work.
    if after < newest and not await call.services.replays.has_room(reader.owner):
        raise no_room()
    watch = SignInWatch(call.services, call.caller, call.head)
    return StreamAnswer(HEADERS, follow(call.services, watch, reader))


async def _before_the_end(ctx: HttpContext, zombie_id: UUID, newest: int, since: int) -> int:
    """The number before the frame with which the last event ended since then, else the newest.

    Where an event has gone on for more frames than are looked through, the last one has not ended.
    """
    frames = ctx.world.storage.frames
    end = await frames.last_of_kind(zombie_id, COMPLETE, since=since, among=LOOKED_THROUGH)
    return newest if end is None else end - 1


def _last_event_id(head: RequestHead, query: int | None) -> int | None:
    text = head.header(b"last-event-id")
    if not text:
        return query
    number = read_number(text, MAX_SEQ)
    if number is None:
        raise Problem("UZ-REQ-001", "Last-Event-ID: not an id of this stream")
    return number


class SignInWatch:
    """Whether a stream may go on: as long as the person, key and sign-in that opened it are as they were."""

    def __init__(
        self, services: Services, caller: Member | Delegate, head: RequestHead, *, look_s: float = LOOK_S
    ) -> None:
        """``look_s``: how often it is checked at most whether a browser is still signed in."""
        self._access, self._browsers = services.access, services.browsers
        self._authenticator, self._head = services.authenticator, head
        self._caller = caller
        self._browser = caller.browser if isinstance(caller, Member) else None
        self._monotonic = services.ctx.monotonic
        self._look_s = look_s
        self._look_at = self._ends_at = -math.inf
        self.over = Stop()

    def __enter__(self) -> Self:
        self.over = self._access.watch(self._caller.ends_with)
        return self

    def __exit__(self, *_: object) -> None:
        self._access.unwatch(self._caller.ends_with, self.over)

    async def left_s(self) -> float:
        """Seconds until it ends if nothing changes; 0 when it is over."""
        if self.over.is_set():
            return 0
        now = self._monotonic()
        if now >= self._look_at:
            if self._browser is None:
                self._ends_at = math.inf if await self._is_let_in() else now
                self._look_at = now + RECHECK_S
            else:
                self._ends_at = now + await self._browsers.left_ms(self._browser) / 1000
                self._look_at = now + self._look_s
        return max(0, self._ends_at - now)

    async def _is_let_in(self) -> bool:
        """Whether the token would open it again; a user token that has run out since is no reason to end."""
        try:
            if await self._authenticator.delegate(self._head) is None:
                await self._authenticator.member(self._head)
        except Problem as problem:
            return problem.code == EXPIRED and isinstance(self._caller, Member) and self._caller.key is None
        return True


class Reader(NamedTuple):
    """One who follows a stream: where he begins, and what there was when he came."""

    zombie_id: UUID
    owner: Claim
    """The one whose share of the bytes under way the replay counts in."""
    after: int
    newest: int
    oldest: int
    """The number of the oldest frame that is kept."""


async def follow(services: Services, watch: SignInWatch, reader: Reader) -> AsyncGenerator[bytes, None]:
    """What one reader is sent, piece by piece, until he leaves or the server stops."""
    # The number with which it begins, for those who are cut off before the first frame.
    yield b"retry: %d\nid: %d\n\n" % (jittered_ms(RETRY_MS), reader.after)
    if reader.after < reader.oldest - 1:
        yield _resync(reader.zombie_id, reader.oldest, services.ctx.world.now_ms())
        reader = reader._replace(after=reader.oldest - 1)
    with watch:
        async with aclosing(_frames(services, watch, reader)) as chunks:
            async for chunk in chunks:
                yield chunk


async def _frames(services: Services, watch: SignInWatch, reader: Reader) -> AsyncGenerator[bytes, None]:
    """What was missed is read page by page, each when the one before is sent; what follows, once for all."""
    ctx, zombie_id, after, head = services.ctx, reader.zombie_id, reader.after, reader.newest
    while not ctx.stop.is_set():
        news, page = None, None
        try:
            wait_s = min(ctx.settings.stream_heartbeat_s, await watch.left_s())
            if wait_s <= 0:
                return
            if after < head:
                page = await services.replays.take(reader.owner, zombie_id, after)
            else:
                news = await _await(ctx, watch, zombie_id, after, wait_s)
        except (NoRoom, StorageError, EngineError):
            return  # The client comes back by the id that it has.
        if page is not None:
            try:
                for piece in pieces(page.body):
                    yield piece
            finally:
                services.replays.release(page)
            if page.last == after:
                # Pruned before they were read: as if the reader had been away for so long.
                yield _resync(zombie_id, head + 1, ctx.world.now_ms())
            after = head if page.last == after else page.last
        elif news is not None:
            if news.head == GONE:
                return
            after, head, body = _told(services, news, after)
            news = None  # Nothing of it is kept while its bytes are sent.
            for piece in pieces(body):
                yield piece


def _told(services: Services, news: News, after: int) -> tuple[int, int, bytes]:
    """The number up to which the reader is told, the newest there is, and what is sent."""
    if news.frames:
        return news.frames[-1].seq, news.head, services.frame_encoder.encode(news.frames)
    return after, news.head, b"" if news.head > after else b": keep\n\n"


async def _await(
    ctx: HttpContext, watch: SignInWatch, zombie_id: UUID, after: int, wait_s: float
) -> News | None:
    message = AwaitFrames(zombie_id, after, wait_s)
    ask = partial(ctx.system.ask, "hub", "", message, timeout=wait_s + SLACK_S)
    return await until_stopped(ask, ctx.stop, watch.over)


def _resync(zombie_id: UUID, oldest: int, now: int) -> bytes:
    data = {"kind": "resync", "event_id": None, "zombie_id": zombie_id, "at_ms": now, "oldest_id": oldest}
    return b"id: %d\nevent: resync\ndata: %b\n\n" % (oldest - 1, msgspec.json.encode(data))
