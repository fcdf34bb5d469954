"""Where in a request a credential stands, as it is kept and as it is told."""

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Final

import msgspec

MAX_USES: Final = 8
NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9_.\[\]-]{0,63}\Z"


class Place(StrEnum):
    HEADER = "header"
    QUERY = "query"
    BASIC = "basic"
    """The password of basic authentication."""


class Use(msgspec.Struct, frozen=True, rename={"place": "in"}, forbid_unknown_fields=True):
    """One place where the proxy of a run swaps the credential's placeholder for the secret."""

    place: Place
    name: Annotated[str, msgspec.Meta(pattern=NAME)] | None = None
    """The header or the parameter; `authorization` where none is named. Not for `basic`."""


DEFAULT: Final = (Use(Place.HEADER, "authorization"), Use(Place.BASIC))
"""What most services take: a bearer token, or a token as the password, as git sends it."""


def problem(use: Use) -> str | None:
    """What is wrong with a use; None: nothing.

    >>> problem(Use(Place.QUERY)), problem(Use(Place.BASIC, "x")), problem(Use(Place.HEADER))
    ('a query parameter needs a name', 'basic authentication has no name', None)
    """
    if use.place is Place.QUERY and not use.name:
        return "a query parameter needs a name"
    if use.place is Place.BASIC and use.name:
        return "basic authentication has no name"
    if use.place is Place.HEADER and use.name and not re.fullmatch("[A-Za-z0-9][A-Za-z0-9_-]*", use.name):
        return "this is no name of a header"
    return None


def kept(uses: Sequence[Use]) -> tuple[str, ...]:
    """As a store keeps them; each once.

    >>> kept([Use(Place.HEADER, "X-Api-Key"), Use(Place.BASIC), Use(Place.HEADER)])
    ('header:x-api-key', 'basic', 'header:authorization')
    """
    return tuple(dict.fromkeys(map(_spelt, uses)))


def _spelt(use: Use) -> str:
    match use.place:
        case Place.HEADER:
            return f"header:{(use.name or 'authorization').lower()}"
        case Place.QUERY:
            return f"query:{use.name}"
        case Place.BASIC:
            return "basic"


def told(uses: Sequence[str]) -> tuple[Use, ...]:
    """What was kept; of one that names none, where most services look.

    >>> told(["query:key"]), told([]) == DEFAULT
    ((Use(place=<Place.QUERY: 'query'>, name='key'),), True)
    """
    return tuple(_read(text) for text in uses) or DEFAULT


def _read(text: str) -> Use:
    place, _, name = text.partition(":")
    return Use(Place(place), name or None)
