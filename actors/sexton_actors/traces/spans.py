"""Spans as OTLP knows them, free of its library."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Final

import msgspec

Value = str | int | bool | tuple[str, ...]
Attributes = Mapping[str, Value]

MAX_NAME: Final = 128
"""Characters of a name that a run has given, of a model, a tool or a step."""
COST: Final = "sexton.cost.nanos"
"""What a span has cost by itself, without its children: over a trace these add up to the bill."""


class SpanKind(IntEnum):
    """With the numbers of OTLP."""

    INTERNAL = 1
    CLIENT = 3
    CONSUMER = 5


class SpanEvent(msgspec.Struct, frozen=True, gc=False):
    name: str
    at_ms: int
    attributes: Attributes


class Link(msgspec.Struct, frozen=True, gc=False):
    trace_id: str
    span_id: str


class Span(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Ids are lower-case hex, times Unix ms."""

    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    kind: SpanKind = SpanKind.INTERNAL
    began_ms: int
    ended_ms: int
    attributes: Attributes
    events: tuple[SpanEvent, ...] = ()
    links: tuple[Link, ...] = ()
    fault: str | None = None
    """Why it failed; None: it did not."""


def word(data: Mapping[str, Any], name: str) -> str:
    """A short text of what a run has told; empty where there is none.

    >>> word({"name": "x" * 500}, "name") == "x" * MAX_NAME, word({"name": 7}, "name")
    (True, '')
    """
    value = data.get(name)
    return value[:MAX_NAME] if isinstance(value, str) else ""


def count(data: Mapping[str, Any], name: str) -> int:
    """A number of what a run has told; 0 where there is none that fits.

    >>> count({"n": 3}, "n"), count({"n": -1}, "n"), count({"n": True}, "n"), count({"n": 2**80}, "n")
    (3, 0, 0, 0)
    """
    value = data.get(name)
    fits = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53
    return value if fits and isinstance(value, int) else 0
