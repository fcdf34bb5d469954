"""Reads YAML into a small tree that remembers its lines and refuses what an agent's file never needs.

The tree is built from libyaml's events without recursion: depth is bounded before anything walks it, and
without aliases no short text stands for a long one.
"""

import re

import msgspec
import yaml

MAX_DEPTH = 16
"""Mappings and lists within each other."""
MAX_VALUES = 1_280
"""Keys and values of a file; a mapping or a list counts as two. All that has a bound of its own fits."""

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


class _Items:
    """A list whose end has not come yet."""

    __slots__ = ("_items", "_line")

    def __init__(self, line: int) -> None:
        self._line = line
        self._items: list[Node] = []

    def add(self, node: Node) -> None:
        self._items.append(node)

    def close(self) -> Node:
        return Sequence(tuple(self._items), self._line)


class _Entries:
    """A mapping whose end has not come yet."""

    __slots__ = ("_entries", "_key", "_keys", "_line")

    def __init__(self, line: int) -> None:
        self._line = line
        self._entries: list[Entry] = []
        self._keys: set[str] = set()
        self._key: tuple[str, int] | None = None

    def add(self, node: Node) -> None:
        if self._key is None:
            self._key = self._new_key(node)
        else:
            self._entries.append(Entry(*self._key, node))
            self._key = None

    def _new_key(self, node: Node) -> tuple[str, int]:
        if not isinstance(node, Scalar):
            raise _Fault(node.line, "a key must be one word, not a list or a mapping")
        if node.text in self._keys:
            raise _Fault(node.line, f"`{node.text[:64]}` stands twice; keep one")
        self._keys.add(node.text)
        return node.text, node.line

    def close(self) -> Node:
        return Table(tuple(self._entries), self._line)


def read_yaml(text: str, first_line: int, most: int = MAX_VALUES) -> Node | NotYaml:
    """Read one YAML document whose first line is line ``first_line`` of its file; never raises.

    ``most`` is how many keys and values it may have: it is read in one turn of the loop.

    ``text`` has line feeds only. An empty document is the plain scalar of no characters.
    """
    odd = _FORBIDDEN.search(text)
    if odd is not None:
        line = first_line + text.count("\n", 0, odd.start())
        return NotYaml(line, f"a character that YAML does not allow (U+{ord(odd[0]):04X})")
    try:
        return _build(text, first_line, most)
    except _Fault as fault:
        return fault.told
    except yaml.MarkedYAMLError as error:
        return _translated(error, text, first_line)
    except yaml.YAMLError:
        return NotYaml(first_line, "not YAML")


def _build(text: str, first_line: int, most: int) -> Node:
    root: Node | None = None
    opened: list[_Items | _Entries] = []
    values = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        line = first_line + (event.start_mark.line if event.start_mark else 0)
        node: Node | None
        match event:
            case yaml.ScalarEvent():
                node = _scalar(event, line)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                opened.append(_opened(event, line, len(opened)))
                values += 1
                node = None
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                node = opened.pop().close()
            case _:
                _refuse_rest(event, line, root)
                continue  # where the stream and its document begin and end
        if node is None:
            continue
        values += 1
        if values > most:
            raise _Fault(line, f"more than {most:,} keys and values; leave some out")
        if opened:
            opened[-1].add(node)
        else:
            root = node
    return root if root is not None else Scalar("", plain=True, line=first_line)


def _opened(
    event: yaml.MappingStartEvent | yaml.SequenceStartEvent, line: int, depth: int
) -> _Items | _Entries:
    _refuse_extras(event, event.tag, line)
    if depth == MAX_DEPTH:
        raise _Fault(line, f"more than {MAX_DEPTH} mappings and lists within each other")
    return _Entries(line) if isinstance(event, yaml.MappingStartEvent) else _Items(line)


def _scalar(event: yaml.ScalarEvent, line: int) -> Scalar:
    _refuse_extras(event, event.tag, line)
    if "\0" in event.value:
        raise _Fault(line, "the character U+0000, which cannot be kept")
    return Scalar(event.value, plain=not event.style, line=line)


def _refuse_extras(event: yaml.NodeEvent, tag: str | None, line: int) -> None:
    if event.anchor is not None:
        raise _Fault(line, "an anchor; leave it out, or put the value in quotes if it begins with `&`")
    if tag is not None:
        raise _Fault(line, "a YAML tag; leave it out, or put the value in quotes if it begins with `!`")


def _refuse_rest(event: yaml.Event, line: int, root: Node | None) -> None:
    if isinstance(event, yaml.AliasEvent):
        raise _Fault(line, "an alias; write the value out, or put it in quotes if it begins with `*`")
    if isinstance(event, yaml.DocumentStartEvent) and root is not None:
        raise _Fault(line, "a second document; keep to one")


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
