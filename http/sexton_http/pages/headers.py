"""The headers of every page for people, which keep strangers out of it."""

from typing import Final

from sexton_http.answers import Headers

POLICY: Final = (
    b"default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; "
    b"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final[Headers] = (
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-security-policy", POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    # Not "no-referrer": a form of such a page would be sent with the origin "null".
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
