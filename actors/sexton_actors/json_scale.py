"""Counts what a text of JSON holds, slice by slice and without decoding it."""

import re
from typing import Final

MAX_DEPTH: Final = 64
SLICE: Final = 16 * 1024

_TEXT: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?P<end>"?)', re.DOTALL)
_OPENING: Final = (b"[", b"{")
_BRACKETS: Final = b"[]{}"
_OTHERS: Final = bytes(byte for byte in range(256) if byte not in _BRACKETS)


class TooHeavy(ValueError):
    """Says of a text what there is too much of."""


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
        "opened",
    )

    def __init__(
        self, max_escapes: int | None = None, max_marks: int | None = None, max_depth: int = MAX_DEPTH
    ) -> None:
        """``max_marks``: of commas, colons and opening brackets; ``max_escapes``: of backslashes."""
        self._max_marks = max_marks
        self._max_escapes = max_escapes
        self._max_depth = max_depth
        self._in_text = False
        self._carried = b""
        """The backslash at the end of a slice: what it escapes is in the next."""
        self.marks = 0
        self.opened = 0
        """Lists and objects."""
        self.depth = 0
        self.escapes = 0

    def add(self, part: bytes) -> None:
        """Raises TooHeavy for what is deeper than its levels, or has too much of something."""
        self.escapes += part.count(b"\\")
        if self._max_escapes is not None and self.escapes > self._max_escapes:
            raise TooHeavy(f"a body holds {self._max_escapes} backslashes at most")
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
            raise TooHeavy(f"a number or a gap is over {SLICE} characters long")
        self.marks += marks
        self.opened += opened
        if self._max_marks is not None and self.marks > self._max_marks:
            raise TooHeavy(f"a large body holds {self._max_marks} values at most")

    def _sink(self, plain: bytes, opened: int) -> None:
        if self.depth + opened <= self._max_depth:
            self.depth += opened - plain.count(b"]") - plain.count(b"}")
            return
        for byte in plain.translate(None, _OTHERS):
            if byte in b"[{":
                self.depth += 1
                if self.depth > self._max_depth:
                    raise TooHeavy(f"the body is nested deeper than {self._max_depth} levels")
            else:
                self.depth -= 1
