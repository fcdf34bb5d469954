"""Bounds what is under way at once, and divides it, so that no caller takes it from all others."""

from collections.abc import Hashable, Mapping
from enum import IntEnum, StrEnum
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final

import msgspec

PERCENT: Final = 100
HOST_BITS: Final = 64
REMEMBERED_CLAIMS: Final = 4_096
RANGES: Final = {4: (16, 24), 6: (32, 48)}
"""Bits of a wide and of a narrow network, by the version of IP."""


class Standing(IntEnum):
    """How late a caller is turned away. Each but the last leaves a part of every bound to those above it."""

    USER = 0
    """Strangers, senders of webhooks, agents' keys, and members with the role ``user``."""
    OPERATOR = 1
    ADMIN = 2
    """Admins, and runners, whose calls finish what was begun."""

    # An Enum's own is written in Python, and a place is looked up by these some twenty times a request.
    __hash__ = int.__hash__


class Bound(StrEnum):
    """What can be full for a caller."""

    ALL = "the server"
    ADDRESS = "the address"
    TENANT = "the tenant"
    PRINCIPAL = "the caller"

    __hash__ = str.__hash__


class Shares(msgspec.Struct, frozen=True):
    """How a ceiling is divided, in percent of the whole."""

    principal: int = 25
    tenant: int = 75
    address: int = 75
    reserve: int = 10
    """What each bound keeps from users for operators, and as much again from operators for admins."""


DEFAULT_BODY_MEMORY: Final = 64 * 1024 * 1024
DEFAULT_SHARES: Final = Shares()
UNDIVIDED: Final = Shares(principal=100, tenant=100, address=100, reserve=0)


class Claim(msgspec.Struct, frozen=True):
    """Who wants a place. What is not known, or does not count, is None."""

    address: str | None = None
    """As ``network_of`` gives it."""
    tenant: object = None
    principal: object = None
    """None also for admins, who may take as much as their tenant may."""
    standing: Standing = Standing.USER
    keys: tuple[tuple[Bound, object], ...] = ()
    """What a place of this caller is counted with, beside the whole; reckoned once."""

    def __post_init__(self) -> None:
        named = (
            (Bound.ADDRESS, self.address),
            (Bound.TENANT, self.tenant),
            (Bound.PRINCIPAL, self.principal),
        )
        keys = tuple([key for key in named if key[1] is not None])
        msgspec.structs.force_setattr(self, "keys", keys)


def network_of(address: str) -> str:
    """What belongs to one client: an IPv4 address, or the 64 bits of an IPv6 one behind which it may be any.

    >>> network_of("192.0.2.7"), network_of("2001:db8:1:2:3::4"), network_of("::ffff:192.0.2.7")
    ('192.0.2.7', '2001:db8:1:2::', '192.0.2.7')
    """
    if ":" not in address:
        return address
    try:
        whole = IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if whole.ipv4_mapped is not None:
        return str(whole.ipv4_mapped)
    return str(IPv6Address(int(whole) >> HOST_BITS << HOST_BITS))


@lru_cache(maxsize=REMEMBERED_CLAIMS)
def claim_of(
    address: str, tenant: Hashable = None, principal: Hashable = None, standing: Standing = Standing.USER
) -> Claim:
    """The claim of one who asks again and again, reckoned once. ``address``: as it stands in the head."""
    return Claim(network_of(address), tenant, principal, standing)


def networks_of(address: str) -> tuple[str, str, str]:
    """A wide network around an address, a narrow one, and what belongs to one client.

    They are what one provider, and one site, are commonly given: /16 and /24 of IPv4, /32 and /48 of IPv6.

    >>> networks_of("192.0.2.7"), networks_of("2001:db8:1:2:3::4")
    (('192.0.0.0/16', '192.0.2.0/24', '192.0.2.7'), ('2001:db8::/32', '2001:db8:1::/48', '2001:db8:1:2::'))
    >>> networks_of("unknown")
    ('unknown', 'unknown', 'unknown')
    """
    client = network_of(address)
    try:
        sizes = RANGES[ip_address(client).version]
    except ValueError:
        return client, client, client
    wide, narrow = (str(ip_network(f"{client}/{size}", strict=False)) for size in sizes)
    return wide, narrow, client


ANYBODY: Final = Claim(standing=Standing.ADMIN)
"""As long as nothing is known of a caller, he may be anybody."""
Held = Mapping[tuple[Bound, object], int]


