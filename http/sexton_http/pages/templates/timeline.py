"""Draws what became of an event along one axis of time: lanes of spans, and the cost under them."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

WIDTH: Final = 1000.0
"""The length of the axis in its own units; a browser stretches it."""
THIN: Final = 3.0
"""What is shorter than this is drawn so long, or it could not be seen."""
COST_HEIGHT: Final = 40.0
MOST_SPANS: Final = 400
"""Spans that a lane shows: the oldest ones."""


class Span(NamedTuple):
    """Something that took some time: Unix ms, its words and the tone of its color."""

    began: int
    ended: int
    words: str
    tone: str = "accent"


class Bar(NamedTuple):
    """A span as it is drawn."""

    x: float
    width: float
    words: str
    tone: str


class Lane(NamedTuple):
    """One line of the drawing."""

    name: str
    bars: Sequence[Bar]


class Timeline(NamedTuple):
    """The whole drawing. ``cost`` are the points of a line, as in SVG; empty when nothing was charged."""

    began: int
    ended: int
    lanes: Sequence[Lane]
    cost: str
    charged_nanos: int

    @property
    def middle(self) -> int:
        return (self.began + self.ended) // 2


def draw(
    began: int, ended: int, lanes: Iterable[tuple[str, Sequence[Span]]], charges: Sequence[tuple[int, int]]
) -> Timeline:
    """Give the drawing from one time to another; lanes of which there is nothing are left out.

    ``charges``: the time and the nanos of each, oldest first.

    >>> found = draw(0, 100, [("Lease", [Span(50, 75, "attempt 1")]), ("Gate", [])], [(60, 4), (100, 4)])
    >>> found.lanes
    [Lane(name='Lease', bars=[Bar(x=500.0, width=250.0, words='attempt 1', tone='accent')])]
    >>> found.cost, found.charged_nanos
    ('0,40 600,40 600,20 1000,20 1000,0', 8)

    What has just begun has a length all the same, and what lies outside is cut.

    >>> draw(5, 5, [("Wait", [Span(0, 9, "waits")])], []).lanes[0].bars
    [Bar(x=0.0, width=1000.0, words='waits', tone='accent')]
    """
    ended = max(ended, began + 1)
    scale = WIDTH / (ended - began)

    def place(at: int) -> float:
        return round((min(max(at, began), ended) - began) * scale, 1)

    drawn = []
    for name, spans in lanes:
        bars = []
        for span in spans[:MOST_SPANS]:
            x = min(place(span.began), WIDTH - THIN)
            width = max(round(place(span.ended) - x, 1), THIN)
            bars.append(Bar(x, width, span.words, span.tone))
        if bars:
            drawn.append(Lane(name, bars))
    total = sum(nanos for _, nanos in charges)
    return Timeline(began, ended, drawn, _steps([(place(at), nanos) for at, nanos in charges], total), total)


def _steps(charges: Sequence[tuple[float, int]], total: int) -> str:
    if not total:
        return ""
    points = [(0.0, 0)]
    so_far = 0
    for x, nanos in charges:
        points += [(x, so_far), (x, so_far + nanos)]
        so_far += nanos
    points.append((WIDTH, so_far))
    kept = [point for place, point in enumerate(points) if place == 0 or point != points[place - 1]]
    return " ".join(f"{x:g},{COST_HEIGHT * (1 - y / total):g}" for x, y in kept)
