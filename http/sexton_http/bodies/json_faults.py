"""Finds what JSON allows and no body may have: a key that stands twice, a NUL, half a surrogate pair."""

import re
from typing import Any, Final

import msgspec

from sexton_http.answers import Problem
from sexton_http.bodies.numbers import load_json
from sexton_http.bodies.weight import SMALL_BODY

_NUL: Final = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
_ZERO: Final = re.compile("\0")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_HALF: Final = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")


def surely_once(body: bytes) -> bool:
    r"""Whether each key of each object stands once, and no text has a NUL; False where that is not clear.

    What is decoded and spelled again has lost the colon of every key that came twice, and those within its
    value. Nothing can stand for a lost colon but one that was escaped before and is not now: a body in which
    anything is escaped in that way is never called clear.

    >>> surely_once(b'{"a": {"b": "c:d"}}'), surely_once(b'{"a": 1, "a": 2}')
    (True, False)
    >>> surely_once(b'{"a": 1, "a": 2, "b": "\\u003a"}'), surely_once(b'["\\u0000"]')
    (False, False)
    """
    if b"\\u00" in body:
        return False
    try:
        again = msgspec.json.encode(msgspec.json.decode(body))
    except (ValueError, RecursionError):
        return False
    return again.count(b":") == body.count(b":")


def check_keys(body: bytes) -> None:
    """Raises Problem UZ-REQ-001 when an object has a key twice, or a text has a NUL, which no store keeps."""
    if b"\\u0000" in body and _NUL.search(body):
        raise _misplaced(body, "must not contain the character U+0000")
    try:
        load_json(body, parse_int=float, object_pairs_hook=_once)  # The values are thrown away.
    except _Twice:
        raise _misplaced(body, "stands there twice") from None


def check_surrogates(body: bytes) -> None:
    r"""Raises Problem UZ-REQ-001 where half of a surrogate pair stands: JSON can spell it, but it is no text.

    >>> check_surrogates(b'{"a": ["\\ud83d\\ude00"]}')
    >>> check_surrogates(b'{"a": ["\\ud800"]}')
    Traceback (most recent call last):
    sexton_http.answers.Problem: UZ-REQ-001: /a/0: \ud800 is half of a surrogate pair, ...
    """
    try:
        pointer = _first_fault(load_json(body, object_pairs_hook=_Fields), _SURROGATE)
    except (ValueError, RecursionError):
        return  # It is no JSON either.
    if pointer is not None:
        pointer = pointer.encode("utf-8", "backslashreplace").decode()  # In a key it cannot be told as it is.
        half = _HALF.search(body)
        named = half[0].decode("ascii") if half else "the text"
        detail = f"{pointer or 'the body'}: {named} is half of a surrogate pair, which is no character alone"
        raise Problem("UZ-REQ-001", detail, facts={"pointer": pointer})


class _Twice(Exception):
    """An object has a key twice."""


class _Fields(list[tuple[str, Any]]):
    """An object as it was written."""


def _once(pairs: list[tuple[str, Any]]) -> None:
    if len({name for name, _ in pairs}) != len(pairs):
        raise _Twice


def _misplaced(body: bytes, what: str) -> Problem:
    """Only now is it worth the while to know where; in a large body it would take too long."""
    if len(body) > SMALL_BODY:
        return Problem("UZ-REQ-001", f"somewhere in the body a key or a text {what}")
    pointer = _first_fault(load_json(body, object_pairs_hook=_Fields), _ZERO) or ""
    return Problem("UZ-REQ-001", f"{pointer or 'the body'}: {what}", facts={"pointer": pointer})


def _first_fault(node: Any, banned: re.Pattern[str], place: str = "") -> str | None:
    """The pointer to the first key that is there twice, or banned text; no deeper than bodies may be."""
    if isinstance(node, str):
        return place if banned.search(node) else None
    if isinstance(node, _Fields):
        seen: set[str] = set()
        for name, value in node:
            there = f"{place}/{escaped(name)}"
            if name in seen or banned.search(name):
                return there
            seen.add(name)
            if (found := _first_fault(value, banned, there)) is not None:
                return found
    elif isinstance(node, list):
        for index, value in enumerate(node):
            if (found := _first_fault(value, banned, f"{place}/{index}")) is not None:
                return found
    return None


def escaped(step: str) -> str:
    """A step of an RFC 6901 pointer."""
    return step.replace("~", "~0").replace("/", "~1")
