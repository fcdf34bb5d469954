"""Reads the body of a webhook: a JSON object, or a form that carries one."""

import codecs
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from sexton_actors.webhooks.model import Malformed

MAX_BODY_DEPTH = 64
"""Objects and arrays within each other, the outermost included."""
MAX_FORM_FIELDS = 32

_WHITESPACE = b" \t\r\n"


class Content(msgspec.Struct, frozen=True):
    """An object, and how its sender wrote it."""

    document: dict[str, Any]
    text: str


def read_object(body: bytes) -> dict[str, Any] | Malformed:
    """The object in the body; never raises."""
    content = read_content(body)
    return content if isinstance(content, Malformed) else content.document


def read_content(body: bytes) -> Content | Malformed:
    """The object in the body with its text, whatever its Content-Type says; never raises.

    A key that stands twice counts with its last value, as in most readers of JSON. NaN and Infinity are no
    JSON. A whole number may have up to 4,300 digits, another must be within the range of a double.
    """
    text = body.removeprefix(codecs.BOM_UTF8).lstrip(_WHITESPACE)
    if not text.startswith((b"{", b"[")) and b"=" in text:
        field = _form_payload(text)
        if isinstance(field, Malformed):
            return field
        text = field
    try:
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
