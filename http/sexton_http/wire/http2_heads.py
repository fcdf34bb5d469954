"""Reads the fields of an HTTP/2 request as the head of one of HTTP/1.1, and judges it by the same rules."""

from collections.abc import Iterable
from http import HTTPMethod
from typing import Final, NamedTuple
from urllib.parse import unquote

from sexton_http.wire.asgi import Header
from sexton_http.wire.heads import check_head

_METHODS: Final = {method.value.encode(): method.value for method in HTTPMethod}


class Head(NamedTuple):
    """A request as far as its head tells."""

    method: str
    target: bytes
    headers: list[Header]
    size: int
    """The bytes of all its fields, names included."""
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


def read_head(fields: Iterable[Header]) -> Head:
    """What libnghttp2 leaves to its users is looked at here; it has refused fields that HTTP/2 forbids.

    >>> head = read_head([(b":method", b"GET"), (b":path", b"/a"), (b":authority", b"x")])
    >>> head.method, head.target, head.headers, head.fault
    ('GET', b'/a', [(b'host', b'x')], '')
    >>> read_head([(b":method", b"FOO"), (b":path", b"/a"), (b":authority", b"x")]).fault
    'there is no such method'
    """
    method, target, authority = b"", b"", b""
    headers: list[Header] = [(b"host", b"")]
    size, declared, awaits_go, named = 0, 0, False, False
    for name, value in fields:
        size += len(name) + len(value)
        if not name.startswith(b":"):
            if name == b"host":
                # Where both are sent they say the same, or nobody knows which is meant.
                if named or (authority and value != authority):
                    headers.append((name, value))
                authority, named = authority or value, True
                continue
            if name == b"content-length":
                declared = int(value) if value.isdigit() else 0
            elif name == b"expect":
                awaits_go = value.lower() == b"100-continue"
            headers.append((name, value))
        elif name == b":method":
            method = value
        elif name == b":path":
            target = value
        elif name == b":authority":
            authority = value
    headers[0] = (b"host", authority)
    spelled = _METHODS.get(method, "")
    fault = "" if spelled else "there is no such method"
    if not fault and not (target.startswith(b"/") or (target == b"*" and method == b"OPTIONS")):
        fault = "the address is to begin with a slash"
    fault = fault or check_head(method, target, "2", headers)
    return Head(spelled, target, headers, size, declared, awaits_go, fault)
