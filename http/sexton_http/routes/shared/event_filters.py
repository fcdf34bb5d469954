"""Reads which events a caller wants: in the language of filters, or by name."""

from typing import Annotated, Final

import msgspec

from sexton_http.answers import Problem
from sexton_http.bodies.shapes import Query
from sexton_storage.event_filter.parse import FilterError, named_term, parse_filter
from sexton_storage.records.event_filters import EVERY, MAX_CHARS, EventFilter, Field, Term

FilterText = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_CHARS)]
NAMED: Final = ("agent", "source", "type", "code", "failure", "runner", "label", "after", "before", "text")


class EventFilterQuery(Query, kw_only=True):
    """Which events: all that is given must hold. Each value may be several, apart by commas: any of them."""

    q: FilterText | None = None
    """A filter: `status:agent_error -actor:cron:* after:2h "connection refused" request.pull.number>=17`."""
    agent: FilterText | None = None
    """Names or ids; `*` stands for any run of characters."""
    source: FilterText | None = None
    """`github` of the actor `webhook:github`, `steer` of `steer:ann`; with `*`."""
    type: FilterText | None = None
    """Event types; with `*`."""
    code: FilterText | None = None
    """Error codes; with `*`."""
    failure: FilterText | None = None
    """Failure labels; with `*`."""
    runner: FilterText | None = None
    """Ids of runners that held a lease of the event."""
    label: FilterText | None = None
    """Labels and offers that the agent needs of a runner; with `*`."""
    after: FilterText | None = None
    """Arrived then or later: a duration back from now (30m, 2h, 7d), an RFC 3339 time, or Unix ms."""
    before: FilterText | None = None
    """Arrived earlier than that."""
    text: FilterText | None = None
    """Words that stand beside one another in the request, the answer or the evidence."""


def filter_of(query: EventFilterQuery, now: int) -> EventFilter:
    """Read the filter. ``now``: Unix ms. Raises Problem UZ-REQ-001, which names the place of the fault."""
    found = EVERY if query.q is None else _read("q", query.q, now)
    for name in NAMED:
        text = getattr(query, name)
        if text is not None:
            found = found.and_all(_read(name, text, now).terms)
    return found


def given(query: EventFilterQuery) -> tuple[str | None, ...]:
    """Give the texts of the filter as they came, to tell it from others."""
    return (query.q, *(getattr(query, name) for name in NAMED))


def _read(name: str, text: str, now: int) -> EventFilter:
    try:
        if name == "q":
            return parse_filter(text, now=now)
        return EventFilter((named_term(Field(name), text, now=now),))
    except FilterError as fault:
        facts = {"parameter": name, "position": fault.position}
        raise Problem("UZ-REQ-001", f"{name}: {fault}", facts=facts) from fault


def also(events: EventFilter, field: Field, value: str) -> EventFilter:
    """Give the filter with one more condition, whose value is known to be good."""
    return events.and_all((Term(field, (value,)),))
