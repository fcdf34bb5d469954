"""The pages of what an event's runs said and did: its transcript, and the raw frames of its stream."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, NamedTuple

import msgspec

from sexton_http.answers import Answer
from sexton_http.bodies.shapes import Cursor, Query
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody
from sexton_http.pages.console import console_operation, older_of, refused_page, show_page
from sexton_http.pages.form_actions import act, may
from sexton_http.pages.templates.frame import Frame
from sexton_http.routes.event_frames import FramesPage, FramesQuery, list_event_frames
from sexton_http.routes.transcripts import (
    MAX_NUMBER,
    TranscriptItem,
    TranscriptPage,
    TranscriptQuery,
    get_workspace_transcript,
)

HERE: Final = "events"
ENTRIES: Final = 20
"""Entries of a page; each has 4 KiB of data at most."""
FRAMES: Final = 100
REFUSED: Final = "This needs the role user. The event's page tells what became of it."
TEXT_OF: Final[Mapping[str, str]] = {"tool_result": "content"}
"""Where the text of an entry stands that is not in `text`."""
WHOSE: Final = ("name", "model", "stream", "role", "tool")
Number = Annotated[int, msgspec.Meta(ge=1, le=MAX_NUMBER)]


class TranscriptLook(Query):
    """Which entries a page shows; with a number the whole of that one."""

    attempt: Number | None = None
    number: Number | None = None
    cursor: Cursor | None = None


class FramesLook(Query):
    cursor: Cursor | None = None


class Entry(NamedTuple):
    """An entry as a page shows it: its text, and what else it says."""

    item: TranscriptItem
    whose: str
    """Which tool, step, model or stream."""
    text: str
    facts: Mapping[str, Any]


@console_operation(HERE + "/{event_id}/transcript", HERE, "Transcript")
async def show_transcript(call: Call[NoBody, TranscriptLook], frame: Frame) -> Answer:
    """Show what the attempts at an event said and did, in order."""
    look, who = call.query, frame.signed_in
    if not may(who, get_workspace_transcript):
        return refused_page(frame, REFUSED, status=403)
    if look.number is None or look.attempt is None:
        query = TranscriptQuery(attempt=look.attempt, cursor=look.cursor, limit=ENTRIES)
    else:
        query = TranscriptQuery(attempt=look.attempt, number=look.number, whole=True, limit=1)
    page: TranscriptPage = await act(call, who, get_workspace_transcript, query=query)
    here = f"{HERE}/{call.id('event_id')}/transcript"
    return show_page(
        call,
        frame,
        "transcript",
        event_id=call.id("event_id"),
        entries=[spelled(item) for item in page.items],
        attempts=page.attempts,
        look=look,
        later=None if query.whole else older_of(call, frame, here, page.next_cursor),
    )


@console_operation(HERE + "/{event_id}/frames", HERE, "Frames")
async def show_frames(call: Call[NoBody, FramesLook], frame: Frame) -> Answer:
    """Show the raw frames of an event's stream, in the order in which they came."""
    asked = FramesQuery(limit=FRAMES, cursor=call.query.cursor)
    page: FramesPage = await act(call, frame.signed_in, list_event_frames, query=asked)
    here = f"{HERE}/{call.id('event_id')}/frames"
    return show_page(
        call,
        frame,
        "event_frames",
        event_id=page.event_id,
        frames=page.items,
        later=older_of(call, frame, here, page.next_cursor),
    )


def spelled(item: TranscriptItem) -> Entry:
    """Part the text of an entry from its facts."""
    data = dict(item.data) if isinstance(item.data, dict) else {}
    text = data.pop(TEXT_OF.get(item.kind, "text"), "")
    whose = next((data.pop(field) for field in WHOSE if isinstance(data.get(field), str)), "")
    return Entry(item, whose, text if isinstance(text, str) else msgspec.json.encode(text).decode(), data)
