"""Writes the decisions of an activation as a table, straight from the function that makes them."""

from __future__ import annotations

from sexton_engine.activation.phase import Phase, Request, next_move

REQUESTS = tuple(Request)


def phase_table() -> list[str]:
    """A row of Markdown for each phase, a column for each request."""
    names = [request.name.lower() for request in REQUESTS]
    rows = [[phase.value, *(next_move(phase, request).value for request in REQUESTS)] for phase in Phase]
    return [_row(["phase", *names]), _row(["---"] * (len(REQUESTS) + 1)), *map(_row, rows)]


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
