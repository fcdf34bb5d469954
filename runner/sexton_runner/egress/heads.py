"""Holds the heads of requests to one strict reading, before and after the parser."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus

from sexton_runner.egress.hosts import DEFAULT_PORTS, read_authority, read_host
from sexton_runner.egress.paths import without_dots
from sexton_runner.egress.refusals import Refusal
from sexton_runner.egress.seen import Reason

MAX_HEAD_BYTES = 1 << 16
MAX_HEADERS = 100
Headers = list[tuple[bytes, bytes]]

END_OF_HEAD = b"\r\n\r\n"
_LONE_LINE_END = re.compile(rb"(?<!\r)\n|\r(?!\n)")
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_FOLD = re.compile(rb"\r\n[ \t]")
_VERSION = re.compile(rb" HTTP/1\.[01]")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):")
_FRAMING = (b"content-length", b"transfer-encoding", b"host")
_ABSOLUTE = re.compile(r"(?i:(https?)://)([^/?#]*)([^#]*)")
# They belong to one connection, not to the request.
OF_ONE_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
        b"expect",
    }
)
# A ``Connection`` header cannot name these away: they say how long the message is and whom it is for.
_KEPT = frozenset({b"host", b"content-length", b"content-type"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Whom a request is for: scheme, host and port in their one spelling."""

    scheme: str
    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a request is for. ``raw_path`` is as it came, ``path`` has no plain dots, neither has a query."""

    origin: Origin
    raw_path: str
    path: str
    query: str | None


class BadTarget(ValueError):
    """The target of a request cannot be read, or is not for here."""


def judge_head(head: bytes) -> Refusal | None:
    r"""Refuse a request's head, up to its empty line, that two servers could read differently.

    >>> judge_head(b"GET / HTTP/1.1\r\nHost: a.org\r\n\r\n")
    >>> judge_head(b"GET / HTTP/1.1\r\nHost: a.org\r\nHost: b.org\r\n\r\n").why
    'the request has two headers Host'
    >>> judge_head(b"GET / HTTP/1.1\nHost: a.org\r\n\r\n").why
    'a line of the head ends with half a line end'
    """
    if head.startswith(b"PRI * HTTP/2.0"):
        return Refusal(
            status=HTTPStatus.HTTP_VERSION_NOT_SUPPORTED,
            reason=Reason.HEAD,
            why="HTTP/2 is not spoken here",
            advice="Use HTTP/1.1",
        )
    if _LONE_LINE_END.search(head):
        return _smuggled("a line of the head ends with half a line end")
    if _CONTROL.search(head):
        return _smuggled("the head holds control characters")
    if _FOLD.search(head):
        return _smuggled("a header goes on in a second line")
    first, *lines = head.removesuffix(END_OF_HEAD).split(b"\r\n")
    if first.count(b" ") != 2 or not _VERSION.fullmatch(first[-9:]):  # noqa: PLR2004
        return _smuggled("the first line is not of the form METHOD TARGET HTTP/1.1")
    if len(lines) > MAX_HEADERS:
        return too_large(f"the head has more than {MAX_HEADERS} headers")
    names = []
    for line in lines:
        field = _FIELD.match(line)
        if field is None:
            return _smuggled("a header has no proper name")
        names.append(field[1].lower())
    for name in _FRAMING:
        if names.count(name) > 1:
            return _smuggled(f"the request has two headers {name.decode().title()}")
    if b"content-length" in names and b"transfer-encoding" in names:
        return _smuggled("the request has both Content-Length and Transfer-Encoding")
    if b"transfer-encoding" in names and first.endswith(b"HTTP/1.0"):
        return _smuggled("HTTP/1.0 has no Transfer-Encoding")
    return None


def too_large(why: str) -> Refusal:
    """Refuse a head for its size."""
    return Refusal(
        status=HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
        reason=Reason.HEAD,
        why=why,
        advice="Send a smaller head",
    )


def read_target(text: str, within: Origin | None) -> Target:
    """Read the target of a request to a proxy, or of one within a tunnel. Raises ``BadTarget``.

    >>> read_target("http://a.org/x/../y?q=1", None)
    Target(origin=Origin(scheme='http', host='a.org', port=80), raw_path='/x/../y', path='/y', query='q=1')
    """
    absolute = _ABSOLUTE.fullmatch(text)
    if absolute:
        scheme = absolute[1].lower()
        try:
            host, port = read_authority(absolute[2], DEFAULT_PORTS[scheme])
        except ValueError as fault:
            raise BadTarget(str(fault)) from fault
        origin, rest = Origin(scheme=scheme, host=host, port=port), absolute[3]
        if within not in (None, origin):
            raise BadTarget("the request names another host than its tunnel")
        if within is None and scheme == "https":
            raise BadTarget("a proxy is asked for https by CONNECT")
    elif within is None:
        raise BadTarget("a proxy is asked with the whole URL, or by CONNECT")
    elif text.startswith("/") or text == "*":
        origin, rest = within, text
    else:
        raise BadTarget("the target of the request cannot be read")
    if "#" in rest:
        raise BadTarget("the target of the request has a fragment")
    path, mark, query = rest.partition("?")
    path = path or "/"
    return Target(
        origin=origin,
        raw_path=path,
        path=path if path == "*" else without_dots(path),
        query=query if mark else None,
    )


def is_host(value: bytes, origin: Origin) -> bool:
    """Tell whether a ``Host`` header names this origin.

    >>> is_host(b"A.org:443", Origin(scheme="https", host="a.org", port=443))
    True
    """
    try:
        found = read_authority(value.decode("ascii"), DEFAULT_PORTS[origin.scheme])
    except ValueError:
        return False
    return found == (origin.host, origin.port)


def end_to_end(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Leave out what belongs to the connection that the message came on.

    >>> end_to_end([(b"Connection", b"x-a, close"), (b"X-A", b"1"), (b"X-B", b"2")])
    [(b'X-B', b'2')]
    """
    found = list(headers)
    named = {
        token.strip().lower()
        for name, value in found
        if name.lower() == b"connection"
        for token in value.split(b",")
    }
    dropped = OF_ONE_HOP | (named - _KEPT)
    return [(name, value) for name, value in found if name.lower() not in dropped]


