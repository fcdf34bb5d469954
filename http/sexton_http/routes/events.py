"""Event history, of one agent or of a whole workspace."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any, NamedTuple
from uuid import UUID

import msgspec

from sexton_http.answers import Problem
from sexton_http.bodies.cursors import Place, SearchPlace, decode, decode_search, encode, fingerprint
from sexton_http.bodies.shapes import Cursor, Shape
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, operation
from sexton_http.routes.shared.event_filters import EventFilterQuery, also, filter_of, given
from sexton_storage.event_filter.parse import time_of
from sexton_storage.paging import Page
from sexton_storage.records.event_filters import Field
from sexton_storage.records.events import Event, EventStatus, ListedEvent
from sexton_storage.rules import has_ended

TAG = "Events"
PAGE_BYTES = 4 * 1024 * 1024
"""Bound of a page; what is beyond it begins the next one."""
ITEM_BYTES = 16 * 1024
"""What an item of a list is counted with until it is read."""

Glob = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
Since = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]


class Sizes(NamedTuple):
    """Bytes of what an event holds, whether it is shown or not; None for what there is none of."""

    request: int
    response: int | None
    evidence: int | None


def sizes_of(event: Event) -> Sizes:
    """How long the texts are of an event that was read whole."""
    return Sizes(
        len(event.request_json.encode()),
        None if event.response_text is None else len(event.response_text.encode()),
        None if event.evidence is None else len(msgspec.json.encode(event.evidence)),
    )


class CanarySide(StrEnum):
    CANDIDATE = "candidate"
    STABLE = "stable"


class EventItem(Shape):
    event_id: UUID
    zombie_id: UUID
    zombie_name: str
    workspace_id: UUID
    actor: str
    event_type: str
    status: EventStatus
    ended: bool
    """Whether nothing more will come of it by itself."""
    request_json: Annotated[
        msgspec.Raw,
        msgspec.Meta(extra_json_schema={"description": "The trigger's body; null where it was left out."}),
    ]
    response_text: str | None
    evidence: Any
    tokens: int
    """Input, input read from and written to a cache, and output together."""
    wall_ms: int
    charged_nanos: int
    attempts: int
    failure_label: str | None
    error_code: str | None
    source_event_id: str | None
    resumes_event_id: UUID | None
    created_at: int
    updated_at: int
    completed_at: int | None
    truncated: bool
    """Whether request, answer or evidence was left out, as lists do with what is over 4,096 bytes; the
    event by itself has all."""
    request_bytes: int
    response_bytes: int | None
    evidence_bytes: int | None
    retry_at: int | None
    """Nobody is given a received event before then: its run found every model busy."""
    agent_version: int | None
    """The number of the agent's version that ran it, or runs it; null: nobody was given it yet."""
    asked_version: int | None
    """The number of the version that it must be run under; null: whichever is active then."""
    shadow_job_id: UUID | None
    """The job that has it run without effects; null: it is an event as any other."""
    canary_id: UUID | None
    """The trial of a version that it came in."""
    canary_side: CanarySide | None
    """On which side of it the event is."""


class EventPage(Shape):
    items: list[EventItem]
    next_cursor: str | None


class EventQuery(EventFilterQuery, kw_only=True):
    cursor: Cursor | None = None
    actor: Glob | None = None
    """A glob over forms like ``webhook:github`` and ``steer:ann``."""
    since: Since | None = None
    """A duration (15s, 30m, 2h, 7d) back from now, or an RFC 3339 time; not beside a cursor."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 50
    status: EventStatus | None = None


class WorkspaceEventQuery(EventQuery, kw_only=True):
    zombie_id: UUID | None = None


@operation(
    "GET",
    "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/events",
    tag=TAG,
    codes=("UZ-ZMB-009",),
    agents="UZ-AUTH-001",
)
async def list_zombie_events(call: Call[NoBody, EventQuery]) -> EventPage:
    """List one agent's events, newest first."""
    zombie_id = call.id("zombie_id")
    await call.services.scopes.require_zombie(call.id("workspace_id"), zombie_id)
    return await _page(call, call.query, zombie_id)


@operation("GET", "/v1/workspaces/{workspace_id}/events", tag=TAG)
async def list_workspace_events(call: Call[NoBody, WorkspaceEventQuery]) -> EventPage:
    """List a workspace's events, newest first."""
    return await _page(call, call.query, call.query.zombie_id)


