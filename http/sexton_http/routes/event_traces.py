"""The trace of one event, as a collector of OpenTelemetry would get it, for those who have none."""

from typing import Any, Final
from uuid import UUID

from sexton_actors.traces.content import ContentMode
from sexton_actors.traces.context import context_of
from sexton_actors.traces.event_spans import Traced
from sexton_actors.traces.span_reader import SpanReader
from sexton_actors.traces.spans import COST, Span
from sexton_http.bodies.shapes import Shape
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import KIB, NoBody, NoQuery, operation
from sexton_http.routes.events import TAG
from sexton_http.routes.shared.event_lookup import find_event
from sexton_storage.records.events import EventStatus
from sexton_storage.rules import has_ended

MOST_SPANS: Final = 2_000
"""Spans of runs in one answer."""
MOST_READ_BYTES: Final = 16 * 1024 * KIB
"""How much of transcripts is read for one answer."""
ANSWER_BYTES: Final = 4 * 1024 * KIB
"""What is reserved: the spans of an answer, and a page of a transcript while it is read."""


class SpanMoment(Shape):
    """A renewal of a lease, or that it was taken back."""

    name: str
    at: int
    attributes: dict[str, Any]


class SpanItem(Shape):
    span_id: str
    parent_id: str | None
    """Null: it has none. That of the `event` may be a span of the sender, which is not in this list."""
    name: str
    began_at: int
    ended_at: int
    """When it was last heard of, where it goes on."""
    cost_nanos: int
    """What it has cost by itself, without the spans below it."""
    fault: str | None
    """Why it failed; null: it did not."""
    attributes: dict[str, Any]
    events: list[SpanMoment]


class EventTrace(Shape):
    event_id: UUID
    trace_id: str
    status: EventStatus
    ended: bool
    """Before that the spans are what is known so far."""
    charged_nanos: int
    """What the event was charged."""
    cost_nanos: int
    """The sum of the spans' costs: the same number, once the event has ended."""
    cut: bool
    """The runs had more spans than an answer has, and what those cost is with their leases; or there were
    more than 50 attempts, of which the newest are shown."""
    spans: list[SpanItem]
    """In the order of their beginnings; each comes after the one that it belongs to."""


@operation("GET", "/v1/workspaces/{workspace_id}/events/{event_id}/trace", tag=TAG, codes=("UZ-EVENT-001",))
async def get_event_trace(call: Call[NoBody, NoQuery]) -> EventTrace:
    """Show the trace of an event: its waits, leases, runs, questions to models, calls of tools and gates.

    It says nothing of prompts, answers, arguments and results, and needs no collector.
    """
    event = await find_event(call)
    await call.reserve(ANSWER_BYTES)
    storage = call.ctx.world.storage
    names = await storage.zombies.names([event.zombie_id])
    traced = Traced(event, names.get(event.zombie_id, ""), context_of(event), ContentMode.NONE)
    history = await storage.insights.history(event.id)
    reader = SpanReader(storage, traced, history, MOST_READ_BYTES)
    items = [_item(span) for span in await reader.whole(MOST_SPANS)]
    return EventTrace(
        event_id=event.id,
        trace_id=traced.context.trace_id,
        status=event.status,
        ended=has_ended(event),
        charged_nanos=event.charged_nanos,
        cost_nanos=sum(item.cost_nanos for item in items),
        cut=reader.cut or event.attempts > len(history.attempts),
        spans=_in_order(items),
    )


def _in_order(items: list[SpanItem]) -> list[SpanItem]:
    """Depth first, so that a reader can draw them as they come."""
    below: dict[str | None, list[SpanItem]] = {}
    known = {item.span_id for item in items}
    for item in sorted(items, key=lambda item: (item.began_at, item.ended_at, item.span_id)):
        below.setdefault(item.parent_id if item.parent_id in known else None, []).append(item)
    ordered: list[SpanItem] = []
    waiting = below.get(None, [])[::-1]
    while waiting:
        ordered.append(waiting.pop())
        waiting += below.get(ordered[-1].span_id, [])[::-1]
    return ordered


def _item(span: Span) -> SpanItem:
    attributes = dict(span.attributes)
    cost = attributes.pop(COST, 0)
    return SpanItem(
        span_id=span.span_id,
        parent_id=span.parent_id,
        name=span.name,
        began_at=span.began_ms,
        ended_at=span.ended_ms,
        cost_nanos=cost if isinstance(cost, int) else 0,
        fault=span.fault,
        attributes=attributes,
        events=[SpanMoment(event.name, event.at_ms, dict(event.attributes)) for event in span.events],
    )