def judge_upgrade(headers: Iterable[tuple[bytes, bytes]]) -> Refusal | None:
    """Refuse to leave HTTP where requests are read; the offer of HTTP/2 is passed over, as it may be.

    >>> judge_upgrade([(b"upgrade", b"h2c")])
    >>> judge_upgrade([(b"upgrade", b"websocket")]).reason
    <Reason.UPGRADE: 'upgrade'>
    """
    offers = [value.strip().lower() for name, value in headers if name.lower() == b"upgrade"]
    if all(offer == b"h2c" for offer in offers):
        return None
    return Refusal(
        reason=Reason.UPGRADE,
        why="a connection cannot be upgraded where the proxy reads its requests",
        advice="WebSocket goes by CONNECT to a host without credentials and without rules on requests",
    )


def read_tunnel(text: str) -> tuple[str, int]:
    """Read the target of CONNECT. Raises ``BadTarget``."""
    try:
        return read_authority(text)
    except ValueError as fault:
        raise BadTarget(str(fault)) from fault


def same_name(server_name: str, host: str) -> bool:
    """Tell whether the name of a ClientHello is the tunnel's host.

    >>> same_name("A.org", "a.org"), same_name("b.org", "a.org")
    (True, False)
    """
    try:
        return read_host(server_name) == host
    except ValueError:
        return False


def _smuggled(why: str) -> Refusal:
    return Refusal(
        status=HTTPStatus.BAD_REQUEST,
        reason=Reason.SMUGGLING,
        why=why,
        advice="Send a plain request of HTTP/1.1",
    )
