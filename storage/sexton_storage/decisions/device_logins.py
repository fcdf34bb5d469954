"""Whether a terminal may begin to wait for a token, and who gives way to it."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from sexton_storage.records.auth_sessions import ORIGIN_PARTS, SessionBounds, SessionsFull

RESERVE: Final = 4
"""A quarter of all sessions is kept for addresses that have none."""
WIDE: Final = ORIGIN_PARTS[0]
NETWORK: Final = WIDE + ORIGIN_PARTS[1]
"""The bytes of an origin that name its narrow network."""


def full(open_all: int, open_here: int, bounds: SessionBounds) -> SessionsFull | None:
    """What has no room for another session; None: there is room.

    ``open_here`` of ``open_all`` sessions that are open were begun from the address that asks.

    >>> bounds = SessionBounds(all=16, address=3)
    >>> full(11, 2, bounds) is None, full(3, 3, bounds)
    (True, <SessionsFull.ADDRESS: 'address'>)

    The last quarter is for those who have none: however few addresses have taken the rest, another gets in.

    >>> full(12, 1, bounds), full(12, 0, bounds) is None, full(16, 0, bounds)
    (<SessionsFull.ADDRESS: 'address'>, True, <SessionsFull.ALL: 'all'>)

    A bound too small to be divided is not: one place is everybody's.

    >>> full(0, 0, SessionBounds(all=1, address=1)) is None
    True
    """
    if open_all >= bounds.all:
        return SessionsFull.ALL
    in_reserve = open_all >= bounds.all - bounds.all // RESERVE
    return SessionsFull.ADDRESS if open_here >= (1 if in_reserve else bounds.address) else None


def may_displace(lacks: SessionsFull | None, open_here: int) -> bool:
    """Whether another may give way: where all is full, to an address that has none.

    >>> may_displace(SessionsFull.ALL, 0), may_displace(SessionsFull.ALL, 1), may_displace(None, 0)
    (True, False, False)
    """
    return lacks is SessionsFull.ALL and open_here == 0


def giving_way(pending: Mapping[bytes, int], origin: bytes) -> bytes | None:
    """The network whose oldest session that nobody has approved gives way to one from ``origin``.

    ``pending`` counts those sessions by the first ``NETWORK`` bytes of their origins. The wide network with
    the most gives way, and in it the narrow one with the most; but only to one that still has fewer
    afterwards, so that two never take turns in displacing each other. Then a flood from many addresses of one
    range displaces nobody else, and whoever signs in from another range displaces the flood.

    >>> flood, home, office = b"flood   a       ", b"flood   b       ", b"office  a       "
    >>> giving_way({flood: 9, home: 2, office: 1}, office)
    b'flood   a       '
    >>> giving_way({flood: 9, home: 2, office: 1}, home), giving_way({flood: 9, home: 2}, flood)
    (b'flood   a       ', None)

    Where nobody has much more than others, nobody gives way.

    >>> giving_way({flood: 2, office: 1}, office) is None, giving_way({}, office) is None
    (True, True)
    """
    wide = Counter[bytes]()
    for network, count in pending.items():
        wide[network[:WIDE]] += count
    mine = origin[:WIDE]
    busiest = max(wide, key=lambda one: (wide[one], one), default=mine)
    from_other_range = wide[busiest] > wide[mine] + 1
    within = busiest if from_other_range else mine
    had = 0 if from_other_range else pending.get(origin[:NETWORK], 0) + 1
    narrow = {network: count for network, count in pending.items() if network[:WIDE] == within}
    given = max(narrow, key=lambda one: (narrow[one], one), default=None)
    return given if given is not None and narrow[given] > had else None
