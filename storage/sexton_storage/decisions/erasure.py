"""Finds a value by its hash in texts and JSON, and takes it out."""

import hashlib
import json
import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from sexton_storage.documents import from_json
from sexton_storage.records.erasures import CHARS_MAX, CHARS_MIN, Needle

ERASED: Final = "[erased]"
ERASED_DOCUMENT: Final = '{"erased":true}'
NESTED_MAX: Final = 4
"""How deep JSON is read that stands as a text in JSON."""
KEPT_KEYS: Final = frozenset(
    {"actor", "decision", "error_code", "event_type", "failure_label", "kind", "name", "status", "tool_name"}
)
"""What a frame keeps of an erased event, beside numbers and ids: words of the product or the agent."""
_LITERAL: Final = re.compile(r'("(?:[^"\\]|\\.)*")(\s*:)?|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?', re.DOTALL)
_LENIENT: Final = json.JSONDecoder(strict=False)
"""Takes control characters in strings as they are."""
_UUID: Final = re.compile(r'"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"')


def needle_of(path: str, value: str) -> Needle:
    """What to look for; the value itself is not kept.

    >>> needle = needle_of("customer.email", "ann@example.org")
    >>> needle.chars, needle.sha256.hex()[:8], needle.path
    (15, '438c4c7a', 'customer.email')
    """
    return Needle(path, _hash(value), len(value))


def fault_of(path: str, value: str) -> str | None:
    """Why this cannot be erased; None: it can.

    >>> fault_of("a", "x")
    '/value: 3 to 512 characters are needed.'
    >>> fault_of("a", " Ann")
    '/value: it begins or ends with white space.'
    >>> fault_of("a..b", "Ann")
    '/path: names of keys with a dot between each two are needed.'
    >>> fault_of("a.*", "Ann") is None
    True
    """
    if not all(path.split(".")):
        return "/path: names of keys with a dot between each two are needed."
    if not CHARS_MIN <= len(value) <= CHARS_MAX:
        return f"/value: {CHARS_MIN} to {CHARS_MAX} characters are needed."
    if value != value.strip():
        return "/value: it begins or ends with white space."
    if "\0" in value or any("\ud800" <= one <= "\udfff" for one in value):
        return "/value: a NUL or half a surrogate pair is in no text that is kept."
    return None


def is_at_path(needle: Needle, document: str) -> bool:
    """Whether a request has the value at the path; every element of a list on the way is looked at.

    >>> needle = needle_of("customers.email", "ann@example.org")
    >>> is_at_path(needle, '{"customers": [{"email": "bob@example.org"}, {"email": "ann@example.org"}]}')
    True
    >>> is_at_path(needle, '{"email": "ann@example.org"}'), is_at_path(needle, "not JSON")
    (False, False)
    >>> is_at_path(needle_of("id", "1234"), '{"id": 1234}')
    True
    """
    try:
        found = [from_json(document)]
    except (msgspec.DecodeError, RecursionError):
        return False
    for key in needle.path.split("."):
        parts = [part for one in found for part in (one if isinstance(one, list) else [one])]
        found = [part[key] for part in parts if isinstance(part, dict) and key in part]
    scalars = [part for one in found for part in (one if isinstance(one, list) else [one])]
    return any(_is(needle, _scalar(one)) for one in scalars)


def without_text(needle: Needle, text: str, *, depth: int = 0) -> str:
    r"""Take the value out of a text, where no letter, digit or underscore goes on with it.

    >>> needle = needle_of("e", "ann@example.org")
    >>> without_text(needle, "To <ann@example.org>, not joann@example.org: ann@example.org.")
    'To <[erased]>, not joann@example.org: [erased].'
    >>> without_text(needle, r'log: {"to": "ann\u0040example.org"}')
    'log: {"to": "[erased]"}'
    >>> without_text(needle_of("e", "a.*"), "a.* and abc")
    '[erased] and abc'

    What stands in place of a value is none, so that nothing is found again in what is left.

    >>> without_text(needle_of("e", "erased"), "It was erased: [erased].")
    'It was [erased]: [erased].'
    """
    if len(text) < needle.chars:
        return text
    plain = ERASED.join(_without_window(needle, part) for part in text.split(ERASED))
    return without_json(needle, plain, depth=depth + 1) if "\\" in plain and depth < NESTED_MAX else plain


