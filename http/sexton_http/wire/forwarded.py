"""Finds the client behind proxies: by what trusted ones say, and no one else."""

import ipaddress
import re
from collections.abc import Sequence
from typing import Any, Final

LISTED: Final = b"x-forwarded-for"
STANDARD: Final = b"forwarded"
_QUOTED: Final = re.compile(r'"(?:\\.|[^"\\])*"')
_ELEMENT: Final = re.compile(r'(?:[^,"]|"(?:\\.|[^"\\])*")+')
_FOR: Final = re.compile(r'(?:^|;)\s*for\s*=\s*("(?:\\.|[^"\\])*"|[^;\s]*)', re.IGNORECASE)

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def client_of(peer: str, forwarded: str, trusted: Sequence[Network]) -> str:
    """The address of the last one in the chain who is no proxy of ours.

    Each proxy appends whom it was called by, so what stands left of a stranger is the stranger's word.

    >>> ours = [ipaddress.ip_network("10.0.0.0/8")]
    >>> client_of("10.0.0.1", "1.1.1.1, 203.0.113.9, 10.0.0.2", ours)
    '203.0.113.9'
    >>> client_of("203.0.113.9", "1.1.1.1", ours), client_of("10.0.0.1", "nonsense", ours)
    ('203.0.113.9', '10.0.0.1')
    """
    return _last_stranger(peer, forwarded.split(","), trusted)


def _last_stranger(peer: str, words: Sequence[str], trusted: Sequence[Network]) -> str:
    found = peer
    for word in reversed(words):
        if not _is_trusted(found, trusted):
            break
        address = _read(word.strip())
        if address is None:
            break
        found = str(address)
    return found


def forwarded_scope(scope: dict[str, Any], trusted: Sequence[Network]) -> dict[str, Any]:
    """The scope with its client's own address, where a trusted proxy has told it."""
    client: tuple[str, int] | None = scope.get("client")
    if client is None:
        return scope
    listed, standard = _joined(scope, LISTED), _joined(scope, STANDARD)
    told = set()
    if listed:
        told.add(client_of(client[0], listed, trusted))
    if standard:
        told.add(_last_stranger(client[0], forwarded_for(standard), trusted))
    # A proxy writes one of the two and may pass the other on as it came. Where they differ, one of them is
    # the sender's own invention, and nobody knows which: the proxy's address is left.
    if len(told) != 1 or (address := told.pop()) == client[0]:
        return scope
    return {**scope, "client": (address, 0)}


def _joined(scope: dict[str, Any], header: bytes) -> str:
    return b",".join(value for name, value in scope["headers"] if name == header).decode("latin-1")


def forwarded_for(text: str) -> list[str]:
    """Whom each proxy was called by, as ``Forwarded`` has it (RFC 7239); empty where one does not say.

    >>> forwarded_for('for=192.0.2.43, for="[2001:db8::17]:4711";proto=https;by=203.0.113.43')
    ['192.0.2.43', '[2001:db8::17]:4711']
    >>> forwarded_for('For=_hidden, by=10.0.0.1, for="a,b"')
    ['_hidden', '', 'a,b']
    """
    if '"' in _QUOTED.sub("", text):
        return [""]  # A sender's quote without its end would swallow what the proxy wrote behind it.
    found = (_FOR.search(element.strip()) for element in _ELEMENT.findall(text))
    return ["" if match is None else match[1].strip('"') for match in found]


def read_networks(words: Sequence[str]) -> tuple[Network, ...]:
    """Addresses and networks as an operator writes them. Raises ValueError.

    >>> [str(network) for network in read_networks(["127.0.0.1", "10.0.0.0/8"])]
    ['127.0.0.1/32', '10.0.0.0/8']
    """
    return tuple(ipaddress.ip_network(word) for word in words)


def _is_trusted(text: str, trusted: Sequence[Network]) -> bool:
    address = _read(text)
    return address is not None and any(address in network for network in trusted)


def _read(word: str) -> Address | None:
    """An address, perhaps with a port; IPv4 in the form of IPv6 is IPv4."""
    bare = word[1:].partition("]")[0] if word.startswith("[") else word
    if bare.count(":") == 1:
        bare = bare.partition(":")[0]
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
