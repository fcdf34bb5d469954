"""Reads the language that picks events."""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from sexton_storage.event_filter.words import phrase_of
from sexton_storage.records.event_filters import (
    DOCUMENTS,
    MAX_CHARS,
    MAX_PATH,
    MAX_TERMS,
    MAX_VALUES,
    MAX_WORDS,
    TIMES,
    EventFilter,
    Field,
    Op,
    Term,
    as_uuid,
)
from sexton_storage.records.events import EventStatus

NUMBER: Final = re.compile(r"-?[0-9]{1,18}(?:\.[0-9]{1,9})?")
MAX_MS: Final = 2**53 - 1
UNIT_MS: Final = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION: Final = re.compile(r"(\d{1,9})([smhd])", re.ASCII)
_RFC3339: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_REFUSED: Final = re.compile("[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff]")
_SPACE: Final = re.compile(r"\s*")
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_BARE: Final = re.compile(r'[^\s",]+')
_HEAD: Final = re.compile(
    r'([A-Za-z_]+)((?:\.(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"))*)(:|>=|<=|>|<|=)', re.DOTALL
)
_NAME: Final = re.compile(r'\.(?:([A-Za-z0-9_-]+)|"((?:[^"\\]|\\.)*)")', re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_OPS: Final = {":": Op.IS, "=": Op.IS, "<": Op.LESS, "<=": Op.AT_MOST, ">": Op.MORE, ">=": Op.AT_LEAST}
_FIELDS: Final = ", ".join(Field)


class FilterError(ValueError):
    """A filter that cannot be read; ``position`` is the place of the fault, in characters from 0."""

    def __init__(self, position: int, fault: str) -> None:
        super().__init__(f"character {position + 1}: {fault}")
        self.position = position


def parse_filter(text: str, *, now: int) -> EventFilter:
    """Read a filter. ``now``: Unix ms, from which durations count back. Raises FilterError.

    >>> def read(text):
    ...     found = parse_filter(text, now=7_200_007)
    ...     return [(term.field.value, term.values, term.negated) for term in found.terms]
    >>> read('status:agent_error,dead_lettered -actor:cron:* after:2h "Connection refused"')
    [('status', ('agent_error', 'dead_lettered'), False), ('actor', ('cron:*',), True), \
('after', ('7',), False), ('text', ('connection refused',), False)]
    >>> parse_filter("request.pull.number>=17", now=0).terms[0].path
    ('pull', 'number')
    >>> parse_filter("type:push status:runing", now=0)
    Traceback (most recent call last):
    sexton_storage.event_filter.parse.FilterError: character 18: there is no status 'runing': received, \
waiting_approval, running, processed, agent_error, gate_blocked, cancelled, dead_lettered
    """
    _check_text(text)
    return EventFilter(_bounded(tuple(_terms(text, now)), len(text)))


def named_term(field: Field, text: str, *, now: int) -> Term:
    """Read the values of one field, apart by commas; nothing is quoted. Raises FilterError.

    >>> named_term(Field.TYPE, "push,pull_request.*", now=0).values
    ('push', 'pull_request.*')
    """
    _check_text(text)
    values, at = [], 0
    for value in text.split(","):
        values.append((at, value))
        at += len(value) + 1
    if len(values) > (1 if field in TIMES else MAX_VALUES) or not all(value for _, value in values):
        raise FilterError(0, f"one to {MAX_VALUES} values, apart by commas; a time takes one")
    return Term(field, tuple(_checked(field, Op.IS, value, now) for value in values))


def _check_text(text: str) -> None:
    if len(text) > MAX_CHARS:
        raise FilterError(MAX_CHARS, f"a filter has at most {MAX_CHARS} characters")
    if refused := _REFUSED.search(text):
        raise FilterError(refused.start(), "a filter holds no control characters")


def time_of(text: str, now: int) -> int | None:
    """Read a duration back from now, an RFC 3339 time, or Unix ms; None: it is none of them.

    >>> time_of("15s", 60_000), time_of("1970-01-01T00:00:01Z", 0), time_of("12", 0), time_of("soon", 0)
    (45000, 1000, 12, None)
    """
    if duration := _DURATION.fullmatch(text):
        return max(0, now - int(duration[1]) * UNIT_MS[duration[2]])
    if text.isascii() and text.isdigit():
        return int(text) if len(text) <= len(str(MAX_MS)) and int(text) <= MAX_MS else None
    if _RFC3339.fullmatch(text):
        try:
            return max(0, int(datetime.fromisoformat(text.upper()).timestamp() * 1000))
        except (ValueError, OverflowError):
            pass
    return None


def _bounded(terms: tuple[Term, ...], end: int) -> tuple[Term, ...]:
    if len(terms) > MAX_TERMS:
        raise FilterError(end, f"a filter has at most {MAX_TERMS} terms")
    return terms


def _terms(text: str, now: int) -> Iterator[Term]:
    at = _space(text, 0)
    while at < len(text):
        term, end = _term(text, at, now)
        yield term
        at = _space(text, end)
        if at == end and at < len(text):
            raise FilterError(at, "terms stand apart by a space")


def _space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


_Subject = tuple[Field, Op, tuple[str, ...]]
_WORDS: Final[_Subject] = (Field.TEXT, Op.IS, ())
"""What a term without a field asks for."""


def _term(text: str, start: int, now: int) -> tuple[Term, int]:
    negated = text[start] == "-"
    at = start + negated
    head = _HEAD.match(text, at)
    field, op, path = _WORDS if head is None else _subject(head, at)
    values, end = _values(text, at if head is None else head.end(), several=head is not None)
    if (field in TIMES or op is not Op.IS) and len(values) > 1:
        raise FilterError(values[1][0], f"{field} takes one value here")
    checked = tuple(_checked(field, op, value, now) for value in values)
    return Term(field, checked, negated, op, path), end


def _subject(head: re.Match[str], at: int) -> _Subject:
    try:
        field = Field(head[1].lower())
    except ValueError:
        raise FilterError(at, f"there is no field {head[1]!r}: {_FIELDS}") from None
    op = _OPS[head[3]]
    if op is not Op.IS and field not in DOCUMENTS:
        raise FilterError(head.start(3), f"{field} takes a colon; {head[3]} is for numbers at a path")
    return field, op, _path(field, head, at)


def _path(field: Field, head: re.Match[str], at: int) -> tuple[str, ...]:
    path = tuple(_ESCAPED.sub(r"\1", bare or quoted) for bare, quoted in _NAME.findall(head[2]))
    if field in DOCUMENTS and not path:
        raise FilterError(at, f"{field} needs a path, such as {field}.repository.name")
    if field not in DOCUMENTS and path:
        raise FilterError(head.start(2), f"{field} has no path: only request and evidence have one")
    if len(path) > MAX_PATH:
        raise FilterError(head.start(2), f"a path has at most {MAX_PATH} names")
    return path


_Value = tuple[int, str]
"""Where it stands, and what it says."""


def _values(text: str, at: int, *, several: bool) -> tuple[list[_Value], int]:
    values = []
    while True:
        value, end = _value(text, at)
        values.append((at, value))
        if len(values) > MAX_VALUES:
            raise FilterError(at, f"a term has at most {MAX_VALUES} values")
        if not several or text[end : end + 1] != ",":
            return values, end
        at = end + 1


def _value(text: str, at: int) -> tuple[str, int]:
    if quoted := _QUOTED.match(text, at):
        return _ESCAPED.sub(r"\1", quoted[1]), quoted.end()
    if text[at : at + 1] == '"':
        raise FilterError(at, "this quotation mark is not closed")
    bare = _BARE.match(text, at)
    if bare is None:
        raise FilterError(at, "a value is missing here")
    return bare[0], bare.end()


def _checked(field: Field, op: Op, value: _Value, now: int) -> str:
    at, text = value
    match field:
        case Field.STATUS if text not in set(EventStatus):
            raise FilterError(at, f"there is no status {text!r}: {', '.join(EventStatus)}")
        case Field.ID | Field.RUNNER:
            found = as_uuid(text)
            if found is None:
                raise FilterError(at, f"{field} takes the canonical form of a UUID")
            return str(found)
        case Field.AFTER | Field.BEFORE:
            moment = time_of(text, now)
            if moment is None:
                raise FilterError(at, "a duration back from now (30m), an RFC 3339 time, or Unix ms")
            return str(moment)
        case Field.TEXT:
            return _phrase(at, text)
        case Field.REQUEST | Field.EVIDENCE if op is not Op.IS and not NUMBER.fullmatch(text):
            raise FilterError(at, f"{op} compares numbers, and {text!r} is none")
        case _:
            return text


def _phrase(at: int, text: str) -> str:
    phrase = phrase_of(text)
    if not phrase:
        raise FilterError(at, "there is no word to look for here: letters, digits, underscores")
    if phrase.count(" ") >= MAX_WORDS:
        raise FilterError(at, f"a phrase has at most {MAX_WORDS} words")
    return phrase