def without_json(needle: Needle, document: str, *, depth: int = 0) -> str:
    r"""Take the value out of each string of a JSON text, and each number that is it; all else stays as it is.

    >>> needle = needle_of("e", "ann@example.org")
    >>> without_json(needle, '{"ann@example.org": ["Ann <ann@example.org>", 1.50, "x"]}')
    '{"[erased]": ["Ann <[erased]>", 1.50, "x"]}'
    >>> without_json(needle_of("id", "1234"), '{"id": 1234, "n": 12345}')
    '{"id": null, "n": 12345}'
    >>> without_json(needle_of("e", "erased"), ERASED_DOCUMENT) == ERASED_DOCUMENT
    True
    """
    if document == ERASED_DOCUMENT:
        return document

    def put(literal: re.Match[str]) -> str:
        quoted = literal[1]
        if quoted is None:
            return "null" if depth == 0 and _is(needle, literal[0]) else literal[0]
        # An escape is longer than what it stands for, so a literal that is too short has a text that is.
        if len(quoted) - 2 < needle.chars:
            return literal[0]
        try:
            text = _LENIENT.decode(quoted) if "\\" in quoted else quoted[1:-1]
        except ValueError:
            return literal[0]
        rest = without_text(needle, text, depth=depth)
        return literal[0] if rest == text else json.dumps(rest, ensure_ascii=False) + (literal[2] or "")

    return _LITERAL.sub(put, document)


def emptied(document: str) -> str:
    """Take all that people wrote out of a frame, and leave its shape, numbers and ids.

    >>> emptied('{"text": "Dear Ann", "name": "shell", "n": 3, "of": ["a", "b"]}')
    '{"text": "[erased]", "name": "shell", "n": 3, "of": ["[erased]", "[erased]"]}'
    """
    key = ""

    def put(literal: re.Match[str]) -> str:
        nonlocal key
        quoted = literal[1]
        if quoted is None:
            return literal[0]
        if literal[2]:
            key = quoted[1:-1]
            return literal[0]
        return literal[0] if key in KEPT_KEYS or _UUID.fullmatch(quoted) else f'"{ERASED}"'

    return _LITERAL.sub(put, document)


def is_in_bytes(needle: Needle, content: bytes) -> bool:
    """Whether a file has the value, if it is text in UTF-8.

    >>> needle = needle_of("e", "ann@example.org")
    >>> is_in_bytes(needle, b"name,ann@example.org"), is_in_bytes(needle, bytes([255, 0, 1]))
    (True, False)
    """
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return False
    return without_text(needle, text) != text


def changed(text: str | None, take: Callable[[str], str]) -> tuple[str | None, bool]:
    """What is left of a column, and whether anything went."""
    rest = None if text is None else take(text)
    return rest, rest != text


def _without_window(needle: Needle, text: str) -> str:
    found: list[str] = []
    end = 0
    for window in _windows(needle.chars).finditer(text):
        start = window.start()
        if start >= end and _hash(window[1]) == needle.sha256:
            found.append(text[end:start])
            end = start + needle.chars
    return ERASED.join([*found, text[end:]]) if found else text


def _windows(chars: int) -> re.Pattern[str]:
    # Only windows that could be the value are hashed: from a boundary of words to the next but so far away.
    found = _PATTERNS.get(chars)
    if found is None:
        pattern = rf"(?s)(?!(?<=\w)\w)(?=\S)(?=(.{{{chars}}})(?!(?<=\w)\w))"
        found = _PATTERNS[chars] = re.compile(pattern)
    return found


_PATTERNS: Final[dict[int, re.Pattern[str]]] = {}


def _scalar(part: Any) -> str | None:
    match part:
        case bool() | None:
            return None
        case str():
            return part
        case int() | float():
            return repr(part)
        case _:
            return None


def _is(needle: Needle, text: str | None) -> bool:
    return text is not None and len(text) == needle.chars and _hash(text) == needle.sha256


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
