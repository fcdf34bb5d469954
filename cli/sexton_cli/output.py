"""Says what came of a command: a table for a person, one JSON document for a program."""

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import orjson
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sexton_cli.exits import printable

PIPE_COLUMNS: Final = 1000
"""A file has no edge: nothing that is read by a program is folded."""


class Column(NamedTuple):
    """``key`` in the row; ``whole`` for what is worthless when it is cut off."""

    key: str
    title: str
    whole: bool = False


class Output:
    """Standard output holds the answer and nothing else; all other words go to standard error."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        width = None if sys.stdout.isatty() else PIPE_COLUMNS
        self._console = Console(highlight=False, width=width, soft_wrap=False)

    def document(self, value: Any) -> None:
        """For ``--json``: one document, indented for who looks at it all the same."""
        sys.stdout.write(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() + "\n")

    def table(self, columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> None:
        """Rows under titles, as wide as the terminal at most."""
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
        for column in columns:
            overflow = "fold" if column.whole else "ellipsis"
            table.add_column(column.title, overflow=overflow, no_wrap=not column.whole)  # type: ignore[arg-type]  # mypy widens the two words to str
        for row in rows:
            table.add_row(*(Text(cell(row.get(column.key))) for column in columns))
        self._console.print(table)

    def facts(self, facts: Mapping[str, Any]) -> None:
        """Names and values, one a line; what is not known is left out."""
        known = {name: value for name, value in facts.items() if value is not None}
        width = max(map(len, known), default=0)
        for name, value in known.items():
            self._console.print(Text(f"{name:<{width}}  {cell(value)}"), soft_wrap=True)

    def say(self, text: str) -> None:
        """A line of the answer for a person."""
        self._console.print(Text(printable(text)), soft_wrap=True)

    def note(self, text: str) -> None:
        """A line beside the answer: on standard error."""
        sys.stderr.write(f"{printable(text)}\n")
        sys.stderr.flush()


def cell(value: Any) -> str:
    """A value as a person reads it.

    >>> cell(None), cell(True), cell("x"), cell(3)
    ('-', 'yes', 'x', '3')
    """
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case _:
            return printable(str(value))


def moment(ms: Any) -> str | None:
    """Unix ms as a date and time; None for none.

    >>> moment(1_732_060_800_000)
    '2024-11-20 00:00Z'
    """
    return None if ms is None else f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%MZ}"
