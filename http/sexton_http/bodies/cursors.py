"""Opaque cursors: a place in a listing, bound to the filters that it was made with."""

import base64
import binascii
import hashlib
from typing import Annotated, Any, TypeVar
from uuid import UUID

import msgspec

from sexton_http.answers import Problem
from sexton_storage.paging import Page

Moment = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""Ms; whoever makes a cursor of his own is not to reach beyond what a column holds."""


class Place(msgspec.Struct, frozen=True, array_like=True):
    """After which row to go on; ``since`` travels along, since it may not be given beside a cursor."""

    created_at: Moment
    id: UUID
    filters: str
    since: Moment | None = None

    @property
    def page(self) -> Page:
        return Page(self.created_at, self.id)


class SearchPlace(Place, frozen=True, array_like=True):
    """The same in what a filter picks: its durations count back from when the first page was asked for."""

    asked_at: Moment = 0


class NamedPlace(msgspec.Struct, frozen=True, array_like=True):
    """After which row of a list by name to go on."""

    name: Annotated[str, msgspec.Meta(pattern=r"^[!-~]{1,64}$")]
    filters: str


class EntryCursor(msgspec.Struct, frozen=True, array_like=True):
    """After which entry of a transcript to go on."""

    attempt: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
    number: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
    filters: str


class Numbered(msgspec.Struct, frozen=True, array_like=True):
    """Before which line of a log to go on."""

    number: Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
    filters: str


P = TypeVar("P", Place, SearchPlace, NamedPlace, EntryCursor, Numbered)


def fingerprint(*filters: Any) -> str:
    """Short for a set of filters; not a secret, only a check against mistakes."""
    return hashlib.sha256(repr(filters).encode()).hexdigest()[:16]


def encode(place: Place | NamedPlace | EntryCursor | Numbered) -> str:
    """Base64url without padding."""
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).rstrip(b"=").decode()


def decode(text: str, filters: str) -> Place:
    """Raises Problem UZ-REQ-001 for a cursor that is malformed, or was made with other filters."""
    return _decode(text, filters, Place)


def decode_search(text: str, filters: str) -> SearchPlace:
    """The same for what a filter picks."""
    return _decode(text, filters, SearchPlace)


def decode_name(text: str, filters: str) -> NamedPlace:
    """The same for a list by name."""
    return _decode(text, filters, NamedPlace)


def decode_entry(text: str, filters: str) -> EntryCursor:
    """The same for a transcript."""
    return _decode(text, filters, EntryCursor)


def decode_numbered(text: str, filters: str) -> Numbered:
    """The same for a log."""
    return _decode(text, filters, Numbered)


def _decode(text: str, filters: str, shape: type[P]) -> P:
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        place = msgspec.json.decode(raw, type=shape)
    except (binascii.Error, ValueError, msgspec.DecodeError, RecursionError) as fault:
        raise Problem("UZ-REQ-001", "cursor: not from this listing; start again without it") from fault
    if encode(place) != text:  # Padded, longer, or otherwise spelled: it was made by somebody else.
        raise Problem("UZ-REQ-001", "cursor: not from this listing; start again without it")
    if place.filters != filters:
        raise Problem("UZ-REQ-001", "cursor: made with other filters; start again without it")
    return place
