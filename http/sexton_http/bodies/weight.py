"""Looks through a large body slice by slice, so that only one that is quick to decode is decoded."""

import codecs
import re
from typing import Final

import trio

from sexton_http.answers import Problem

MAX_DEPTH: Final = 64
SMALL_BODY: Final = 32 * 1024
"""A body up to this size is quick to decode, whatever it holds."""
MAX_MARKS: Final = 16_384
"""Commas, colons and opening brackets of a larger one, outside its texts; each value has one at least."""
MAX_ESCAPES: Final = 256 * 1024
"""Backslashes of a larger one: in 1.5 MiB each character may be escaped as ``\\uXXXX``, and no shorter."""
SLICE: Final = 16 * 1024

_TEXT: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?P<end>"?)', re.DOTALL)
_OPENING: Final = (b"[", b"{")
_BRACKETS: Final = b"[]{}"
_OTHERS: Final = bytes(byte for byte in range(256) if byte not in _BRACKETS)


class Scale:
    """Takes a body in slices, and counts what stands outside its texts.

    >>> scale = Scale()
    >>> for part in (b'{"a,', b':[":[1,', b"[]]}"):
    ...     scale.add(part)
    >>> scale.marks, scale.depth
    (5, 0)
    """

    __slots__ = (
        "_carried",
        "_in_text",
        "_max_depth",
        "_max_escapes",
        "_max_marks",
        "depth",
        "escapes",
        "marks",
    )

    def __init__(
        self, max_escapes: int = MAX_ESCAPES, max_marks: int = MAX_MARKS, max_depth: int = MAX_DEPTH
    ) -> None:
        self._max_escapes = max_escapes
        self._max_marks = max_marks
        self._max_depth = max_depth
        self._in_text = False
        self._carried = b""
        """The backslash at the end of a slice: what it escapes is in the next."""
        self.marks = 0
        self.depth = 0
        self.escapes = 0

    def add(self, part: bytes) -> None:
        """Raises Problem UZ-REQ-001 for what is deeper than 64 levels, or has too many values."""
        self.escapes += part.count(b"\\")
        if self.escapes > self._max_escapes:
            raise Problem("UZ-REQ-001", f"a body holds {self._max_escapes} backslashes at most")
        part = (b'"' if self._in_text else b"") + self._carried + part
        self._carried = b""
        outside, last = [], 0
        self._in_text = False
        for text in _TEXT.finditer(part):
            outside.append(part[last : text.start()])
            last = text.end()
            if not text["end"]:
                # The text goes on in the next slice, and so does a backslash with nothing after it.
                self._in_text = True
                self._carried = part[last:]
                last = len(part)
        outside.append(part[last:])
        self._count(b"".join(outside))

    def _count(self, plain: bytes) -> None:
        opened = sum([plain.count(mark) for mark in _OPENING])
        self._sink(plain, opened)
        marks = plain.count(b",") + plain.count(b":") + opened
        if not marks and len(plain) >= SLICE and plain.strip(b"]}"):
            raise Problem("UZ-REQ-001", f"a number or a gap is over {SLICE} characters long")
        self.marks += marks
        if self.marks > self._max_marks:
            detail = f"a body over {SMALL_BODY} bytes holds {self._max_marks} values at most"
            raise Problem("UZ-REQ-001", detail)

    def _sink(self, plain: bytes, opened: int) -> None:
        if self.depth + opened <= self._max_depth:
            self.depth += opened - plain.count(b"]") - plain.count(b"}")
            return
        for byte in plain.translate(None, _OTHERS):
            if byte in b"[{":
                self.depth += 1
                if self.depth > self._max_depth:
                    detail = f"the body is nested deeper than {self._max_depth} levels"
                    raise Problem("UZ-REQ-001", detail)
            else:
                self.depth -= 1


def check_depth(body: bytes, max_depth: int = MAX_DEPTH) -> None:
    """Raises Problem UZ-REQ-001 over 64 levels; looks closely only at what can be deep at all."""
    if body.count(b"[") + body.count(b"{") > max_depth:
        Scale(max_depth=max_depth).add(body)


async def weigh(body: bytes, max_escapes: int = MAX_ESCAPES) -> None:
    """The same, whether it is UTF-8, and has not too many values; others have their turn after each slice."""
    await weigh_on(Scale(max_escapes), body)


async def weigh_on(scale: Scale, body: bytes) -> None:
    """As ``weigh``, with bounds of one's own."""
    text = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(body), SLICE):
        part = body[start : start + SLICE]
        scale.add(part)
        try:
            text.decode(part, final=start + SLICE >= len(body))
        except UnicodeDecodeError as fault:
            raise Problem("UZ-REQ-001", "the body is not JSON: it is not UTF-8") from fault
        await trio.lowlevel.checkpoint()
