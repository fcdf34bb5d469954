"""Sees to it that the server may open enough files: each connection is one."""

import resource
import sys
from typing import Final

import structlog

from sexton_http.wire.connection_ceilings import RESERVE, SHARE, Ceilings
from sexton_http.wire.forwarded import Network
from sexton_http.wire.newcomers import ROOM, ROOM_SHARE, newcomers_within
from sexton_http.wire.open_connections import OpenConnections

OWN: Final = 96
"""Files that the server needs beside its connections: the database's, the log, what it asks of others."""

log = structlog.get_logger()


def raise_limit() -> int:
    """Raise the soft limit on open files to the hard one; the limit that holds then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):
            hard = soft  # Some systems have a lower bound of their own; what there is has to do.
    return sys.maxsize if hard == resource.RLIM_INFINITY else hard


def room(limit: int) -> int:
    """How many connections fit under a limit on open files, beside newcomers, the reserve and its own.

    >>> [room(limit) for limit in (20_000, 1024, 200)]
    [18848, 832, 100]
    """
    return max(limit - OWN - RESERVE - newcomers_within(limit), limit // 2)


def needed(most: int) -> int:
    """The limit on open files under which that number of connections fits.

    >>> [room(needed(most)) - most for most in (896, 16_384, 100_000)]
    [1, 0, 0]
    """
    own = most + OWN + RESERVE
    return min(own * ROOM_SHARE // (ROOM_SHARE - 1) + 1, own + ROOM)


def ceilings_under(limit: int, most: int, of_address: int | None) -> Ceilings:
    """What a server may hold that was told ``most`` in all and ``of_address``, or nothing, from one address.

    >>> ceilings_under(20_000, 16_384, None)
    Ceilings(most=16384, of_address=8192, reserve=32)
    >>> ceilings_under(1024, 16_384, None)
    Ceilings(most=832, of_address=416, reserve=32)
    """
    held = min(most, room(limit))
    return Ceilings(held, max(1, held // SHARE) if of_address is None else of_address)


def warn(limit: int, most: int) -> None:
    """Tell the operator when fewer connections fit than the server was to hold."""
    if room(limit) < most:
        advice = f"raise the hard limit on open files to {needed(most)}, or lower --max-connections"
        log.warning("open_files_too_few", limit=limit, connections=room(limit), wanted=most, advice=advice)


def connections_within(most: int, of_address: int | None, uncounted: tuple[Network, ...]) -> OpenConnections:
    """The connections of a server that is told so; raises the limit on open files for them."""
    limit = raise_limit()
    warn(limit, most)
    return OpenConnections(ceilings_under(limit, most, of_address), uncounted)
