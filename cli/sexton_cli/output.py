"""Says what came of a command: a table for a person, a document or names for a program."""

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from importlib import import_module
from typing import Any, Final, NamedTuple, Protocol

from sexton_cli.exits import printable
from sexton_cli.formats import names_in, shown_once, spelled, spelled_item

PIPE_COLUMNS: Final = 1000
"""A file has no edge: nothing that is read by a program is folded."""
TAB: Final = "    "
MINUTE_S: Final = 60
HOUR_S: Final = 3600
DIFF_STYLES: Final = (("+++", "bold"), ("---", "bold"), ("@@", "cyan"), ("+", "green"), ("-", "red"))
MAX_MS: Final = 253_402_300_799_999
"""The end of the year 9999."""


class Column(NamedTuple):
    """``key`` in the row. In a narrow terminal an elastic column is cut, and then spare ones are left out."""

    key: str
    title: str
    elastic: bool = False
    spare: bool = False


class Screen(Protocol):
    """Where a person reads."""

    @property
    def width(self) -> int: ...

    def line(self, text: str, style: str = "") -> None: ...

    def table(self, columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> None: ...


class Output:
    """Standard output holds the answer and nothing else; all other words go to standard error."""

    def __init__(self, form: str = "table") -> None:
        self._form = form
        self.as_json = form != "table"
        """Whether a document is asked for, in whichever spelling."""

    @cached_property
    def _screen(self) -> Screen:
        # What draws for a person takes a while to import; help and documents do without.
        screen: Screen = import_module("sexton_cli.screen").Screen()
        return screen

    def document(self, value: Any) -> None:
        """The whole answer as it was asked for: as JSON, as YAML, or only the names in it."""
        if self._form == "name":
            self._names(value)
            return
        self._write(spelled(value, self._form))

    def item(self, value: Any) -> None:
        """The same of what goes on for long, written at once: as JSON a line, as YAML a document."""
        if self._form == "name":
            self._names(value)
        else:
            self._write(spelled_item(value, self._form))
        sys.stdout.buffer.flush()

    def _names(self, value: Any) -> None:
        for name in names_in(value):
            self.say(name)
        for field, shown in shown_once(value).items():
            self.note(f"{field}: {shown}")

    def _write(self, raw: bytes) -> None:
        # Both are UTF-8, whatever the locale is.
        sys.stdout.flush()
        sys.stdout.buffer.write(raw)

    def piece(self, text: str) -> None:
        """A part of a text that is still being written; it keeps its lines, and steers no terminal."""
        sys.stdout.write("\n".join(printable(line) for line in text.replace("\t", TAB).split("\n")))
        sys.stdout.flush()

    @property
    def width(self) -> int:
        """Columns of the terminal; a file has very many."""
        return self._screen.width

    def changes(self, diff: str) -> None:
        """A unified diff, its lines coloured where there are colours."""
        for line in diff.splitlines():
            style = next((style for sign, style in DIFF_STYLES if line.startswith(sign)), "")
            self._screen.line(printable(line), style)

    def table(self, columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> None:
        """Rows under titles, as wide as the terminal at most."""
        self._screen.table(columns, rows)

    def thing(self, document: Any, facts: Mapping[str, Any] | str) -> None:
        """One thing: its document, or what of it a person is told, as facts or as a sentence."""
        if self.as_json:
            self.document(document)
        elif isinstance(facts, str):
            self.say(facts)
        else:
            self.facts(facts)

    def listing(self, document: Any, columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> None:
        """Many things: their document, or a table."""
        if self.as_json:
            self.document(document)
        else:
            self.table(columns, rows)

    def facts(self, facts: Mapping[str, Any]) -> None:
        """Names and values, one a line; what is not known is left out."""
        known = {name: value for name, value in facts.items() if value is not None}
        width = max(map(len, known), default=0)
        for name, value in known.items():
            self._screen.line(f"{name:<{width}}  {cell(value)}")

    def say(self, text: str) -> None:
        """A line of the answer for a person."""
        self._screen.line(printable(text))

    def note(self, text: str) -> None:
        """A line beside the answer: on standard error."""
        sys.stderr.write(f"{printable(text)}\n")
        sys.stderr.flush()


def counted(count: object, one: str, many: str) -> str:
    """A number with its words.

    >>> counted(1, "event waits", "events wait"), counted(0, "event waits", "events wait")
    ('1 event waits', '0 events wait')
    """
    return f"{count} {one if count == 1 else many}"


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
    """Unix ms as a date and time; None for what is none.

    >>> moment(1_732_060_800_000), moment(None), moment(1e300)
    ('2024-11-20 00:00:00Z', None, None)
    """
    if not isinstance(ms, int) or not 0 <= ms <= MAX_MS:
        return None
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M:%SZ}"


def dollars(nanos: Any) -> str | None:
    """Billionths of a US dollar as a person reads them; None for what is none.

    >>> dollars(1_230_000_000), dollars(4_500), dollars(-(10**9)), dollars(0), dollars(None)
    ('$1.23', '$0.0000045', '-$1.00', '$0.00', None)
    """
    if not isinstance(nanos, int):
        return None
    text = f"{Decimal(abs(nanos)).scaleb(-9):.9f}".rstrip("0")
    whole, _, cents = text.partition(".")
    return f"{'-' if nanos < 0 else ''}${whole}.{cents:0<2}"


def span(ms: Any) -> str | None:
    """A number of ms as a person would say it; None for what is not a number.

    >>> span(900), span(61_000), span(7_200_000), span(None)
    ('0.9 s', '1 min 1 s', '2 h 0 min', None)
    """
    if not isinstance(ms, int):
        return None
    sign, seconds = ("-" if ms < 0 else ""), abs(ms) / 1000
    if seconds < MINUTE_S:
        return f"{sign}{seconds:.1f} s"
    if seconds < HOUR_S:
        return f"{sign}{int(seconds // MINUTE_S)} min {int(seconds % MINUTE_S)} s"
    return f"{sign}{int(seconds // HOUR_S)} h {int(seconds % HOUR_S // MINUTE_S)} min"
