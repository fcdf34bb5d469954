"""Draws what a run found: a bar for each ratio, and a mark where its budget lies."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from rich.cells import cell_len, set_cell_size

TICKS = (0.25, 0.5, 1, 2, 4, 8, 16, 32)
"""The axis is logarithmic: a ratio of 2 and one of ½ are equally far from 1."""
STEP = 7
"""Columns from one tick to the next."""
MARK = "┃"


class Bar(NamedTuple):
    """One figure and what it is compared with, its ratio, and what the budget asks of that."""

    label: str
    ratio: float
    asked: str


def asked_of(budget: str | None) -> str:
    """What a budget asks of the ratio; empty when that is nothing.

    >>> asked_of("≥ 0.5 x and ≥ 1,000 cycles/s"), asked_of("≤ 10 ms"), asked_of(None)
    ('≥ 0.5 x', '', '')
    """
    found = re.search(r"[≥≤] [\d.]+ x", budget or "")
    return found[0] if found else ""


def bars(results: Iterable[Mapping[str, Any]]) -> list[Bar]:
    """Those figures that are compared with something, but for those whose budget is not about that."""
    return [
        Bar(f"{result['bench']}: {figure['name']} / {figure['against']}", figure["ratio"], asked)
        for result in results
        for figure in result["figures"]
        for asked in [asked_of(figure["budget"])]
        if figure["ratio"] is not None and (asked or figure["budget"] is None)
    ]


def column(ratio: float) -> int:
    """Where a ratio lies on the axis; what is beyond an end lies at it.

    >>> [column(ratio) for ratio in (0.01, 0.25, 0.5, 1, 32, 1000)]
    [0, 0, 7, 14, 49, 49]
    """
    place = STEP * math.log2(max(ratio, TICKS[0]) / TICKS[0])
    return min(round(place), STEP * (len(TICKS) - 1))


def draw(drawn: Sequence[Bar]) -> str:
    """A line a bar, and the axis below them; empty without bars."""
    if not drawn:
        return ""
    room = max(cell_len(bar.label) for bar in drawn)
    width = STEP * (len(TICKS) - 1) + 1
    lines = [f"{set_cell_size(bar.label, room)}  {_bar(bar, width)}  {_said(bar)}" for bar in drawn]
    axis = "".join(f"{tick:g}".ljust(STEP) for tick in TICKS)
    return "\n".join([*lines, f"{' ' * room}  {axis}".rstrip()])


def _bar(bar: Bar, width: int) -> str:
    cells = ["█" if at <= column(bar.ratio) else "·" if at % STEP == 0 else " " for at in range(width)]
    if bar.asked:
        cells[column(float(bar.asked.split()[1]))] = MARK
    return "".join(cells)


def _said(bar: Bar) -> str:
    return f"{bar.ratio:.3g} x {f'({bar.asked})' if bar.asked else ''}".rstrip()
