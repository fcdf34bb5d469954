"""Prints what the demo does and whether each claim held."""

import time
from typing import Any

import orjson
from rich.console import Console
from rich.markup import escape
from rich.table import Table

KIND_STYLES = {
    "event_received": "cyan",
    "event_leased": "blue",
    "chunk": "dim",
    "gate_pending": "yellow",
    "gate_resolved": "yellow",
    "lease_reclaimed": "red",
    "event_complete": "green",
}
TEXT_CHARS = 100


class Narrator:
    """Prints acts, facts and frames; every ``check`` counts towards the exit status."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._began = time.monotonic()
        self._checks: list[tuple[str, bool, str]] = []

    def act(self, title: str) -> None:
        """Begin a new part."""
        self._say(f"\n[bold]{self._clock()}  {escape(title)}[/bold]")

    def fact(self, text: str) -> None:
        """One line about what is going on."""
        self._say(f"         {escape(text)}")

    def data(self, value: Any) -> None:
        """A value as indented JSON."""
        text = orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
        for line in text.splitlines():
            self._say(f"           [dim]{escape(line)}[/dim]")

    def frame(self, number: str, kind: str, data: dict[str, Any]) -> None:
        """One frame of an agent's stream, as it arrives."""
        left_out = {"kind", "event_id", "zombie_id", "at_ms"}
        rest = "  ".join(f"{k}={v}" for k, v in data.items() if k not in left_out)
        short = rest.replace("\n", " ⏎ ")[:TEXT_CHARS]
        style = KIND_STYLES.get(kind, "magenta")
        self._say(f"         [dim]#{number:>3}[/dim] [{style}]{kind:<20}[/{style}] {escape(short)}")

    def table(self, title: str, columns: list[str], rows: list[list[str]]) -> None:
        """Rows under columns."""
        table = Table(title=title, title_justify="left", title_style="bold")
        for column in columns:
            table.add_column(column, justify="right" if column != columns[0] else "left")
        for row in rows:
            table.add_row(*row)
        self._console.print(table)

    def check(self, claim: str, holds: bool, seen: object = "") -> None:  # noqa: FBT001 - a claim and whether it holds
        """Note a claim and whether it was so; ``seen`` is what was seen instead."""
        self._checks.append((claim, holds, str(seen)))
        mark = "[green]✓[/green]" if holds else "[red]✗[/red]"
        detail = "" if holds else f"   [red]{escape(str(seen))}[/red]"
        self._say(f"       {mark} {escape(claim)}{detail}")

    def summary(self) -> bool:
        """Print how it went; whether all was so."""
        failed = [claim for claim, holds, _ in self._checks if not holds]
        held = len(self._checks) - len(failed)
        self._console.print(f"\n[bold]{self._clock()}  {held} of {len(self._checks)} claims held[/bold]")
        for claim in failed:
            self._console.print(f"       [red]✗ {escape(claim)}[/red]")
        return not failed and bool(self._checks)

    def _say(self, line: str) -> None:
        # Lines keep their length: a terminal folds them, and a log keeps them whole.
        self._console.print(line, soft_wrap=True)

    def _clock(self) -> str:
        return f"{time.monotonic() - self._began:6.1f}s"
