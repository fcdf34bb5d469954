"""Decides which calls of a run a person must allow first, by the rules of its agent's trigger file.

The control plane decides about a gate by the same rules; here it is only found out that one has to be
opened, or that a call is not to be done at all. The language is described in docs/reference/manifests.md, and
one table of cases, tests/rule_cases.py, holds both readings together.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from sexton_runner.anomalies import AnomalyRule
from sexton_runner.patterns import compile_pattern, matches

MAX_CONDITION_CHARS = 1_024
MAX_CONDITION_DEPTH = 16
_TOKEN = re.compile(
    r"""[ \t\r\n]*(?:
        (?P<word>[A-Za-z_][A-Za-z0-9_-]*)
      | (?P<mark>==|!=|[()])
      | '(?P<single>(?:[^'\\]|\\.)*)'
      | "(?P<double>(?:[^"\\]|\\.)*)"
      | (?P<end>\Z)
    )""",
    re.VERBOSE | re.DOTALL,
)
_RESERVED = frozenset({"and", "or", "not"})
_OPERATORS = frozenset({("mark", "=="), ("mark", "!="), ("word", "contains"), ("word", "matches")})
DENY = "deny"


class Rule(msgspec.Struct, frozen=True):
    """``tool`` and ``action`` are literals or globs in which only ``*`` is special."""

    tool: str = "*"
    action: str = "*"
    condition: str | None = None
    behavior: str = "approve"


class Check(msgspec.Struct, frozen=True):
    """A command that has to end well when the agent says that it is done."""

    name: str
    command: str
    timeout_s: int = 300
    repair_attempts: int = 0


class Gates(msgspec.Struct, frozen=True):
    """The part of an agent's gates that a run has to keep."""

    rules: tuple[Rule, ...] = ()
    checks: tuple[Check, ...] = ()
    anomaly_rules: tuple[AnomalyRule, ...] = ()


class _Unreadable(Exception):
    """The condition is none."""


def read_gates(value: Any) -> Gates:
    """Read a lease's gates; raises ``msgspec.ValidationError``.

    >>> read_gates(None), read_gates({"rules": [{"tool": "shell"}], "timeout_ms": 5}).rules[0].tool
    (Gates(rules=(), checks=(), anomaly_rules=()), 'shell')
    """
    return msgspec.convert(value or {}, Gates)


def behaviour(rules: Sequence[Rule], tool: str, action: str, arguments: Mapping[str, object]) -> str | None:
    """Give the behaviour of the first rule that stands before this call; None: nothing does.

    >>> behaviour([Rule("git_*", "*", "branch == 'main'", "deny")], "git_push", "run", {"branch": "main"})
    'deny'
    """
    for rule in rules:
        if (
            glob_matches(rule.tool, tool)
            and glob_matches(rule.action, action)
            and (rule.condition is None or holds(rule.condition, arguments))
        ):
            return rule.behavior
    return None


def glob_matches(pattern: str, text: str) -> bool:
    """Match the whole of ``text``; each piece between stars is looked for once, from the left.

    >>> glob_matches("POST *.example.org", "POST api.example.org"), glob_matches("shell", "shell2")
    (True, False)
    """
    first, *pieces = pattern.split("*")
    if not pieces:
        return first == text
    *middle, last = pieces
    if len(text) < len(first) + len(last) or not (text.startswith(first) and text.endswith(last)):
        return False
    position, end = len(first), len(text) - len(last)
    for piece in middle:
        found = text.find(piece, position, end)
        if found < 0:
            return False
        position = found + len(piece)
    return True


def holds(condition: str, fields: Mapping[str, object]) -> bool:
    """Answer a condition over top-level fields; one that cannot be read holds, so that the gate stands.

    >>> holds("branch == 'main' or dry_run != 'true' and actor == 'ci'", {"dry_run": True, "actor": "ci"})
    False
    """
    try:
        if len(condition) > MAX_CONDITION_CHARS:
            return True
        reader = _Reader(condition, fields)
        value = reader.any_of(0)
    except _Unreadable:
        return True
    return value or reader.kind != "end"


class _Reader:
    """Reads and answers at once; both sides of every ``and`` and ``or`` are read to the end."""

    def __init__(self, text: str, fields: Mapping[str, object]) -> None:
        self._tokens = _tokens(text)
        self._fields = fields
        self.kind, self.text, self._raw, self._taken_raw = "", "", "", ""
        self._take()

    def _take(self) -> tuple[str, str]:
        taken, self._taken_raw = (self.kind, self.text), self._raw
        self.kind, self.text, self._raw = next(self._tokens, ("end", "", ""))
        return taken

    def _take_if(self, kind: str, text: str) -> bool:
        found = (self.kind, self.text) == (kind, text)
        if found:
            self._take()
        return found

    def any_of(self, depth: int) -> bool:
        value = self._all_of(depth)
        while self._take_if("word", "or"):
            value = self._all_of(depth) or value
        return value

    def _all_of(self, depth: int) -> bool:
        value = self._term(depth)
        while self._take_if("word", "and"):
            value = self._term(depth) and value
        return value

    def _term(self, depth: int) -> bool:
        if not self._take_if("mark", "("):
            return self._comparison()
        if depth == MAX_CONDITION_DEPTH:
            raise _Unreadable
        value = self.any_of(depth + 1)
        if not self._take_if("mark", ")"):
            raise _Unreadable
        return value

    def _comparison(self) -> bool:
        field, operator = self._take(), self._take()
        value, raw = self._take(), self._taken_raw
        if field[0] != "word" or field[1] in _RESERVED or operator not in _OPERATORS or value[0] != "string":
            raise _Unreadable
        found = self._fields.get(field[1], ())
        match operator[1]:
            case "contains":
                return _contains(found, value[1])
            case "matches":
                if isinstance(compile_pattern(raw), str):
                    raise _Unreadable
                text = _as_text(found)
                return text is not None and matches(raw, text)
            case _:
                return (_as_text(found) == value[1]) is (operator[1] == "==")


def _tokens(text: str) -> Iterator[tuple[str, str, str]]:
    """Give kind, text, and the text as it stands between its quotes, with a pattern's own backslashes."""
    position = 0
    while True:
        found = _TOKEN.match(text, position)
        if found is None:
            raise _Unreadable
        position = found.end()
        kind = found.lastgroup or ""
        if kind == "end":
            return
        raw = content = found[kind]
        if kind in ("single", "double"):
            kind, content = "string", re.sub(r"\\(.)", r"\1", content, flags=re.DOTALL)
        yield kind, content, raw


def _contains(value: object, wanted: str) -> bool:
    if isinstance(value, list | tuple):
        return any(_as_text(item) == wanted for item in value)
    return isinstance(value, str) and wanted in value


def _as_text(value: object) -> str | None:
    match value:
        case str():
            return value
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case _:
            return None
