"""Looks through a large body slice by slice, so that only one that is quick to decode is decoded."""

import codecs
from typing import Final

import trio

from sexton_actors.json_scale import MAX_DEPTH, SLICE, Scale, TooHeavy
from sexton_http.answers import Problem

SMALL_BODY: Final = 32 * 1024
"""A body up to this size is quick to decode, whatever it holds."""
MAX_MARKS: Final = 16_384
"""Commas, colons and opening brackets of a larger one, outside its texts; each value has one at least."""
MAX_ESCAPES: Final = 256 * 1024
"""Backslashes of a larger one: in 1.5 MiB each character may be escaped as ``\\uXXXX``, and no shorter."""


def check_depth(body: bytes, max_depth: int = MAX_DEPTH) -> None:
    """Raises Problem UZ-REQ-001 over 64 levels; looks closely only at what can be deep at all."""
    if body.count(b"[") + body.count(b"{") > max_depth:
        _add(Scale(MAX_ESCAPES, MAX_MARKS, max_depth), body)


def _add(scale: Scale, part: bytes) -> None:
    try:
        scale.add(part)
    except TooHeavy as fault:
        raise Problem("UZ-REQ-001", str(fault)) from fault


async def weigh(body: bytes, max_escapes: int = MAX_ESCAPES) -> None:
    """The same, whether it is UTF-8, and has not too many values; others have their turn after each slice."""
    await weigh_on(Scale(max_escapes, MAX_MARKS), body)


async def weigh_on(scale: Scale, body: bytes) -> None:
    """As ``weigh``, with bounds of one's own."""
    text = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(body), SLICE):
        part = body[start : start + SLICE]
        _add(scale, part)
        try:
            text.decode(part, final=start + SLICE >= len(body))
        except UnicodeDecodeError as fault:
            raise Problem("UZ-REQ-001", "the body is not JSON: it is not UTF-8") from fault
        await trio.lowlevel.checkpoint()
