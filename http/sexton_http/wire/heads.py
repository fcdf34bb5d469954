"""Judges the head of a request: how large it may be, and what it must say in one way only."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

MAX_HEAD_BYTES: Final = 64 * 1024
"""The bound of the request line and all headers, line ends included."""
MAX_HEADERS: Final = 256
REMEMBERED_HOSTS: Final = 64
"""A server is called by few names; one that is remembered need not be judged again."""

_HOST: Final = re.compile(
    rb"(?:\[[0-9A-Fa-fvV:.]{2,}[A-Za-z0-9._~%-]*\]|(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)(?::[0-9]{0,5})?"
)
"""RFC 9110, 7.2: a host and a port; neither user nor path, and no blank."""


def check_head(method: bytes, target: bytes, version: str, headers: Sequence[tuple[bytes, bytes]]) -> str:
    """What is wrong with a head; empty when nothing is. The same for whoever read it, of HTTP/1 and HTTP/2.

    HTTP/2 has no ``Host`` of its own: its ``:authority`` stands for it.

    >>> check_head(b"GET", b"/", "1.1", [(b"host", b"x:80")])
    ''
    >>> check_head(b"GET", b"/", "1.1", [])
    'one Host header is needed, in HTTP/1.1 or HTTP/1.0'
    >>> check_head(b"GET", b"/", "2", [(b"host", b"x"), (b"host", b"y")])
    'one host is needed, as :authority or as Host'
    >>> check_head(b"POST", b"/", "1.1", [(b"host", b"x"), (b"transfer-encoding", b"gzip, chunked")])
    'the only Transfer-Encoding is chunked, said once, in HTTP/1.1'
    """
    hosts: list[bytes] = []
    codings: list[bytes] = []
    size = len(method) + len(target) + 12
    for name, value in headers:
        size += len(name) + len(value) + 4
        if name == b"host":
            hosts.append(value)
        elif name == b"transfer-encoding":
            codings.append(value.strip().lower())
    return judge(target, version, size=size, count=len(headers), hosts=hosts, codings=codings)


def judge(
    target: bytes, version: str, *, size: int, count: int, hosts: Sequence[bytes], codings: Sequence[bytes]
) -> str:
    """The same of a head that has been looked through: its size, headers, hosts and transfer codings."""
    if size > MAX_HEAD_BYTES:
        return f"the head is over {MAX_HEAD_BYTES} bytes"
    if version == "2" and len(hosts) != 1:
        return "one host is needed, as :authority or as Host"
    if version not in {"1.0", "1.1", "2"} or (len(hosts) != 1 and version == "1.1") or len(hosts) > 1:
        return "one Host header is needed, in HTTP/1.1 or HTTP/1.0"
    if not all(map(is_host, hosts)):
        return "the Host header is to be a name or an address, and a port if need be"
    if count > MAX_HEADERS or not target.isascii():
        return f"the address is to be ASCII, and the headers {MAX_HEADERS} at most"
    if codings and (tuple(codings) != (b"chunked",) or version != "1.1"):
        # Whoever took another coding for none would read past the end of the body.
        return "the only Transfer-Encoding is chunked, said once, in HTTP/1.1"
    return ""


@lru_cache(maxsize=REMEMBERED_HOSTS)
def is_host(value: bytes) -> bool:
    """Whether it is a host, with a port or without one; empty where an address has none.

    >>> [is_host(host) for host in (b"example.com:8080", b"[::1]:80", b"")]
    [True, True, True]
    >>> any(is_host(host) for host in (b"a b", b"a/b", b"u@h", b"x:y", b"[::1"))
    False
    """
    return _HOST.fullmatch(value) is not None
