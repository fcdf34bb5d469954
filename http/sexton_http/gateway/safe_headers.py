"""The headers that keep an answer out of caches, out of guesses and out of referrers."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from sexton_http.answers import Headers

ALWAYS: Final[Headers] = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)
_STRICT: Final = b"strict-transport-security"


class Https(IntEnum):
    """How people reach this server; false where it is not over TLS."""

    NONE = 0
    OWN = 1
    """Other hosts below this name are not spoken for: they need not be ours."""
    SUBDOMAINS = 2
    """The operator says that all of them are reached over TLS."""


STRICT_TRANSPORT: Final[Mapping[Https, Headers]] = {
    Https.NONE: (),
    Https.OWN: ((_STRICT, b"max-age=31536000"),),
    Https.SUBDOMAINS: ((_STRICT, b"max-age=31536000; includeSubDomains"),),
}
"""For a year."""


def safe_headers(has: Headers, *, https: Https) -> Headers:
    """Give what is to be added to an answer's own headers; its own count.

    >>> safe_headers(((b"cache-control", b"public"), (b"referrer-policy", b"same-origin")), https=Https.NONE)
    ((b'x-content-type-options', b'nosniff'),)
    >>> safe_headers(ALWAYS, https=Https.OWN)
    ((b'strict-transport-security', b'max-age=31536000'),)
    """
    names = {name for name, _ in has}
    added = tuple(header for header in ALWAYS if header[0] not in names)
    return (*added, *STRICT_TRANSPORT[https])
