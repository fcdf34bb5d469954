"""Which trace an event belongs to, and which ids its spans have."""

import hashlib
from typing import Final
from uuid import UUID

import msgspec

from sexton_storage.records.events import Event

SAMPLED: Final = 1
"""The flag of a ``traceparent`` by which its sender says that it records the trace."""
EVENT: Final = "event"
LEASE: Final = "lease"
AGENT: Final = "invoke_agent"


class TraceContext(msgspec.Struct, frozen=True, gc=False):
    """The trace of one event."""

    trace_id: str
    """32 digits in lower-case hex."""
    parent_id: str | None
    """The span of the sender, 16 digits; None: the trace begins with the event."""
    sampled: bool


def context_of(event: Event) -> TraceContext:
    """Give the trace of the sender, or else one that is named by the event's own id.

    An event's id has 74 random bits, so it serves as the id of a trace, and needs no column of its own.

    >>> from uuid import UUID
    >>> from sexton_storage.records.events import EventStatus
    >>> event = Event(*[UUID(int=7)] * 4, "steer:ada", "message", EventStatus.RECEIVED, "{}", 0, 0)
    >>> context_of(event)
    TraceContext(trace_id='00000000000000000000000000000007', parent_id=None, sampled=True)
    >>> sent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
    >>> context_of(msgspec.structs.replace(event, traceparent=sent))
    TraceContext(trace_id='4bf92f3577b34da6a3ce929d0e0e4736', parent_id='00f067aa0ba902b7', sampled=False)
    """
    if event.traceparent is None:
        return TraceContext(event.id.hex, None, sampled=True)
    _, trace_id, parent_id, flags = event.traceparent.split("-")
    return TraceContext(trace_id, parent_id, bool(int(flags, 16) & SAMPLED))


def span_id(event_id: UUID, *place: str | int) -> str:
    """Give the id of a span by its place in the event, so that it is the same whenever it is made.

    >>> span_id(UUID(int=7), LEASE, 1) == span_id(UUID(int=7), LEASE, 1) != span_id(UUID(int=7), LEASE, 2)
    True
    """
    digest = hashlib.sha256(f"{event_id.hex}/{'/'.join(map(str, place))}".encode()).hexdigest()[:16]
    # All zeros mean that there is none.
    return digest if int(digest, 16) else f"{1:016x}"


def run_traceparent(event: Event, attempt: int) -> str:
    """What a run hands on as ``traceparent``: its spans become children of its attempt's."""
    context = context_of(event)
    return f"00-{context.trace_id}-{span_id(event.id, AGENT, attempt)}-{int(context.sampled):02x}"
