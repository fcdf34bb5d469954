"""Reads the body of a webhook: a JSON object, or a form that carries one."""

import codecs
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl

import msgspec
import trio

from sexton_actors.json_scale import MAX_DEPTH, SLICE, Scale, TooHeavy
from sexton_actors.webhooks.model import Malformed

MAX_BODY_DEPTH = MAX_DEPTH
"""Objects and arrays within each other, the outermost included."""
SMALL_BODY = 32 * 1024
"""A body up to this size is quick to decode, whatever it holds."""
MAX_VALUES = 49_152
"""Commas, colons and opening brackets of a larger one, outside its texts: one in 21 bytes of the largest."""
MAX_CONTAINERS = 16_384
"""Objects and arrays of a larger one: each takes as long as several values."""
MAX_FORM_FIELDS = 32

_WHITESPACE = b" \t\r\n"


class Content(msgspec.Struct, frozen=True):
    """An object, and how its sender wrote it."""

    document: dict[str, Any]
    text: str


async def find_text(body: bytes) -> bytes | Malformed:
    """The JSON in a body, unless a large one holds so much that to decode it would keep others waiting.

    A large one is looked through slice by slice, and others have their turn in between.
    """
    if len(body) <= SMALL_BODY:
        return json_text(body)
    await trio.lowlevel.checkpoint()  # Its signature was computed just now.
    # The decoding of a form lets go of the interpreter's lock now and then, and takes long.
    text = await trio.to_thread.run_sync(json_text, body) if _is_form(_bare(body)) else json_text(body)
    if isinstance(text, Malformed) or _is_light(text):
        return text
    scale = Scale(max_marks=MAX_VALUES)
    for start in range(0, len(text), SLICE):
        try:
            scale.add(text[start : start + SLICE])
        except TooHeavy as fault:
            return Malformed(str(fault))
        if scale.opened > MAX_CONTAINERS:
            return Malformed(f"a large body holds {MAX_CONTAINERS} objects and arrays at most")
        await trio.lowlevel.checkpoint()
    return text


def json_text(body: bytes) -> bytes | Malformed:
    """The body, or the field of a form that it is."""
    text = _bare(body)
    return _form_payload(text) if _is_form(text) else text


def _bare(body: bytes) -> bytes:
    return body.removeprefix(codecs.BOM_UTF8).lstrip(_WHITESPACE)


def _is_form(text: bytes) -> bool:
    return not text.startswith((b"{", b"[")) and b"=" in text


def _is_light(body: bytes) -> bool:
    """Whether it is within the bounds even if everything that looks like a mark is one."""
    opened = body.count(b"[") + body.count(b"{")
    return opened <= MAX_BODY_DEPTH and opened + body.count(b",") + body.count(b":") <= MAX_VALUES


def read_object(body: bytes) -> dict[str, Any] | Malformed:
    """The object in the body; never raises."""
    text = json_text(body)
    content = text if isinstance(text, Malformed) else read_content(text)
    return content if isinstance(content, Malformed) else content.document


def read_content(text: bytes) -> Content | Malformed:
    """The object in the text of a body, whatever its Content-Type says; never raises.

    A key that stands twice counts with its last value, as in most readers of JSON. NaN and Infinity are no
    JSON. A whole number may have up to 4,300 digits, another must be within the range of a double.
    """
    try:
        if len(text) <= SMALL_BODY:
            document = msgspec.json.decode(text)
        else:
            with _without_collection():
                document = msgspec.json.decode(text)
        spelled = text.decode().rstrip()
    except RecursionError:
        return Malformed(f"the body is nested deeper than {MAX_BODY_DEPTH}")
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        return Malformed(f"the body is not JSON: {error}")
    if not isinstance(document, dict):
        return Malformed("the body must be a JSON object")
    if text.count(b"{") + text.count(b"[") > MAX_BODY_DEPTH and _is_too_deep(document):
        return Malformed(f"the body is nested deeper than {MAX_BODY_DEPTH}")
    return Content(document, spelled)


def _form_payload(body: bytes) -> bytes | Malformed:
    try:
        fields = parse_qsl(
            body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MAX_FORM_FIELDS
        )
    except ValueError:  # not ASCII, not UTF-8 behind its percent signs, or too many fields
        return Malformed("the body is neither JSON nor a form")
    payloads = [value for name, value in fields if name == "payload"]
    if len(payloads) != 1:
        return Malformed("the body is not JSON, and a form must have one field `payload`")
    return payloads[0].encode()


@contextmanager
def _without_collection() -> Iterator[None]:
    """To look for garbage among many objects that are made at once would take longer than to make them."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _is_too_deep(document: dict[str, Any]) -> bool:
    level: list[Any] = [document]
    for _ in range(MAX_BODY_DEPTH):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return False
    return True
