"""Reads a request of HTTP/1.1 that came whole and plain, without a parser; leaves all others to the parser.

Only for requests that are sent away. It reads a part of what the parser takes and nothing else: whatever
could be read in two ways is left to the parser. So both agree on where one request ends and the next begins.
"""

import re
from typing import Final

from sexton_http.answers import RequestHead
from sexton_http.wire.heads import is_host

MAX_HEAD: Final = 8 * 1024
MAX_LINES: Final = 64
MAX_DIGITS: Final = 9
_HEAD: Final = re.compile(
    rb"(GET|POST|PUT|PATCH|DELETE) (/[A-Za-z0-9._~!$&'()*+,;=:@/-]*+)"
    rb"(?:\?([A-Za-z0-9._~!$&'()*+,;=:@/?%-]*+))?"
    rb" HTTP/1\.1((?:\r\n[A-Za-z0-9!#$%&'*+.^_`|~-]++:[\t\x20-\x7e]*+)+)\r\n\r\n"
)
"""What follows a repetition never begins with what it repeats, so the time is linear in the length. A
possessive group of these matches nothing before Python 3.11.5. Escapes in the path do not match."""
_TELLING: Final = frozenset(
    (b"transfer-encoding", b"expect", b"upgrade", b"trailer", b"te", b"proxy-connection", b"keep-alive")
)
"""Headers that say how a request is sent, beyond its length."""


def whole_request(data: bytes, client: str, *, may_close: bool = False) -> RequestHead | None:
    r"""The head of the one request that these bytes are, to their last; None where the parser has to say.

    ``may_close``: also of one whose connection is to end with its answer.

    >>> whole_request(b"GET /a?b=c HTTP/1.1\r\nHost: x\r\nX-Y: z\r\n\r\n", "::1")  # doctest: +ELLIPSIS
    RequestHead(method='GET', path='/a', query=b'b=c', headers={b'host': b'x', b'x-y': b'z'}, client='::1'...)
    >>> begin = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: "
    >>> [whole_request(begin + rest, "") is None for rest in (b"1\r\n\r\na", b"1\r\n\r\n", b"1\r\n\r\nab")]
    [False, True, True]
    >>> whole_request(begin + b"1\r\ncontent-length: 1\r\n\r\na", "") is None
    True
    """
    found = _HEAD.match(data, 0, MAX_HEAD)
    if found is None:
        return None
    lines = found[4].split(b"\r\n")
    if len(lines) > MAX_LINES:
        return None
    headers: dict[bytes, bytes] = {}
    for line in lines[1:]:
        name, _, value = line.partition(b":")
        headers[name.lower()] = value.strip(b" \t")
    if len(headers) < len(lines) - 1 or not _TELLING.isdisjoint(headers):
        return None
    length = headers.get(b"content-length", b"0")
    if not length.isdigit() or len(length) > MAX_DIGITS or len(data) != found.end() + int(length):
        return None
    connection = headers.get(b"connection", b"keep-alive").lower()
    if connection != b"keep-alive" and not (may_close and connection == b"close"):
        return None
    host = headers.get(b"host")
    if host is None or not is_host(host):
        return None
    return RequestHead(found[1].decode(), found[2].decode(), found[3] or b"", headers, client)
