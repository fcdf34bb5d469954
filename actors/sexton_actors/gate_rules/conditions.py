"""Reads and answers the conditions of gate rules: ``branch == 'main' and actor != 'ci'``.

The whole language::

    condition  = all_of { "or" all_of }
    all_of     = term { "and" term }
    term       = "(" condition ")" | field ( "==" | "!=" | "contains" | "matches" ) string
    field      = a top-level field: a letter or "_", then letters, digits, "_" or "-"
    string     = in single or double quotes; a backslash takes the next character as it is,
                 but in a pattern, where backslashes are the pattern's own

``and`` binds tighter than ``or``. A field's text, numbers and booleans are compared as text (``true``,
``7``, ``null``); a field that is missing, a list or an object equals nothing, so ``!=`` holds for it. A text
contains its parts, a list the items that are equal; ``matches`` takes a pattern of RE2.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import assert_never

import msgspec

from sexton_actors.gate_rules.patterns import compile_pattern, matches

MAX_CONDITION_CHARS = 1_024
MAX_CONDITION_DEPTH = 16
"""Parentheses within parentheses: bounds the recursion of reading and of answering."""

_CACHED_CONDITIONS = 4_096
_TOKEN = re.compile(
    r"""[ \t\r\n]*(?:
        (?P<word>[A-Za-z_][A-Za-z0-9_-]*)
      | (?P<operator>==|!=)
      | (?P<parenthesis>[()])
      | '(?P<single>(?:[^'\\]|\\.)*)'
      | "(?P<double>(?:[^"\\]|\\.)*)"
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_RESERVED = frozenset({"and", "or", "not"})
_WORDS = frozenset({("word", "contains"), ("word", "matches")})


class Compare(msgspec.Struct, frozen=True):
    field: str
    equal: bool
    value: str


class Contains(msgspec.Struct, frozen=True):
    field: str
    value: str


class Matches(msgspec.Struct, frozen=True):
    field: str
    pattern: str


class AllOf(msgspec.Struct, frozen=True):
    terms: tuple["Condition", ...]


class AnyOf(msgspec.Struct, frozen=True):
    terms: tuple["Condition", ...]


Condition = Compare | Contains | Matches | AllOf | AnyOf


class Unreadable(msgspec.Struct, frozen=True):
    """``at`` counts characters from 1; ``message`` says what stood there and what was expected."""

    at: int
    message: str


class _Token(msgspec.Struct, frozen=True):
    kind: str
    text: str
    at: int
    raw: str = ""
    """Give a string as it stands between its quotes."""


class _Fault(Exception):
    def __init__(self, at: int, message: str) -> None:
        super().__init__(message)
        self.unreadable = Unreadable(at, message)


