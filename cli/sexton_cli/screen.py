"""Standard output as a person reads it: lines in styles, and tables no wider than the terminal."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from sexton_cli.output import PIPE_COLUMNS, Column
from sexton_cli.tables import lay_out


class Screen:
    """A terminal, or a file, which has very many columns."""

    def __init__(self) -> None:
        width = None if sys.stdout.isatty() else PIPE_COLUMNS
        self._console = Console(highlight=False, width=width, soft_wrap=False)

    @property
    def width(self) -> int:
        return self._console.width

    def line(self, text: str, style: str = "") -> None:
        self._console.print(Text(text, style=style), soft_wrap=True)

    def table(self, columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> None:
        title, *lines = lay_out(columns, rows, self.width)
        self.line(title, "bold")
        for line in lines:
            self.line(line)