async def _page(call: Call[Any, Any], query: EventQuery, zombie_id: UUID | None) -> EventPage:
    if query.cursor is not None and query.since is not None:
        raise Problem("UZ-REQ-001", "cursor and since exclude each other")
    if any(given(query)):
        return await _search(call, query, zombie_id)
    workspace_id = call.id("workspace_id")
    filters = fingerprint("events", workspace_id, zombie_id, query.actor, query.status)
    if query.cursor is None:
        place, since = None, parse_since(query.since, call.ctx.world.now_ms())
    else:
        place = decode(query.cursor, filters)
        since = place.since
    await call.reserve(min(PAGE_BYTES, query.limit * ITEM_BYTES))
    rows = await call.ctx.world.storage.events.list(
        workspace_id,
        limit=query.limit + 1,
        zombie_id=zombie_id,
        before=None if place is None else place.page,
        since=since,
        actor_glob=query.actor,
        status=query.status,
    )
    shown = _within(rows[: query.limit])
    more = len(rows) > len(shown)
    last = rows[len(shown) - 1] if more else None
    following = None if last is None else encode(Place(last.created_at, last.id, filters, since))
    return EventPage(shown, following)


async def _search(call: Call[Any, Any], query: EventQuery, zombie_id: UUID | None) -> EventPage:
    """Give a page of what a filter picks. One that looked through much may show little, and go on."""
    workspace_id = call.id("workspace_id")
    filters = fingerprint("search", workspace_id, zombie_id, query.actor, query.status, *given(query))
    place = None if query.cursor is None else decode_search(query.cursor, filters)
    asked_at = call.ctx.world.now_ms() if place is None else place.asked_at
    since = parse_since(query.since, asked_at) if place is None else place.since
    picked = filter_of(query, asked_at)
    if query.actor is not None:
        picked = also(picked, Field.ACTOR, query.actor)
    if query.status is not None:
        picked = also(picked, Field.STATUS, query.status)
    if since is not None:
        picked = also(picked, Field.AFTER, str(since))
    await call.reserve(min(PAGE_BYTES, query.limit * ITEM_BYTES))
    found = await call.ctx.world.storage.events.search(
        workspace_id,
        picked,
        limit=query.limit + 1,
        zombie_id=zombie_id,
        before=None if place is None else place.page,
    )
    rows = found.events
    shown = _within(rows[: query.limit])
    last = found.stopped_at
    if len(rows) > len(shown):
        last = Page(rows[len(shown) - 1].created_at, rows[len(shown) - 1].id)
    if last is None:
        return EventPage(shown, None)
    return EventPage(shown, encode(SearchPlace(last.created_at, last.id, filters, since, asked_at)))


def _within(rows: Sequence[ListedEvent]) -> list[EventItem]:
    """As many items as a page may have in bytes, and at least one."""
    shown: list[EventItem] = []
    left = PAGE_BYTES
    for row in rows:
        sizes = Sizes(row.request_bytes, row.response_bytes, row.evidence_bytes)
        item = view_event(row, row.zombie_name, sizes, truncated=row.is_cut)
        left -= len(msgspec.json.encode(item))
        if left < 0 and shown:
            break
        shown.append(item)
    return shown


def parse_since(text: str | None, now: int) -> int | None:
    """The lower bound in Unix ms. Raises Problem UZ-REQ-001.

    >>> parse_since("15s", 60_000)
    45000
    >>> parse_since("1970-01-01T00:00:01Z", 0)
    1000
    """
    if text is None:
        return None
    found = None if text.isdigit() else time_of(text, now)
    if found is not None:
        return found
    raise Problem(
        "UZ-REQ-001", "since: a duration such as 30m, or an RFC 3339 time", facts={"parameter": "since"}
    )


def side_of(event: Event) -> CanarySide | None:
    """On which side of a trial it is; None: on neither."""
    if event.trial_id is None:
        return None
    return CanarySide.STABLE if event.asked_version is None else CanarySide.CANDIDATE


def view_event(event: Event, name: str, sizes: Sizes, *, truncated: bool = False) -> EventItem:
    return EventItem(
        event_id=event.id,
        zombie_id=event.zombie_id,
        zombie_name=name,
        workspace_id=event.workspace_id,
        actor=event.actor,
        event_type=event.event_type,
        status=event.status,
        ended=has_ended(event),
        request_json=msgspec.Raw(event.request_json.encode()),
        response_text=event.response_text,
        evidence=event.evidence,
        tokens=event.tokens,
        wall_ms=event.wall_ms,
        charged_nanos=event.charged_nanos,
        attempts=event.attempts,
        failure_label=event.failure_label,
        error_code=event.error_code,
        source_event_id=event.source_event_id,
        resumes_event_id=event.resumes_event_id,
        created_at=event.created_at,
        updated_at=event.updated_at,
        completed_at=event.completed_at,
        truncated=truncated,
        request_bytes=sizes.request,
        response_bytes=sizes.response,
        evidence_bytes=sizes.evidence,
        retry_at=event.retry_at,
        agent_version=event.ran_version,
        asked_version=event.asked_version,
        shadow_job_id=event.shadow_job,
        canary_id=event.trial_id,
        canary_side=side_of(event),
    )
