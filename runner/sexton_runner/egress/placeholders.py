"""Swaps placeholders for their secrets, in requests to their own hosts."""

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote_plus

from sexton_runner.egress.heads import Headers
from sexton_runner.egress.policy import Binding, Place

_SENDABLE = re.compile(r"[^\x00-\x1f\x7f]+")


class NotSendable(ValueError):
    """The secret cannot stand in a header."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """A request with its secrets in. ``names`` are those of the bindings that were used."""

    headers: Headers
    query: str | None
    names: frozenset[str]


def fill(bindings: Sequence[Binding], headers: Headers, query: str | None) -> Filled:
    """Swap the placeholders of these bindings, each in its own place only. Raises ``NotSendable``.

    >>> one = Binding(name="gh", placeholder="sxt_1", secret="s3cret", hosts=("a.org",))
    >>> fill([one], [(b"Authorization", b"Bearer sxt_1"), (b"X-Other", b"sxt_1")], "q=sxt_1").headers
    [(b'Authorization', b'Bearer s3cret'), (b'X-Other', b'sxt_1')]
    """
    used: set[str] = set()
    for binding in bindings:
        before = headers, query
        match binding.place:
            case Place.HEADER:
                headers = [_in_header(binding, name, value) for name, value in headers]
            case Place.BASIC:
                headers = [_in_basic(binding, name, value) for name, value in headers]
            case Place.QUERY:
                query = query and _in_query(binding, query)
        if (headers, query) != before:
            used.add(binding.name)
    return Filled(headers=headers, query=query, names=frozenset(used))


def _in_header(binding: Binding, name: bytes, value: bytes) -> tuple[bytes, bytes]:
    placeholder = binding.placeholder.encode()
    if name.lower() != binding.field.lower().encode() or placeholder not in value:
        return name, value
    return name, value.replace(placeholder, _sendable(binding).encode())


def _in_basic(binding: Binding, name: bytes, value: bytes) -> tuple[bytes, bytes]:
    """Swap the password, if the placeholder is all of it."""
    scheme, _, coded = value.partition(b" ")
    if name.lower() != b"authorization" or scheme.lower() != b"basic":
        return name, value
    try:
        user, colon, password = base64.b64decode(coded.strip(), validate=True).partition(b":")
    except binascii.Error:
        return name, value
    if password != binding.placeholder.encode():
        return name, value
    return name, b"Basic " + base64.b64encode(user + colon + binding.secret.encode())


def _in_query(binding: Binding, query: str) -> str:
    parts = query.split("&")
    for place, part in enumerate(parts):
        name, equals, value = part.partition("=")
        if equals and unquote_plus(name) == binding.field and binding.placeholder in value:
            filled = value.replace(binding.placeholder, quote(binding.secret, safe=""))
            parts[place] = f"{name}={filled}"
    return "&".join(parts)


def _sendable(binding: Binding) -> str:
    # A line end in it would begin another header.
    if not _SENDABLE.fullmatch(binding.secret) or binding.secret != binding.secret.strip():
        raise NotSendable(f"the credential {binding.name} holds what no header can hold")
    return binding.secret