class _Reader:
    """One token of look-ahead over one condition."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._next = 0

    @property
    def token(self) -> _Token:
        return self._tokens[self._next]

    def take(self) -> _Token:
        token = self.token
        self._next += 1
        return token

    def take_if(self, kind: str, text: str) -> bool:
        found = self.token.kind == kind and self.token.text == text
        self._next += found
        return found

    def any_of(self, depth: int) -> Condition:
        terms = [self.all_of(depth)]
        while self.take_if("word", "or"):
            terms.append(self.all_of(depth))
        return terms[0] if len(terms) == 1 else AnyOf(tuple(terms))

    def all_of(self, depth: int) -> Condition:
        terms = [self.term(depth)]
        while self.take_if("word", "and"):
            terms.append(self.term(depth))
        return terms[0] if len(terms) == 1 else AllOf(tuple(terms))

    def term(self, depth: int) -> Condition:
        opening = self.token
        if self.take_if("parenthesis", "("):
            if depth == MAX_CONDITION_DEPTH:
                raise _Fault(opening.at, f"more than {MAX_CONDITION_DEPTH} parentheses within each other")
            inner = self.any_of(depth + 1)
            if not self.take_if("parenthesis", ")"):
                raise _expected("a closing parenthesis", self.token)
            return inner
        return self.comparison()

    def comparison(self) -> Condition:
        field = self.take()
        if field.kind != "word" or field.text in _RESERVED:
            raise _expected("a field name", field)
        operator = self.take()
        if operator.kind != "operator" and (operator.kind, operator.text) not in _WORDS:
            raise _expected("`==`, `!=`, `contains` or `matches`", operator)
        value = self.take()
        if value.kind != "string":
            raise _expected("a value in quotes", value)
        match operator.text:
            case "contains":
                return Contains(field.text, value.text)
            case "matches":
                return _pattern(field.text, value)
            case _:
                return Compare(field.text, operator.text == "==", value.text)


@lru_cache(maxsize=_CACHED_CONDITIONS)
def parse_condition(text: str) -> Condition | Unreadable:
    """Read one condition; never raises.

    >>> parse_condition("branch == 'main' or dry_run != 'true' and actor == 'ci'")  # doctest: +ELLIPSIS
    AnyOf(terms=(Compare(field='branch', equal=True, value='main'), AllOf(terms=(...))))
    >>> parse_condition("branch == main")
    Unreadable(at=11, message='expected a value in quotes, found `main`')
    """
    if len(text) > MAX_CONDITION_CHARS:
        return Unreadable(MAX_CONDITION_CHARS + 1, f"longer than {MAX_CONDITION_CHARS} characters")
    try:
        reader = _Reader(_tokens(text))
        condition = reader.any_of(0)
        if reader.token.kind != "end":
            raise _expected("`and`, `or` or the end", reader.token)
    except _Fault as fault:
        return fault.unreadable
    return condition


def holds(condition: Condition, fields: Mapping[str, object]) -> bool:
    """Whether ``fields``, the top level of an event or of a tool call, satisfy the condition."""
    match condition:
        case Compare():
            return (_as_text(fields.get(condition.field, {})) == condition.value) is condition.equal
        case Contains():
            return _contains(fields.get(condition.field), condition.value)
        case Matches():
            text = _as_text(fields.get(condition.field, {}))
            return text is not None and matches(condition.pattern, text)
        case AllOf():
            return all(holds(term, fields) for term in condition.terms)
        case AnyOf():
            return any(holds(term, fields) for term in condition.terms)
        case _:
            assert_never(condition)


def patterns_in(condition: Condition) -> int:
    """How many patterns it holds."""
    match condition:
        case AllOf() | AnyOf():
            return sum(patterns_in(term) for term in condition.terms)
        case _:
            return isinstance(condition, Matches)


def _contains(value: object, wanted: str) -> bool:
    if isinstance(value, list | tuple):
        return any(_as_text(item) == wanted for item in value)
    return isinstance(value, str) and wanted in value


def _as_text(value: object) -> str | None:
    """As it would stand in JSON, but text without its quotes; None equals no text."""
    match value:
        case str():
            return value
        case None | bool():
            return {None: "null", True: "true", False: "false"}[value]
        case int() | float():
            return repr(value)
        case _:
            return None


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    end = len(text.rstrip(" \t\r\n"))
    position = 0
    while position < end:
        found = _TOKEN.match(text, position)
        if found is None:
            at = position + len(text[position:]) - len(text[position:].lstrip(" \t\r\n")) + 1
            raise _Fault(
                at, "expected a field name, an operator, `and`, `or`, a parenthesis or a value in quotes"
            )
        kind = found.lastgroup or ""
        content = found[kind]
        raw = content
        if kind in {"single", "double"}:
            kind, content = "string", _ESCAPE.sub(r"\1", content)
        tokens.append(_Token(kind, content, found.end() - len(found[0].lstrip(" \t\r\n")) + 1, raw))
        position = found.end()
    tokens.append(_Token("end", "", end + 1))
    return tokens


def _pattern(field: str, value: _Token) -> Matches:
    # A backslash before a quote is as good in RE2 as the quote alone.
    compiled = compile_pattern(value.raw)
    if isinstance(compiled, str):
        raise _Fault(value.at, compiled)
    return Matches(field, value.raw)


def _expected(what: str, found: _Token) -> _Fault:
    stood = "the end" if found.kind == "end" else f"`{found.text[:32]}`"
    return _Fault(found.at, f"expected {what}, found {stood}")
