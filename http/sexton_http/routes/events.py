"""Event history, of one agent or of a whole workspace."""

import re
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec

from sexton_http.answers import Problem
from sexton_http.bodies.cursors import Place, decode, encode, fingerprint
from sexton_http.bodies.shapes import Cursor, Query, Shape
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, operation
from sexton_storage.records.events import Event, EventStatus

TAG = "Events"
UNIT_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"(\d{1,9})([smhd])", re.ASCII)
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)

Glob = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
Since = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]


class EventItem(Shape):
    event_id: UUID
    zombie_id: UUID
    workspace_id: UUID
    actor: str
    event_type: str
    status: EventStatus
    request_json: Annotated[
        msgspec.Raw, msgspec.Meta(extra_json_schema={"description": "The trigger's body."})
    ]
    response_text: str | None
    evidence: Any
    tokens: int
    """Input, cached input and output together."""
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


class EventPage(Shape):
    items: list[EventItem]
    next_cursor: str | None


class EventQuery(Query):
    cursor: Cursor | None = None
    actor: Glob | None = None
    """A glob over forms like ``webhook:github`` and ``steer:ann``."""
    since: Since | None = None
    """A duration (15s, 30m, 2h, 7d) back from now, or an RFC 3339 time; not beside a cursor."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 50
    status: EventStatus | None = None


class WorkspaceEventQuery(EventQuery):
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
    workspace_id = call.id("workspace_id")
    filters = fingerprint("events", workspace_id, zombie_id, query.actor, query.status)
    if query.cursor is None:
        place, since = None, parse_since(query.since, call.ctx.world.now_ms())
    else:
        place = decode(query.cursor, filters)
        since = place.since
    rows = await call.ctx.world.storage.events.list(
        workspace_id,
        limit=query.limit + 1,
        zombie_id=zombie_id,
        before=None if place is None else place.page,
        since=since,
        actor_glob=query.actor,
        status=query.status,
    )
    shown = rows[: query.limit]
    more = len(rows) > query.limit
    following = encode(Place(shown[-1].created_at, shown[-1].id, filters, since)) if more else None
    return EventPage([view_event(event) for event in shown], following)


def parse_since(text: str | None, now: int) -> int | None:
    """The lower bound in Unix ms. Raises Problem UZ-REQ-001.

    >>> parse_since("15s", 60_000)
    45000
    >>> parse_since("1970-01-01T00:00:01Z", 0)
    1000
    """
    if text is None:
        return None
    duration = _DURATION.fullmatch(text)
    if duration:
        return now - int(duration[1]) * UNIT_MS[duration[2]]
    if _RFC3339.fullmatch(text):
        try:
            return int(datetime.fromisoformat(text.upper()).timestamp() * 1000)
        except (ValueError, OverflowError):
            pass
    raise Problem(
        "UZ-REQ-001", "since: a duration such as 30m, or an RFC 3339 time", facts={"parameter": "since"}
    )


def view_event(event: Event) -> EventItem:
    return EventItem(
        event_id=event.id,
        zombie_id=event.zombie_id,
        workspace_id=event.workspace_id,
        actor=event.actor,
        event_type=event.event_type,
        status=event.status,
        request_json=msgspec.Raw(event.request_json.encode()),
        response_text=event.response_text,
        evidence=event.evidence,
        tokens=event.input_tokens + event.cached_input_tokens + event.output_tokens,
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
    )
