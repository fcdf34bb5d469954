"""Sets figures out in a plain table, each beside its budget."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

HEAD = ("benchmark", "figure", "value", "min - max", "ratio", "against", "budget", "")
RIGHT = frozenset({2, 3, 4})
"""Columns of numbers."""


def number(value: float | None) -> str:
    """With thousands set off; small ones with three digits.

    >>> number(12345.6), number(3.14159), number(0.6), number(None)
    ('12,346', '3.14', '0.6', 'none')
    """
    if value is None:
        return "none"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def verdict(*, met: bool | None) -> str:
    match met:
        case None:
            return ""
        case True:
            return "met"
        case False:
            return "MISSED"


def cells(bench: str, figure: Mapping[str, Any]) -> tuple[str, ...]:
    """One row; what a benchmark does not say stays empty."""
    spread, ratio = figure.get("spread"), figure.get("ratio")
    return (
        bench,
        str(figure["name"]),
        f"{number(figure['value'])} {figure['unit']}",
        f"{number(spread[0])} - {number(spread[1])}" if spread and spread[0] != spread[1] else "",
        f"{number(ratio)} x" if ratio is not None else "",
        str(figure.get("against") or ""),
        str(figure.get("budget") or ""),
        verdict(met=figure.get("met")),
    )


def rows(results: Iterable[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """A benchmark's name stands at its first figure only."""
    return [
        cells(result["bench"] if first else "", figure)
        for result in results
        for first, figure in zip([True] + [False] * len(result["figures"]), result["figures"], strict=False)
    ]


def table(results: Iterable[Mapping[str, Any]]) -> str:
    """The whole of it, as text."""
    body = rows(results)
    widths = [max(len(row[i]) for row in [HEAD, *body]) for i in range(len(HEAD))]
    rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
    return "\n".join([_set(HEAD, widths), rule, *(_set(row, widths) for row in body)])


def _set(row: Sequence[str], widths: Sequence[int]) -> str:
    placed = (
        cell.rjust(width) if i in RIGHT else cell.ljust(width)
        for i, (cell, width) in enumerate(zip(row, widths, strict=True))
    )
    return "  ".join(placed).rstrip()
