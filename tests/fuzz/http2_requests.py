"""A request of HTTP/2 as its frames say it, and whether anybody could take offence at it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from tests.worlds.http2_client import Field

_METHODS: Final = frozenset({b"GET", b"POST", b"HEAD", b"OPTIONS", b"PUT", b"PATCH", b"DELETE"})
_PSEUDO: Final = (b":method", b":scheme", b":path", b":authority")
_PLAIN: Final = {
    b":path": re.compile(rb"/[A-Za-z0-9/%?=&._~-]*"),
    b":authority": re.compile(rb"[A-Za-z0-9.-]+(:[0-9]{1,5})?"),
    b":scheme": re.compile(rb"https?"),
}
_NAME: Final = re.compile(rb"[a-z][a-z0-9-]*")
_VALUE: Final = re.compile(rb"([!-~]([ -~]*[!-~])?)?")
_HOP: Final = frozenset({b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"})


@dataclass
class Request:
    """A stream that the client began."""

    fields: list[Field]
    begins_at: int
    """The offset behind its head."""
    body: bytes = b""
    ended: bool = False
    size: int = 0
    """Bytes of its body, with all padding."""
    trailers: list[Field] = field(default_factory=list)
    is_cut: bool = False
    """A second head of it is not whole, or does not end it."""

    def is_plain(self) -> bool:
        """Nobody could take offence at it."""
        told = dict(self.fields)
        names = [name for name, _ in self.fields]
        if sorted(names[:4]) != sorted(_PSEUDO) or told[b":method"] not in _METHODS:
            return False
        if not all(pattern.fullmatch(told[name]) for name, pattern in _PLAIN.items()):
            return False
        if not _are_plain(self.fields[4:]) or self.is_spoilt():
            return False
        hosts = {value for name, value in self.fields if name == b"host"}
        return len(names) < 250 and hosts <= {told[b":authority"]}

    def is_spoilt(self) -> bool:
        """What came after its head may be wrong: an application may have been asked before that is known."""
        lengths = [value for name, value in self.fields if name == b"content-length"]
        return (
            self.is_cut
            or bool(lengths and lengths != [b"%d" % len(self.body)])
            or not _are_plain(self.trailers)
        )


def _are_plain(fields: list[Field]) -> bool:
    return all(
        _NAME.fullmatch(name)
        and _VALUE.fullmatch(value)
        and name not in _HOP
        and (name != b"te" or value == b"trailers")
        for name, value in fields
    )
