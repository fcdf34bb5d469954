"""All events that a filter picks, whole, as lines of JSON."""

from collections.abc import AsyncGenerator
from typing import Final

import msgspec

from sexton_http.answers import StreamAnswer
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, Wait, operation
from sexton_http.routes.events import EventItem, sizes_of, view_event
from sexton_http.routes.shared.event_filters import EventFilterQuery, also, filter_of
from sexton_storage.paging import Page
from sexton_storage.records.event_filters import EventFilter, Field
from sexton_storage.records.events import EventStatus, ListedEvent

TAG: Final = "Events"
NDJSON: Final = "application/x-ndjson"
READ_EVENTS: Final = 50
"""Read at once; of each up to 16 KiB, and what is longer is read by itself."""
RESERVED_BYTES: Final = 4 * 1024 * 1024
"""For the events that were read, and one that is long."""


class ExportQuery(EventFilterQuery, kw_only=True):
    status: EventStatus | None = None


@operation(
    "GET",
    "/v1/workspaces/{workspace_id}/events/export",
    tag=TAG,
    wait=Wait.STREAM,
    media=NDJSON,
    cookie=True,
)
async def export_events(call: Call[NoBody, ExportQuery]) -> StreamAnswer:
    """Give all events that a filter picks, newest first, whole: a JSON object each, as in the list.

    Without a filter it is every event of the workspace. What arrives meanwhile is not among them.
    """
    query, now = call.query, call.ctx.world.now_ms()
    picked = filter_of(query, now)
    if query.status is not None:
        picked = also(picked, Field.STATUS, query.status)
    await call.reserve(RESERVED_BYTES)
    name = (b"content-disposition", b'attachment; filename="events.jsonl"')
    return StreamAnswer(((b"content-type", NDJSON.encode()), name), _lines(call, picked))


async def _lines(call: Call[NoBody, ExportQuery], picked: EventFilter) -> AsyncGenerator[bytes, None]:
    encode_lines, events = msgspec.json.Encoder().encode_lines, call.ctx.world.storage.events
    workspace_id, before = call.id("workspace_id"), None
    while True:
        found = await events.search(workspace_id, picked, limit=READ_EVENTS, before=before)
        for row in found.events:
            item = await _whole(call, row)
            if item is not None:
                yield encode_lines([item])
        if len(found.events) == READ_EVENTS:
            before = Page(found.events[-1].created_at, found.events[-1].id)
        elif found.stopped_at is not None:
            before = found.stopped_at
        else:
            return


async def _whole(call: Call[NoBody, ExportQuery], row: ListedEvent) -> EventItem | None:
    """What the list shows of it, with what the list leaves out; None: it was deleted meanwhile."""
    event = await call.ctx.world.storage.events.load(row.id) if row.is_cut else row
    return None if event is None else view_event(event, row.zombie_name, sizes_of(event))
