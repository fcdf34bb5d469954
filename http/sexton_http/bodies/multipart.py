"""Reads multipart/form-data (RFC 7578) part by part, while it comes, so that no file is whole in memory."""

import logging
import re
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser
from werkzeug.http import parse_options_header

from sexton_http.answers import Problem

FORM_DATA: Final = "multipart/form-data"
PIECE_BYTES: Final = 32 * 1024
"""As much is looked through at once."""
EPILOGUE_BYTES: Final = 64 * 1024
"""What may stand after the last part; nobody reads it."""
_BOUNDARY: Final = re.compile(r"[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]")

More = Callable[[], Awaitable[bytes]]
"""Gives the next bytes of the body, and none at its end."""

# Whoever sends a broken form is told so, and the log is not theirs to write.
logging.getLogger("python_multipart").setLevel(logging.CRITICAL)


class Part(NamedTuple):
    """One part, without its content."""

    name: str
    filename: str | None
    """None: it is a field, and no file."""
    media_type: str
    """As its sender named it; empty: not at all."""


def boundary_of(content_type: str | None) -> bytes | None:
    """Give what parts such a form; None where the body is none.

    >>> boundary_of('multipart/form-data; boundary="a b"'), boundary_of("multipart/form-data")
    (b'a b', b'')
    >>> boundary_of("application/json") is None, boundary_of(None) is None
    (True, True)
    """
    kind, words = parse_options_header(content_type)
    if kind.lower() != FORM_DATA:
        return None
    boundary = words.get("boundary", "")
    return boundary.encode() if _BOUNDARY.fullmatch(boundary) else b""


class Form:
    """The parts of one form, in the order in which they come."""

    def __init__(self, boundary: bytes, more: More, *, max_parts: int) -> None:
        """Raises Problem UZ-REQ-001 for an empty boundary."""
        if not boundary:
            raise Problem("UZ-REQ-001", "the Content-Type of a form names its boundary: 1 to 70 characters")
        self._more, self._parts_left = more, max_parts
        self._waiting = b""
        self._events: deque[Part | bytes | None] = deque()
        """What was found and not read yet: heads, contents, and None for the end of a part."""
        self._headers: dict[str, str] = {}
        self._name, self._value = bytearray(), bytearray()
        self._has_begun = False
        self._is_over = False
        self._is_within = False
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._headers.clear,
                "on_header_field": lambda data, start, end: self._name.extend(data[start:end]),
                "on_header_value": lambda data, start, end: self._value.extend(data[start:end]),
                "on_header_end": self._note_header,
                "on_headers_finished": self._note_head,
                "on_part_data": lambda data, start, end: self._events.append(bytes(data[start:end])),
                "on_part_end": lambda: self._events.append(None),
                "on_end": self._note_end,
            },
        )

    @property
    def held(self) -> int:
        """Bytes that have come and were not read yet."""
        return len(self._waiting) + sum(len(event) for event in self._events if isinstance(event, bytes))

    async def part(self) -> Part | None:
        """Give the next part, or None after the last; what was not read of the one before is passed over.

        Raises Problem UZ-REQ-001.
        """
        while self._is_within:
            await self.read()
        while not self._events:
            if self._is_over:
                await self._pass_over_the_rest()
                return None
            await self._feed()
        head = self._events.popleft()
        if not isinstance(head, Part):
            raise _broken()
        self._is_within = True
        return head

    async def read(self) -> bytes:
        """Give the next bytes of the part, and none at its end. Raises Problem UZ-REQ-001."""
        while self._is_within:
            while not self._events:
                await self._feed()
            event = self._events.popleft()
            if isinstance(event, bytes):
                return event
            self._is_within = False
        return b""

    async def _feed(self) -> None:
        if not self._waiting:
            self._waiting = await self._more()
        if self._is_over or not self._waiting:
            raise _broken()
        piece, self._waiting = self._waiting[:PIECE_BYTES], self._waiting[PIECE_BYTES:]
        if not self._has_begun:
            # After such a line end the parser passes over as much as came with it, and so would read another
            # form where the network cuts it elsewhere.
            piece = piece.lstrip(b"\r\n")
            self._has_begun = bool(piece)
        try:
            self._parser.write(piece)
        except (FormParserError, UnicodeDecodeError) as fault:
            raise _broken() from fault

    async def _pass_over_the_rest(self) -> None:
        left = EPILOGUE_BYTES
        while piece := await self._more():
            left -= len(piece)
            if left < 0:
                raise Problem("UZ-REQ-001", "the form goes on after its end")

    def _note_header(self) -> None:
        self._headers[self._name.decode().lower()] = self._value.decode().strip()
        self._name.clear()
        self._value.clear()

    def _note_head(self) -> None:
        self._parts_left -= 1
        _, words = parse_options_header(self._headers.get("content-disposition"))
        if self._parts_left < 0 or "name" not in words:
            raise _broken()
        part = Part(words["name"], words.get("filename"), self._headers.get("content-type", ""))
        self._events.append(part)

    def _note_end(self) -> None:
        self._is_over = True


def _broken() -> Problem:
    return Problem("UZ-REQ-001", "the form cannot be read, has too many parts, or does not come to its end")
