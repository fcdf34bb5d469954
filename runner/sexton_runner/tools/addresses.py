"""Which hosts and addresses a run may reach."""

import ipaddress
from collections.abc import Sequence

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
# Not global, but not said to be private either: addresses of carriers and of benchmarks, and this network.
CLOSED = tuple(
    ipaddress.ip_network(text)
    for text in ("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "198.18.0.0/15", "fec0::/10", "64:ff9b:1::/48")
)

METADATA = tuple(
    ipaddress.ip_network(text)
    for text in (
        "168.63.129.16/32",
        "100.100.100.200/32",
        "192.0.0.192/32",
        "fd00:ec2::/32",
        "fd20:ce::254/128",
        "fd00:42::42/128",
    )
)
"""Where clouds tell a machine its secrets, beside the link-local addresses that most use.

Azure (a public one), Alibaba, Oracle, AWS, Google and Scaleway. The others are closed by their kind:
169.254.169.254 and its like (AWS, Google, Azure, DigitalOcean, Hetzner, OpenStack), 169.254.170.2 and .23
(AWS containers), 169.254.42.42 (Scaleway), 169.254.0.23 (Tencent), fe80::a9fe:a9fe (OpenStack).
"""

PRIVATE = tuple(
    ipaddress.ip_network(text)
    for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")
)
"""What an operator may let a name lead to."""


def host_allowed(host: str, allow: Sequence[str]) -> bool:
    """Hold a host name against ``network.allow``: a name, or ``*.`` and a name for all below it.

    >>> host_allowed("api.github.com", ["*.github.com"]), host_allowed("github.com", ["*.github.com"])
    (True, False)
    >>> host_allowed("evilgithub.com", ["*.github.com"]), host_allowed("API.github.com.", ["api.github.com"])
    (False, True)
    """
    name = host.lower().rstrip(".")
    for entry in allow:
        wanted = entry.lower().rstrip(".")
        if wanted.startswith("*."):
            if name.endswith(wanted[1:]) and len(name) > len(wanted) - 1:
                return True
        elif name == wanted:
            return True
    return False


def is_loopback(address: str) -> bool:
    """Tell whether what is sent there stays on this machine.

    >>> is_loopback("127.0.0.1"), is_loopback("93.184.215.14")
    (True, False)
    """
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback


def forbidden(address: str, *, allow_loopback: bool = False, allow_private: bool = False) -> str | None:
    """Say why an address must not be reached; None when it may.

    ``allow_private`` opens private networks, but none of the addresses at which clouds tell secrets.

    >>> forbidden("169.254.169.254"), forbidden("::ffff:10.0.0.1"), forbidden("93.184.215.14")
    ('a link-local address', 'a private address', None)
    >>> forbidden("10.0.0.1", allow_private=True), forbidden("fd00:ec2::254", allow_private=True)
    (None, "a cloud's own address")
    """
    try:
        found: Address = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return "not an address"
    for inner in _meanings(found):
        if allow_private and _lies_in(inner, PRIVATE) and not _lies_in(inner, METADATA):
            continue
        if why := _closed(inner, allow_loopback=allow_loopback):
            return why
    return None


def _meanings(address: Address) -> list[Address]:
    """Give the address and what is embedded in it: a tunnel's end is where the packets go."""
    found: list[Address] = [address]
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return [address.ipv4_mapped]
        if address in NAT64:  # What DNS64 gives on networks without IPv4.
            return [ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)]
        if address.sixtofour is not None:
            found.append(address.sixtofour)
        if address.teredo is not None:
            found += address.teredo
        if int(address) >> 32 == 0:
            found.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return found


def _closed(address: Address, *, allow_loopback: bool) -> str | None:
    if address.is_loopback:
        return None if allow_loopback else "a loopback address"
    checks = (
        (address.is_unspecified, "the unspecified address"),
        (address.is_link_local, "a link-local address"),
        (address.is_multicast, "a multicast address"),
        (address.is_reserved, "a reserved address"),
        (_lies_in(address, METADATA), "a cloud's own address"),
        (address.is_private, "a private address"),
        (_lies_in(address, CLOSED), "not a public address"),
        (not address.is_global, "not a public address"),
    )
    return next((why for true, why in checks if true), None)


def _lies_in(address: Address, networks: Sequence[ipaddress.IPv4Network | ipaddress.IPv6Network]) -> bool:
    return any(address.version == network.version and address in network for network in networks)
