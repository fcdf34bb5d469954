"""Finds what JSON allows and no body may have: a key that stands twice, a text with a NUL."""

import json
import re
from typing import Any, Final

from sexton_http.answers import Problem

_NUL: Final = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


def check_keys(body: bytes) -> None:
    """Raises Problem UZ-REQ-001 when an object has a key twice, or a text has a NUL, which no store keeps."""
    if b"\\u0000" in body and _NUL.search(body):
        raise _misplaced(body, "has the character U+0000")
    try:
        json.loads(body, object_pairs_hook=_once)
    except _Twice:
        raise _misplaced(body, "stands there twice") from None


class _Twice(Exception):
    """An object has a key twice."""


class _Fields(list[tuple[str, Any]]):
    """An object as it was written."""


def _once(pairs: list[tuple[str, Any]]) -> None:
    if len({name for name, _ in pairs}) != len(pairs):
        raise _Twice


def _misplaced(body: bytes, what: str) -> Problem:
    """Only now is it worth the while to know where."""
    pointer = _first_fault(json.loads(body, object_pairs_hook=_Fields)) or ""
    return Problem("UZ-REQ-001", f"{pointer or 'the body'}: {what}", facts={"pointer": pointer})


def _first_fault(node: Any, place: str = "") -> str | None:
    """The pointer to the first key that is there twice, or text with a NUL; no deeper than bodies may be."""
    if isinstance(node, str):
        return place if "\0" in node else None
    if isinstance(node, _Fields):
        seen: set[str] = set()
        for name, value in node:
            there = f"{place}/{escaped(name)}"
            if name in seen or "\0" in name:
                return there
            seen.add(name)
            if (found := _first_fault(value, there)) is not None:
                return found
    elif isinstance(node, list):
        for index, value in enumerate(node):
            if (found := _first_fault(value, f"{place}/{index}")) is not None:
                return found
    return None


def escaped(step: str) -> str:
    """A step of an RFC 6901 pointer."""
    return step.replace("~", "~0").replace("/", "~1")
