"""Finds the plain values at a path of a JSON document, as PostgreSQL's ``sexton_json_scalars`` does."""

import json
import re
from collections.abc import Sequence
from enum import Enum
from typing import Any, Final, NoReturn

import msgspec

from sexton_storage.records.event_filters import SEARCHED_ELEMENTS

_INDEX: Final = re.compile(r"-?[0-9]{1,9}")
_NUMBER: Final = re.compile(r"-?[0-9]{1,64}(?:\.[0-9]{1,64})?(?:[eE][+-]?[0-9]{1,3})?")

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_MISSING: Final = object()


class Kind(Enum):
    STRING = "s"
    NUMBER = "n"
    CONSTANT = "c"
    """``true``, ``false`` or ``null``."""


class Scalar(msgspec.Struct, frozen=True, gc=False):
    kind: Kind
    text: str
    """A number and a constant are spelled as in the document."""

    def __repr__(self) -> str:
        return f"Scalar({self.kind.value!r}, {self.text!r})"


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


def scalars_at(document: str, path: Sequence[str]) -> list[Scalar]:
    r"""Give the plain value at a path, or those of the array there.

    Nothing of a document that PostgreSQL cannot take apart: one that is no JSON, or has an escaped NUL or
    half a pair of surrogates anywhere. No number of more digits than any sensible one has.

    >>> scalars_at('{"labels": ["bug", 7, {"no": 1}, true]}', ("labels",))
    [Scalar('s', 'bug'), Scalar('n', '7'), Scalar('c', 'true')]
    >>> scalars_at('[{"at": 1.50}]', ("0", "at"))[0].text
    '1.50'
    >>> scalars_at('{"a": "b\\u0000"}', ("a",)), scalars_at("{}", ("a",)), scalars_at("{", ("a",))
    ([], [], [])
    """
    try:
        value = json.loads(document, parse_float=_Number, parse_int=_Number, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return []
    if not _is_clean(value):
        return []
    for name in path:
        value = _step(value, name)
    found = value[:SEARCHED_ELEMENTS] if isinstance(value, list) else [value]
    return [scalar for one in found if (scalar := _scalar(one)) is not None]


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _step(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return value.get(name, _MISSING)
    if isinstance(value, list) and _INDEX.fullmatch(name) and -len(value) <= int(name) < len(value):
        return value[int(name)]
    return _MISSING


def _scalar(value: Any) -> Scalar | None:
    match value:
        case _Number():
            return Scalar(Kind.NUMBER, str(value)) if _NUMBER.fullmatch(value) else None
        case str():
            return Scalar(Kind.STRING, value)
        case True | False | None:
            return Scalar(Kind.CONSTANT, json.dumps(value))
        case _:
            return None


def _is_clean(value: Any) -> bool:
    """Whether PostgreSQL can unescape every text of the document."""
    left = [value]
    while left:
        match left.pop():
            case _Number():
                pass
            case str() as text:
                if "\0" in text or (not text.isascii() and _SURROGATE.search(text)):
                    return False
            case dict() as members:
                left.extend(members)
                left.extend(members.values())
            case list() as elements:
                left.extend(elements)
            case _:
                pass
    return True
