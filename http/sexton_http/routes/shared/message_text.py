"""Spells what is in an actor's message for an operator, without what may be a secret."""

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, Final
from uuid import UUID

import msgspec

MOST_CHARS: Final = 2_000
"""Characters of one message that are shown."""
MOST_ITEMS: Final = 10
"""Items of one list or mapping that are shown."""
DEEPEST: Final = 5
SECRET: Final = re.compile(
    r"secret|token|password|key|cipher|sealed|credential|authori[sz]ation|cookie|signature|data|header|body|raw"
)
"""What a field is called whose text may be a secret, or have one in it."""
HIDDEN: Final = "(hidden)"


def text_of(message: Any) -> str:
    """Field by field, and no longer than a screen.

    >>> class Put(msgspec.Struct):
    ...     name: str
    ...     token: str
    ...     fencing_token: int
    ...     parts: tuple[int, ...]
    ...     raw: bytes
    >>> text_of(Put("hub", "s3cret", 7, (1, 2), b"abc"))
    "Put(name='hub', token=(hidden), fencing_token=7, parts=[1, 2], raw=(3 bytes))"
    """
    text = _spell(message, 0)
    return text if len(text) <= MOST_CHARS else f"{text[:MOST_CHARS]}… ({len(text)} characters)"


def _spell(value: Any, depth: int) -> str:
    match value:
        case None | bool() | int() | float():
            return repr(value)
        case Enum() | UUID():
            return str(value)
        case str():
            return repr(value if len(value) <= MOST_CHARS else f"{value[:MOST_CHARS]}…")
        case bytes() | bytearray() | memoryview():
            return f"({len(value)} bytes)"
        case _ if depth >= DEEPEST:
            return "…"
        case msgspec.Struct():
            names = [field.name for field in msgspec.structs.fields(value)]
            return _fields(value, names, depth)
        case _ if is_dataclass(value) and not isinstance(value, type):
            return _fields(value, [field.name for field in fields(value)], depth)
        case Mapping():
            told = [f"{key}: {_value(str(key), one, depth)}" for key, one in [*value.items()][:MOST_ITEMS]]
            return f"{{{', '.join(_cut(told, len(value)))}}}"
        case list() | tuple() | set() | frozenset():
            told = [_spell(one, depth + 1) for one in [*value][:MOST_ITEMS]]
            return f"[{', '.join(_cut(told, len(value)))}]"
        case _:
            # Its own repr is anybody's, and may say anything.
            return f"({type(value).__name__})"


def _fields(value: Any, names: list[str], depth: int) -> str:
    told = [f"{name}={_value(name, getattr(value, name), depth)}" for name in names]
    return f"{type(value).__name__}({', '.join(told)})"


def _value(name: str, value: Any, depth: int) -> str:
    plain = value is None or isinstance(value, bool | int | float | Enum | UUID | bytes)
    return HIDDEN if not plain and SECRET.search(name.lower()) else _spell(value, depth + 1)


def _cut(told: list[str], whole: int) -> list[str]:
    return told if whole <= len(told) else [*told, f"and {whole - len(told)} more"]
