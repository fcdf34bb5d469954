"""Holds ids to their canonical form, with its dashes, wherever they stand."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any, Final
from uuid import UUID

import msgspec

from sexton_http.answers import Problem

CANONICAL: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_BARE: Final = re.compile(rb'"[0-9a-fA-F]{32}"')


def parse_id(text: str, where: str) -> UUID:
    """A UUID in its canonical form, in either case. Raises Problem UZ-UUIDV7-009."""
    if CANONICAL.fullmatch(text) is None:
        raise Problem("UZ-UUIDV7-009", f"{where} is not a UUID")
    return msgspec.convert(text, UUID)  # It costs a third of what the constructor does.


def as_id(text: str) -> UUID | None:
    """A UUID in its canonical form, or None.

    >>> as_id("u1") is None
    True
    """
    return UUID(text) if CANONICAL.fullmatch(text) else None


_Finder = Callable[[Any, str], str | None]
"""Says by pointer where the first id is that has not its canonical form."""


def check_ids(shape: Any, plain: Any) -> None:
    """Raises Problem UZ-UUIDV7-009 when an id of a decoded body is spelled without its dashes."""
    find = _finder_of(shape)
    pointer = None if find is None else find(plain, "")
    if pointer is not None:
        raise Problem("UZ-UUIDV7-009", f"{pointer}: invalid UUID", facts={"pointer": pointer})


def has_ids(shape: Any) -> bool:
    return _finder_of(shape) is not None


def may_lack_dashes(body: bytes) -> bool:
    """Whether some text of it looks like an id without dashes, which msgspec takes for one."""
    return _BARE.search(body) is not None


def _finder_of(shape: Any) -> _Finder | None:
    return _finder(msgspec.inspect.type_info(shape))


def _finder(info: msgspec.inspect.Type) -> _Finder | None:
    match info:
        case msgspec.inspect.UUIDType():
            return lambda value, at: at if isinstance(value, str) and not CANONICAL.fullmatch(value) else None
        case msgspec.inspect.StructType(fields=fields):
            inner = {field.encode_name: find for field in fields if (find := _finder(field.type))}
            return partial(_find_in_object, inner) if inner else None
        case msgspec.inspect.CollectionType(item_type=item) | msgspec.inspect.VarTupleType(item_type=item):
            find = _finder(item)
            return None if find is None else partial(_find_in_list, find)
        case msgspec.inspect.UnionType(types=types):
            found = [find for one in types if (find := _finder(one))]
            return found[0] if found else None
        case msgspec.inspect.Metadata(type=inner_type):
            return _finder(inner_type)
        case _:
            return None


def _find_in_object(inner: dict[str, _Finder], value: Any, at: str) -> str | None:
    if not isinstance(value, dict):
        return None
    places = (find(value[name], f"{at}/{name}") for name, find in inner.items() if name in value)
    return next((place for place in places if place is not None), None)


def _find_in_list(find: _Finder, value: Any, at: str) -> str | None:
    if not isinstance(value, list):
        return None
    places = (find(item, f"{at}/{index}") for index, item in enumerate(value))
    return next((place for place in places if place is not None), None)
