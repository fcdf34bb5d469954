"""Whether a terminal may begin to wait for a token."""

from typing import Final

from sexton_storage.records.auth_sessions import SessionBounds, SessionsFull

RESERVE: Final = 4
"""A quarter of all sessions is kept for addresses that have none."""


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
