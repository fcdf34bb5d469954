"""The headers that keep an answer out of caches, out of guesses and out of referrers."""

from typing import Final

from sexton_http.answers import Headers

ALWAYS: Final[Headers] = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)
STRICT_TRANSPORT: Final = (b"strict-transport-security", b"max-age=31536000")
"""A year. Other hosts below this name are not spoken for: they need not be ours."""


def safe_headers(has: Headers, *, https: bool) -> Headers:
    """Give what is to be added to an answer's own headers; its own count.

    >>> safe_headers(((b"cache-control", b"public"), (b"referrer-policy", b"same-origin")), https=False)
    ((b'x-content-type-options', b'nosniff'),)
    >>> safe_headers(ALWAYS, https=True)
    ((b'strict-transport-security', b'max-age=31536000'),)
    """
    names = {name for name, _ in has}
    added = tuple(header for header in ALWAYS if header[0] not in names)
    return (*added, STRICT_TRANSPORT) if https else added