def room(bound: Bound, standing: Standing, limit: int, shares: Shares) -> int:
    """How much of ``limit`` a caller of this standing may see taken within a bound.

    >>> [room(Bound.ALL, standing, 1000, Shares()) for standing in Standing]
    [800, 900, 1000]
    >>> (
    ...     room(Bound.TENANT, Standing.USER, 1000, Shares()),
    ...     room(Bound.PRINCIPAL, Standing.USER, 1000, Shares()),
    ... )
    (600, 250)

    A ceiling that is too small to be divided is not: one place is everybody's.

    >>> room(Bound.PRINCIPAL, Standing.USER, 1, Shares())
    1
    """
    percent = {
        Bound.ALL: PERCENT,
        Bound.ADDRESS: shares.address,
        Bound.TENANT: shares.tenant,
        Bound.PRINCIPAL: shares.principal,
    }[bound]
    share = limit * percent // PERCENT
    if bound is not Bound.PRINCIPAL:
        share -= share * shares.reserve * (Standing.ADMIN - standing) // PERCENT
    return max(share, min(limit, 1))


Rooms = Mapping[tuple[Bound, Standing], int]


def rooms(limit: int, shares: Shares) -> Rooms:
    """Every ``room`` of a ceiling, reckoned once."""
    return {
        (bound, standing): room(bound, standing, limit, shares) for bound in Bound for standing in Standing
    }


def full(claim: Claim, amount: int, taken: int, held: Held, there: Rooms) -> Bound | None:
    """The bound that has no room for ``amount`` more of this caller, the widest first; None: there is room.

    >>> there = rooms(100, Shares())
    >>> one, other = Claim("::1", tenant="t", principal="key"), Claim("::1", tenant="t", principal="other")
    >>> held = {(Bound.PRINCIPAL, "key"): 25}
    >>> full(one, 1, 25, held, there)
    <Bound.PRINCIPAL: 'the caller'>
    >>> full(other, 1, 25, held, there) is None
    True
    >>> full(one, 1, 80, {}, there)
    <Bound.ALL: 'the server'>
    >>> full(Claim("::1", tenant="t", standing=Standing.ADMIN), 1, 99, {}, there) is None
    True
    """
    if taken + amount > there[Bound.ALL, claim.standing]:
        return Bound.ALL
    for key in claim.keys:
        if held.get(key, 0) + amount > there[key[0], claim.standing]:
            return key[0]
    return None


class Full(Exception):
    """A bound has no room; nothing was counted."""

    def __init__(self, bound: Bound) -> None:
        super().__init__(f"{bound} holds as much as it may")
        self.bound = bound


class Ceiling:
    """How much of one kind may be under way at once: requests, streams, or bytes."""

    __slots__ = ("_held", "_rooms", "limit", "now")

    def __init__(self, limit: int, shares: Shares = UNDIVIDED) -> None:
        self.limit = limit
        self.now = 0
        self._rooms = rooms(limit, shares)
        self._held: dict[tuple[Bound, object], int] = {}

    def __repr__(self) -> str:
        return f"<Ceiling {self.now}/{self.limit}>"

    def enter(self, claim: Claim = ANYBODY, amount: int = 1) -> "Place":
        """Raises Full."""
        place = Place(self, claim)
        place.add(amount)
        return place

    def take(self, claim: Claim, amount: int) -> None:
        """Count it. Raises Full; then nothing is counted."""
        bound = full(claim, amount, self.now, self._held, self._rooms)
        if bound is not None:
            raise Full(bound)
        self._count(claim, amount)

    def give_back(self, claim: Claim, amount: int) -> None:
        self._count(claim, -amount)

    def _count(self, claim: Claim, amount: int) -> None:
        self.now += amount
        held = self._held
        for key in claim.keys:
            count = held.get(key, 0) + amount
            if count:
                held[key] = count
            else:
                del held[key]


class Place:
    """What one caller holds under a ceiling, until he leaves."""

    __slots__ = ("_amount", "_ceiling", "_claim")

    def __init__(self, ceiling: Ceiling, claim: Claim) -> None:
        self._ceiling = ceiling
        self._claim = claim
        self._amount = 0

    def add(self, amount: int) -> None:
        """Raises Full; what was held before still is."""
        self._ceiling.take(self._claim, amount)
        self._amount += amount

    def rename(self, claim: Claim) -> None:
        """Now it is known who it is. Raises Full; then nothing is held any more."""
        amount = self._amount
        self.leave()
        self._claim = claim
        self.add(amount)

    def leave(self) -> None:
        """Give it back; a second time does nothing."""
        amount, self._amount = self._amount, 0
        if amount:
            self._ceiling.give_back(self._claim, amount)
