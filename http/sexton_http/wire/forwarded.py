"""Finds the client behind proxies: by what trusted ones say, and no one else."""

import ipaddress
from collections.abc import Sequence
from typing import Any, Final

HEADER: Final = b"x-forwarded-for"

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
    found = peer
    for word in reversed(forwarded.split(",")):
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
    values = [value for name, value in scope["headers"] if name == HEADER]
    if client is None or not values:
        return scope
    address = client_of(client[0], b",".join(values).decode("latin-1"), trusted)
    return scope if address == client[0] else {**scope, "client": (address, 0)}


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
