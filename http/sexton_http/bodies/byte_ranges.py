"""Which bytes of a file somebody asks for: RFC 9110, sections 13 and 14."""

import re
from enum import Enum
from typing import Final

from sexton_http.bodies.numbers import read_number
from sexton_http.bodies.shapes import MAX_NUMBER

_SINGLE: Final = re.compile(r"bytes=[ \t]*(\d*)-(\d*)[ \t]*", re.ASCII | re.IGNORECASE)


class Unsatisfiable(Enum):
    """What is asked for begins after the end."""

    RANGE = "the range"


def range_of(header: str | None, size: int) -> tuple[int, int] | Unsatisfiable | None:
    """Give start and end (behind the last byte) of the one range that is asked for.

    None: all of it. That is also the answer to several ranges, to other units and to what makes no sense: a
    server may pass over a range.

    >>> range_of("bytes=0-0", 9), range_of("bytes=4-", 9), range_of("bytes=-2", 9), range_of("bytes=-99", 9)
    ((0, 1), (4, 9), (7, 9), (0, 9))
    >>> range_of("bytes=9-", 9), range_of("bytes=-0", 9), range_of("bytes=5-99", 9)
    (<Unsatisfiable.RANGE: 'the range'>, <Unsatisfiable.RANGE: 'the range'>, (5, 9))
    >>> [
    ...     range_of(text, 9)
    ...     for text in (None, "bytes=3-1", "bytes=0-1,3-4", "lines=0-1", "bytes=-", "bytes=a-")
    ... ]
    [None, None, None, None, None, None]
    """
    found = None if header is None else _SINGLE.fullmatch(header)
    if found is None or found[0].strip() == "bytes=-":
        return None
    first, last = (None if text == "" else _number(text) for text in found.groups())
    if first is None:
        return None if last is None else _suffix(last, size)
    if last is not None and last < first:
        return None
    if first >= size:
        return Unsatisfiable.RANGE
    return first, size if last is None else min(size, last + 1)


def _suffix(length: int, size: int) -> tuple[int, int] | Unsatisfiable:
    return (max(0, size - length), size) if length and size else Unsatisfiable.RANGE


def _number(text: str) -> int:
    """A number however long it is written; what is larger than any file is the end of all."""
    number = read_number(text, MAX_NUMBER)
    return MAX_NUMBER if number is None else number


def is_match(header: str, tag: str) -> bool:
    """Whether a list of entity tags has this one, compared weakly as If-None-Match does.

    >>> is_match('"a", W/"b"', '"b"'), is_match("*", '"b"'), is_match('"a"', '"b"')
    (True, True, False)
    """
    tags = [one.strip().removeprefix("W/") for one in header.split(",")]
    return tags == ["*"] or tag in tags


def applies(if_range: str | None, tag: str) -> bool:
    """Whether a range still counts: If-Range is left out, or names what the file is.

    A date never does: a file is known by its hash.

    >>> applies(None, '"a"'), applies('"a"', '"a"'), applies('W/"a"', '"a"')
    (True, True, False)
    """
    return if_range is None or if_range.strip() == tag
