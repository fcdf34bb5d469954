"""Reads numbers that strangers send: Python fails for one of more than 4,300 digits."""

import json
from collections.abc import Callable
from typing import Any, Final

MAX_DIGITS: Final = 19
"""As many as the largest number of a column has."""


def read_number(text: str, most: int) -> int | None:
    """A number that is spelled with the digits 0 to 9 alone, at most ``most``; None for anything else.

    >>> read_number("42", 100), read_number("0042", 100), read_number("101", 100), read_number("-1", 100)
    (42, 42, None, None)
    >>> read_number("9" * 5000, 100) is read_number("\u0664\u0662", 100) is None
    True
    """
    if not text.isascii() or not text.isdigit():
        return None
    digits = text.lstrip("0")
    if len(digits) > MAX_DIGITS:
        return None
    number = int(digits or "0")
    return number if number <= most else None


def load_json(
    body: bytes,
    *,
    parse_int: Callable[[str], Any] | None = None,
    parse_float: Callable[[str], Any] | None = None,
    object_pairs_hook: Callable[[list[tuple[str, Any]]], Any] | None = None,
) -> Any:
    """What ``json.loads`` makes of it, but for numbers that are beyond all bounds: those become infinite.

    Raises ValueError and RecursionError.

    >>> load_json(b"[1, -20, " + b"9" * 5000 + b"]")
    [1, -20, inf]
    """
    return json.loads(
        body, parse_int=parse_int or _number, parse_float=parse_float, object_pairs_hook=object_pairs_hook
    )


def _number(text: str) -> int | float:
    return int(text) if len(text) <= MAX_DIGITS + 1 else float(text)
