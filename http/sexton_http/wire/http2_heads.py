"""Reads the fields of an HTTP/2 request as the head of one of HTTP/1.1, and judges it by the same rules."""

from collections.abc import Sequence
from http import HTTPMethod
from itertools import chain
from typing import Final, NamedTuple
from urllib.parse import unquote

from sexton_http.wire.asgi import Header
from sexton_http.wire.heads import judge

_PSEUDO: Final = (b":method", b":scheme", b":authority", b":path")
_LINE_BYTES, _HEADER_BYTES = 12, 4
"""What HTTP/1.1 would write between them."""
_METHODS: Final = {method.value.encode(): method.value for method in HTTPMethod}


class Head(NamedTuple):
    """A request as far as its head tells."""

    method: str
    target: bytes
    headers: list[Header]
    size: int
    """The bytes of its headers, method and address."""
    declared: int
    """How long it says that its body is, if it does."""
    awaits_go: bool
    """It waits for ``100 Continue`` before it sends its body."""
    fault: str
    """What is wrong with it; empty when nothing is."""

    @property
    def path(self) -> str:
        raw = self.target.partition(b"?")[0].decode("ascii", "replace")
        return unquote(raw) if "%" in raw else raw


def read_head(fields: Sequence[Header]) -> Head:
    """What libnghttp2 leaves to its users is looked at here; it has refused fields that HTTP/2 forbids.

    >>> head = read_head([(b":method", b"GET"), (b":path", b"/a"), (b":authority", b"x")])
    >>> head.method, head.target, head.headers, head.fault
    ('GET', b'/a', [(b'host', b'x')], '')
    >>> read_head([(b":method", b"FOO"), (b":path", b"/a"), (b":authority", b"x")]).fault
    'there is no such method'
    """
    told = dict(fields)
    method, target = told.get(b":method", b""), told.get(b":path", b"")
    authority = told.get(b":authority", b"")
    # libnghttp2 takes these only before all others, and each of them once: with the fourth, all are here.
    all_four = len(fields) >= len(_PSEUDO) and fields[len(_PSEUDO) - 1][0] in _PSEUDO
    begin = len(_PSEUDO) if all_four else sum(map(told.__contains__, _PSEUDO))
    if b"host" in told:
        headers = _with_hosts(authority, fields[begin:])
        hosts = [value for name, value in headers if name == b"host"]
    else:
        headers, hosts = [(b"host", authority), *fields[begin:]], [authority]
    size = len(b"".join(chain.from_iterable(headers))) + len(method) + len(target)
    spelled = _METHODS.get(method, "")
    fault = "" if spelled else "there is no such method"
    if not fault and not (target.startswith(b"/") or (target == b"*" and method == b"OPTIONS")):
        fault = "the address is to begin with a slash"
    if not fault:
        in_all = size + _LINE_BYTES + _HEADER_BYTES * len(headers)
        codings = (told[b"transfer-encoding"],) if b"transfer-encoding" in told else ()
        fault = judge(target, "2", size=in_all, count=len(headers), hosts=hosts, codings=codings)
    length = told.get(b"content-length")
    declared = int(length) if length is not None and length.isdigit() else 0
    awaits_go = b"expect" in told and told[b"expect"].lower() == b"100-continue"
    return Head(spelled, target, headers, size, declared, awaits_go, fault)


def _with_hosts(authority: bytes, fields: Sequence[Header]) -> list[Header]:
    """The headers with one Host; more where they differ, so that the head is refused.

    >>> _with_hosts(b"x", [(b"host", b"x"), (b"a", b"1")])
    [(b'host', b'x'), (b'a', b'1')]
    >>> _with_hosts(b"x", [(b"host", b"y")])
    [(b'host', b'x'), (b'host', b'y')]
    >>> _with_hosts(b"", [(b"host", b"y"), (b"host", b"y")])
    [(b'host', b'y'), (b'host', b'y')]
    """
    hosts = [value for name, value in fields if name == b"host"]
    rest = [field for field in fields if field[0] != b"host"]
    # Where both are sent they say the same, or nobody knows which is meant.
    kept = authority or hosts[0]
    more = hosts[1:] if hosts[0] == kept else hosts
    return [(b"host", kept), *((b"host", value) for value in more), *rest]
