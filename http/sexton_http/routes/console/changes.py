"""Tells pages that are open when to look again."""

from collections.abc import AsyncGenerator
from functools import partial
from typing import Final
from uuid import UUID

import trio

from sexton_http.answers import StreamAnswer
from sexton_http.ceilings import Claim
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, NoQuery, Wait, operation
from sexton_http.gateway.page_parts import promise_s
from sexton_http.gateway.replays import NoRoom
from sexton_http.gateway.services import Services
from sexton_http.pages.form_actions import TAG
from sexton_http.retry_after import jittered_ms
from sexton_http.routes.stream import HEADERS, RECHECK_S, RETRY_MS, SignInWatch
from sexton_http.wire.stop_signal import until_stopped
from sexton_storage.errors import StorageError
from sexton_storage.records.frame_kinds import QUIET_KINDS
from sexton_storage.records.frames import EVERYBODY, FramePlace

AT_LEAST_EVERY_S: Final = 30.0
"""Times on a page grow old, and a runner that goes away changes no row."""


@operation(
    "GET",
    "/console/{workspace_id}/changes",
    tag=TAG,
    wait=Wait.STREAM,
    cookie=True,
    media="text/event-stream",
)
async def follow_changes(call: Call[NoBody, NoQuery]) -> StreamAnswer:
    """Tell an open page when something has happened in its workspace.

    An event `changed` at most once a second, more rarely the more pages are open, and every 30 seconds
    whatever happens. Its id is a place in the workspace's stream, which a page sends back to be shown what is
    at least as new; `within_ms` says over how long pages spread their asking. In between an event `still`
    says that the server is there. Both tell in `quiet_ms` how soon the next one comes at the latest: a page
    that hears nothing for so long takes the server for away.
    """
    watch = SignInWatch(call.services, call.caller, call.head, look_s=RECHECK_S)
    scopes = (call.id("workspace_id"), call.member.tenant_id, EVERYBODY)
    return StreamAnswer(HEADERS, _changes(call.services, watch, call.claim, scopes))


async def _changes(
    services: Services, watch: SignInWatch, owner: Claim, scopes: tuple[UUID, ...]
) -> AsyncGenerator[bytes, None]:
    """``scopes``: the workspace first, and whatever else is changed for it."""
    parts, ctx = services.page_parts, services.ctx
    parts.watchers += 1
    try:
        with watch:
            after = await ctx.world.storage.frames.workspace_head()
            told_at = said_at = ctx.monotonic()
            promised_s = promise_s(parts.pause_s)
            yield b"retry: %d\n%b" % (jittered_ms(RETRY_MS), _changed(after, 0, promised_s))
            while not ctx.stop.is_set() and await watch.left_s() > 0:
                # All look at the same moments, so what one has read the others need not read.
                left_s = parts.pause_s - ctx.monotonic() % parts.pause_s
                await until_stopped(partial(trio.sleep, left_s), ctx.stop, watch.over)
                before = after
                after, anything = await look(services, owner, scopes[0], before)
                anything = anything or await rows_changed(services, scopes, before, after)
                now, pause_s = ctx.monotonic(), parts.pause_s
                # And all are told by the same clock, so that what nothing has changed is made once.
                if anything or now // AT_LEAST_EVERY_S > told_at // AT_LEAST_EVERY_S:
                    told_at = said_at = now
                    promised_s = promise_s(pause_s)
                    yield _changed(after, parts.spread_s, promised_s)
                elif now + pause_s - said_at > promised_s / 2:
                    said_at, promised_s = now, promise_s(pause_s)
                    yield _still(after, promised_s)
    except (NoRoom, StorageError):
        return  # The page comes back by itself.
    finally:
        parts.watchers -= 1


async def rows_changed(
    services: Services, scopes: tuple[UUID, ...], after: FramePlace, upto: FramePlace
) -> bool:
    """Whether something has changed that leaves no frame: what people do, and what rounds do to rows."""
    if upto.commit <= after.commit:
        return False
    world = services.ctx.world

    async def ask() -> bool:
        return await world.storage.frames.has_changed(scopes, after=after, upto=upto)

    key = (scopes, after.commit, upto.commit)
    return await services.page_changes.share(key, ask, now_ms=world.now_ms())


async def look(
    services: Services, owner: Claim, workspace_id: UUID, after: FramePlace
) -> tuple[FramePlace, bool]:
    """Where the workspace's stream is now, and whether a frame before that tells of a change.

    What a run says and does in between does not, and there is much of it.
    """
    anything = False
    while True:
        page = await services.replays.take_of_workspace(owner, workspace_id, after)
        found = page.found
        services.replays.release(page)
        if found is None:
            return after, anything
        anything = anything or any(frame.kind not in QUIET_KINDS for frame in found.frames)
        if found.is_all or found.upto == after:
            return found.upto, anything
        after = found.upto


def _changed(place: FramePlace, within_s: float, quiet_s: float) -> bytes:
    data = b'{"kind":"changed","within_ms":%d,"quiet_ms":%d}' % (
        round(within_s * 1000),
        round(quiet_s * 1000),
    )
    return b"id: %b\nevent: changed\ndata: %b\n\n" % (str(place).encode(), data)


def _still(place: FramePlace, quiet_s: float) -> bytes:
    data = b'{"kind":"still","quiet_ms":%d}' % round(quiet_s * 1000)
    return b"id: %b\nevent: still\ndata: %b\n\n" % (str(place).encode(), data)
