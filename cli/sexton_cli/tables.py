"""Lays rows out as a table that is no wider than the terminal."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from rich.cells import cell_len, set_cell_size

from sexton_cli.output import Column, cell

ELASTIC_COLUMNS: Final = 10
"""The least that is left of a name."""
GAP: Final = "  "


def lay_out(columns: Sequence[Column], rows: Sequence[Mapping[str, Any]], width: int) -> list[str]:
    """The lines of a table; what is neither elastic nor spare is whole, however narrow the terminal.

    >>> columns = [Column("n", "NAME", elastic=True), Column("id", "ID"), Column("at", "CREATED", spare=True)]
    >>> for line in lay_out(columns, [{"n": "a-long-name", "id": "0193", "at": "today"}], 16):
    ...     print(line)
    NAME        ID
    a-long-na…  0193
    """
    texts = {c.key: [c.title, *(cell(row.get(c.key)) for row in rows)] for c in columns}
    natural = {key: max(map(cell_len, column)) for key, column in texts.items()}
    least = {c.key: min(natural[c.key], ELASTIC_COLUMNS) if c.elastic else natural[c.key] for c in columns}
    shown = list(columns)
    while _total(least[c.key] for c in shown) > width and any(c.spare for c in shown):
        shown.remove(next(c for c in reversed(shown) if c.spare))
    left = width - _total(least[c.key] for c in shown)
    widths = []
    for column in shown:
        more = min(natural[column.key] - least[column.key], max(left, 0))
        widths.append(least[column.key] + more)
        left -= more
    return [
        GAP.join(_fitted(texts[c.key][line], w) for c, w in zip(shown, widths, strict=True)).rstrip()
        for line in range(len(rows) + 1)
    ]


def _total(widths: Iterable[int]) -> int:
    widths = list(widths)
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _fitted(text: str, width: int) -> str:
    return (
        text + " " * (width - cell_len(text))
        if cell_len(text) <= width
        else f"{set_cell_size(text, width - 1)}…"
    )
