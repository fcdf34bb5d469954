"""Reads YAML into a small tree that remembers its lines and refuses what an agent's file never needs.

The tree is built from libyaml's events without recursion: depth is bounded before anything walks it, and
without aliases no short text stands for a long one.
"""

import re

import msgspec
import yaml

MAX_DEPTH = 16
"""Mappings and lists within each other."""

_FORBIDDEN = re.compile(r"[^\t\n\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_QUOTE_FIRST = frozenset("*&!@`%|>")
_HINTS = {
    "mapping values are not allowed in this context": "a `: ` within a value; put the value in quotes",
    "did not find expected key": "the indentation does not fit the lines above",
    "did not find expected '-' indicator": "the indentation does not fit the list above",
}
_HINTS_AT_OPENING = {
    "could not find expected ':'": "a key without `:` after it",
    "found unexpected end of stream": "a quote is opened and never closed",
    "did not find expected ',' or ']'": "a list opened by `[` is not closed by `]`",
    "did not find expected ',' or '}'": "a mapping opened by `{` is not closed by `}`",
    "did not find expected node content": "a bracket is opened and never closed",
}
"""libyaml notices these further down; the line to fix is where it began."""


class Scalar(msgspec.Struct, frozen=True):
    text: str
    plain: bool
    """Written without quotes, so that YAML may take it for something other than text."""
    line: int


class Sequence(msgspec.Struct, frozen=True):
    items: tuple["Node", ...]
    line: int


class Entry(msgspec.Struct, frozen=True):
    key: str
    line: int
    value: "Node"


class Table(msgspec.Struct, frozen=True):
    entries: tuple[Entry, ...]
    """In the order of the file; no key occurs twice."""
    line: int


Node = Scalar | Sequence | Table


class NotYaml(msgspec.Struct, frozen=True):
    line: int
    message: str


class _Fault(Exception):
    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.told = NotYaml(line, message)


class _Open:
    """A mapping or list whose end has not come yet."""

    def __init__(self, line: int, *, is_table: bool) -> None:
        self.line = line
        self.is_table = is_table
        self.items: list[Node] = []
        self.entries: list[Entry] = []
        self.keys: set[str] = set()
        self.key: tuple[str, int] | None = None

    def add(self, node: Node) -> None:
        if not self.is_table:
            self.items.append(node)
        elif self.key is None:
            self.key = self._new_key(node)
        else:
            self.entries.append(Entry(*self.key, node))
            self.key = None

    def _new_key(self, node: Node) -> tuple[str, int]:
        if not isinstance(node, Scalar):
            raise _Fault(node.line, "a key must be one word, not a list or a mapping")
        if node.text in self.keys:
            raise _Fault(node.line, f"`{node.text[:64]}` stands twice; keep one")
        self.keys.add(node.text)
        return node.text, node.line

    def close(self) -> Node:
        if self.is_table:
            return Table(tuple(self.entries), self.line)
        return Sequence(tuple(self.items), self.line)


def read_yaml(text: str, first_line: int) -> Node | NotYaml:
    """Read one YAML document whose first line is line ``first_line`` of its file; never raises.

    ``text`` has line feeds only. An empty document is the plain scalar of no characters.
    """
    odd = _FORBIDDEN.search(text)
    if odd is not None:
        line = first_line + text.count("\n", 0, odd.start())
        return NotYaml(line, f"a character that YAML does not allow (U+{ord(odd[0]):04X})")
    try:
        return _build(text, first_line)
    except _Fault as fault:
        return fault.told
    except yaml.MarkedYAMLError as error:
        return _translated(error, text, first_line)
    except yaml.YAMLError:
        return NotYaml(first_line, "not YAML")


def _build(text: str, first_line: int) -> Node:
    root: Node | None = None
    opened: list[_Open] = []
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        line = first_line + _line(event)
        if isinstance(event, yaml.DocumentStartEvent) and root is not None:
            raise _Fault(line, "a second document; keep to one")
        node = _completed(event, line, opened)
        if node is not None and opened:
            opened[-1].add(node)
        elif node is not None:
            root = node
    return root if root is not None else Scalar("", plain=True, line=first_line)


def _completed(event: yaml.Event, line: int, opened: list[_Open]) -> Node | None:
    """The node that ends with this event, if one does."""
    match event:
        case yaml.ScalarEvent():
            _refuse_extras(event, line)
            return _scalar(event, line)
        case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
            _refuse_extras(event, line)
            if len(opened) == MAX_DEPTH:
                raise _Fault(line, f"more than {MAX_DEPTH} mappings and lists within each other")
            opened.append(_Open(line, is_table=isinstance(event, yaml.MappingStartEvent)))
        case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
            return opened.pop().close()
        case yaml.AliasEvent():
            raise _Fault(line, "an alias; write the value out, or put it in quotes if it begins with `*`")
        case _:
            pass  # where the stream and its document begin and end
    return None


def _line(event: yaml.Event) -> int:
    return event.start_mark.line if event.start_mark else 0


def _scalar(event: yaml.ScalarEvent, line: int) -> Scalar:
    if "\0" in event.value:
        raise _Fault(line, "the character U+0000, which cannot be kept")
    return Scalar(event.value, plain=not event.style, line=line)


def _refuse_extras(event: yaml.NodeEvent, line: int) -> None:
    if event.anchor is not None:
        raise _Fault(line, "an anchor; leave it out, or put the value in quotes if it begins with `&`")
    if getattr(event, "tag", None) is not None:
        raise _Fault(line, "a YAML tag; leave it out, or put the value in quotes if it begins with `!`")


def _translated(error: yaml.MarkedYAMLError, text: str, first_line: int) -> NotYaml:
    opening = _HINTS_AT_OPENING.get(error.problem or "")
    mark = error.context_mark if opening and error.context_mark else error.problem_mark
    lines = text.split("\n")
    number, column = (mark.line, mark.column) if mark else (0, 0)
    number = min(number, len(lines) - 1)
    return NotYaml(
        first_line + number, _hint_by_line(error, lines[number], column) or opening or _hint(error)
    )


def _hint_by_line(error: yaml.MarkedYAMLError, line: str, column: int) -> str | None:
    if "\t" in line[: len(line) - len(line.lstrip())]:
        return "a tab; indent with spaces"
    if "alias" in (error.context or ""):
        return "a value that begins with `*` must stand in quotes"
    if line[column : column + 1] in _QUOTE_FIRST:
        return f"a value that begins with `{line[column]}` must stand in quotes"
    return None


def _hint(error: yaml.MarkedYAMLError) -> str:
    said = error.problem or "not YAML"
    return _HINTS.get(said, said)
