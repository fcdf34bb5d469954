"""Waits for an event's end, as long as a caller asks to."""

import re
from functools import partial
from typing import Final

from sexton_actors.protocol.hub import GONE, AwaitFrames, News
from sexton_http.answers import RequestHead
from sexton_http.identity.context import HttpContext
from sexton_http.wire.stop_signal import until_stopped
from sexton_storage.records.events import Event
from sexton_storage.records.frame_kinds import FrameKind
from sexton_storage.rules import has_ended

MAX_S: Final = 30
"""As long as any call may ask to wait."""
SLACK_S: Final = 10.0
"""How much later than its own end an ask for frames is given up."""
END: Final = FrameKind.EVENT_COMPLETE
"""The kind of the last frame of an event."""
_WAIT: Final = re.compile(r"(?:^|,)\s*wait\s*=\s*\"?(\d{1,9})\"?\s*(?=$|[,;])", re.IGNORECASE | re.ASCII)


def preferred_s(prefer: str) -> int:
    """Give the seconds that a header Prefer asks to wait (RFC 7240), at most 30; 0 where it asks for nothing.

    >>> [preferred_s(text) for text in ("wait=10", "respond-async, wait=90", "wait=soon", "")]
    [10, 30, 0, 0]
    """
    found = _WAIT.search(prefer)
    return min(MAX_S, int(found[1])) if found else 0


def asked_wait_s(wait_ms: int, head: RequestHead) -> float:
    """How long the caller asks to wait, by the query or by the header; the query comes first."""
    return wait_ms / 1000 if wait_ms else preferred_s(head.header(b"prefer") or "")


async def until_ended(ctx: HttpContext, event: Event, wait_s: float) -> None:
    """Wait until the event has ended, its agent is gone, the server stops, or the time is over."""
    deadline = ctx.monotonic() + wait_s
    # Where the frames end is asked before how the event is: an end that comes later is told by a frame.
    _, after = await ctx.world.storage.frames.bounds(event.zombie_id)
    found = await ctx.world.storage.events.load(event.id)
    while found is not None and not has_ended(found):
        if (left_s := deadline - ctx.monotonic()) <= 0:
            return
        ask = partial(
            ctx.system.ask, "hub", "", AwaitFrames(event.zombie_id, after, left_s), timeout=left_s + SLACK_S
        )
        news: News | None = await until_stopped(ask, ctx.stop)
        if news is None or news.head == GONE:
            return
        is_told = any(frame.event_id == event.id and frame.kind == END for frame in news.frames)
        # Of frames that are not kept in memory any more only their number is known.
        if is_told or (not news.frames and news.head > after):
            found = await ctx.world.storage.events.load(event.id)
        after = news.frames[-1].seq if news.frames else max(after, news.head)
