"""Takes typed values out of a mapping of a file, and notes what is wrong with those that it cannot take."""

import re
from decimal import Decimal
from enum import StrEnum
from typing import TypeVar

import yaml

from sexton_actors.amounts import NANOS_PER_DOLLAR
from sexton_actors.manifest.nodes import Entry, Node, Scalar, Sequence, Table
from sexton_actors.manifest.problems import INVALID_CONFIG, Problems

E = TypeVar("E", bound=StrEnum)

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_DOLLARS = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_TAG_WORDS = {
    "null": "nothing",
    "bool": "true or false",
    "int": "a number",
    "float": "a number",
    "timestamp": "a date",
}


def yaml_type(scalar: Scalar) -> str:
    """YAML 1.1's reading: str, null, bool, int, float, timestamp, merge or value."""
    if scalar.plain:
        # The resolvers are keyed by the first character; None holds those for any.
        for tag, pattern in yaml.SafeLoader.yaml_implicit_resolvers.get(scalar.text[:1], ()):
            if pattern.match(scalar.text):
                return str(tag).rpartition(":")[2]
    return "str"


def is_empty(node: Node | None) -> bool:
    """No such key, or a key with nothing after it."""
    return node is None or (isinstance(node, Scalar) and yaml_type(node) == "null")


class Fields:
    """One mapping of the file. Each taker returns a harmless stand-in after noting a problem.

    ``path`` is how the author would name the mapping, with a dot at its end, or empty at the top.
    """

    def __init__(self, table: Table, path: str, problems: Problems, code: str = INVALID_CONFIG) -> None:
        self.line = table.line
        self.path = path
        self._entries = {entry.key: entry for entry in table.entries}
        self._problems = problems
        self._code = code

    def coded(self, code: str) -> "Fields":
        """The same mapping, its problems told under another code."""
        return Fields(Table(self.entries(), self.line), self.path, self._problems, code)

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def entries(self) -> tuple[Entry, ...]:
        return tuple(self._entries.values())

    def line_of(self, key: str) -> int:
        entry = self._entries.get(key)
        return entry.line if entry else self.line

    def wrong(self, key: str, message: str, *, line: int | None = None, code: str | None = None) -> None:
        at = self.line_of(key) if line is None else line
        self._problems.add(at, self.path + key, message, code or self._code)

    def node(self, key: str) -> Node | None:
        entry = self._entries.get(key)
        return entry.value if entry else None

    def only(self, allowed: frozenset[str], *, told: frozenset[str] = frozenset()) -> None:
        """Note every key that is not allowed here; those of ``told`` are noted elsewhere."""
        for key in self._entries:
            if key not in allowed and key not in told:
                self.wrong(key, f"unknown key; known here: {', '.join(sorted(allowed))}")

    def is_given(self, key: str, *, required: bool) -> bool:
        if not is_empty(self.node(key)):
            return True
        if key in self:
            self.wrong(key, "is empty; give it a value" + ("" if required else " or leave the key out"))
        elif required:
            self.wrong(key, "is missing; add it")
        return False

    def text(
        self, key: str, *, most: int, required: bool = True, pattern: re.Pattern[str] | None = None
    ) -> str:
        """Text of 1 to ``most`` characters; empty when there is none, or a wrong one."""
        if not self.is_given(key, required=required):
            return ""
        return self.text_of(self.node(key), key, most=most, pattern=pattern)

    def optional_text(self, key: str, *, most: int, pattern: re.Pattern[str] | None = None) -> str | None:
        return self.text(key, most=most, required=False, pattern=pattern) or None

    def text_of(self, node: Node | None, key: str, *, most: int, pattern: re.Pattern[str] | None) -> str:
        wrong = _text_fault(node, most, pattern)
        if wrong is not None:
            self.wrong(key, wrong, line=node.line if node else None)
        return node.text if isinstance(node, Scalar) and wrong is None else ""

    def choice(self, key: str, kind: type[E], default: E, *, required: bool = False) -> E:
        """One of the enum's words; ``default`` when the key is absent or its word is wrong."""
        if not self.is_given(key, required=required):
            return default
        node = self.node(key)
        if isinstance(node, Scalar) and node.text in list(kind):
            return kind(node.text)
        self.wrong(key, f"must be {' or '.join(f'`{word}`' for word in kind)}")
        return default

    def flag(self, key: str) -> bool:
        """``true`` or ``false``, spelled so; false when absent."""
        if not self.is_given(key, required=False):
            return False
        node = self.node(key)
        if not isinstance(node, Scalar) or not node.plain or node.text not in {"true", "false"}:
            self.wrong(key, "must be `true` or `false`, without quotes")
            return False
        return node.text == "true"

    def integer(self, key: str, *, least: int, most: int, default: int | None = None) -> int:
        """A whole number in decimal; required when there is no default."""
        if not self.is_given(key, required=default is None):
            return least if default is None else default
        node = self.node(key)
        if not isinstance(node, Scalar) or not node.plain or not _INTEGER.fullmatch(node.text):
            self.wrong(key, f"must be a whole number from {least} to {most}, in plain decimal digits")
            return least
        if not least <= int(node.text) <= most:
            self.wrong(key, f"must be from {least} to {most}")
            return least
        return int(node.text)

    def dollars(self, key: str, *, most: int, required: bool) -> int | None:
        """Nanos of more than 0 and at most ``most`` dollars; read as written, never as a binary fraction."""
        if not self.is_given(key, required=required):
            return None
        node = self.node(key)
        if not isinstance(node, Scalar) or not node.plain or not _DOLLARS.fullmatch(node.text):
            self.wrong(key, "must be a number of dollars such as `5` or `2.50`, with at most 9 decimals")
            return None
        nanos = int(Decimal(node.text) * NANOS_PER_DOLLAR)
        if not 0 < nanos <= most * NANOS_PER_DOLLAR:
            self.wrong(key, f"must be more than 0 and at most {most} dollars")
            return None
        return nanos

    def table(self, key: str, *, code: str | None = None) -> "Fields | None":
        """The mapping under the key; None when absent or wrong."""
        if not self.is_given(key, required=False):
            return None
        node = self.node(key)
        if not isinstance(node, Table):
            self.wrong(key, "must be a mapping, one `key: value` a line", code=code)
            return None
        return Fields(node, f"{self.path}{key}.", self._problems, code or self._code)

    def within(self, node: Table, key: str) -> "Fields":
        """The mapping ``node``, which stands under the key."""
        return Fields(node, f"{self.path}{key}.", self._problems, self._code)

    def items(self, key: str, *, most: int, least: int = 0, required: bool = False) -> tuple[Node, ...]:
        """The list under the key. A key with nothing after it is an empty list."""
        node = self.node(key)
        if key not in self:
            if required:
                self.wrong(key, "is missing; add it")
            return ()
        items = () if is_empty(node) else node.items if isinstance(node, Sequence) else None
        if items is None:
            self.wrong(key, "must be a list, one `- value` a line")
            return ()
        if not least <= len(items) <= most:
            self.wrong(key, f"must have {least} to {most} entries, has {len(items)}")
            return ()
        return items

    def texts(
        self, key: str, *, most: int, chars: int, least: int = 0, pattern: re.Pattern[str] | None = None
    ) -> tuple[str, ...]:
        """A list of texts of 1 to ``chars`` characters; one that stands twice is taken once."""
        nodes = self.items(key, most=most, least=least)
        found = [
            self.text_of(node, f"{key}[{number}]", most=chars, pattern=pattern)
            for number, node in enumerate(nodes)
        ]
        return tuple(dict.fromkeys(text for text in found if text))

    def tables(self, key: str, *, most: int, least: int = 0, required: bool = False) -> list["Fields"]:
        """A list of mappings."""
        found: list[Fields] = []
        for number, node in enumerate(self.items(key, most=most, least=least, required=required)):
            if isinstance(node, Table):
                found.append(self.within(node, f"{key}[{number}]"))
            else:
                self.wrong(f"{key}[{number}]", "must be a mapping, one `key: value` a line", line=node.line)
        return found


def _text_fault(node: Node | None, most: int, pattern: re.Pattern[str] | None) -> str | None:
    if not isinstance(node, Scalar):
        return "must be text"
    kind = yaml_type(node)
    if kind != "str":
        meant = _TAG_WORDS.get(kind, "something else")
        return f'`{node.text[:64]}` without quotes is {meant} to YAML; write it in quotes: "{node.text[:64]}"'
    if not 1 <= len(node.text) <= most:
        return f"must have 1 to {most} characters, has {len(node.text)}"
    if _CONTROL.search(node.text):
        return "must not hold control characters"
    if pattern is not None and not pattern.fullmatch(node.text):
        return f"`{node.text[:64]}` does not fit; it must match {pattern.pattern}"
    return None
