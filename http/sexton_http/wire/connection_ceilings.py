"""Decides which connections a server holds when it is offered more than it may."""

from enum import Enum
from typing import Final, NamedTuple

MAX_CONNECTIONS: Final = 16_384
"""All together, unless the server is told otherwise or may not open as many files."""
RESERVE: Final = 32
"""Connections beyond the ceiling, for whoever asks after the server's health."""
SHARE: Final = 2
"""One address holds at most all connections divided by this, unless the server is told otherwise."""


class Ceilings(NamedTuple):
    """How many connections there may be."""

    most: int = MAX_CONNECTIONS
    of_address: int = MAX_CONNECTIONS // SHARE
    reserve: int = RESERVE


class Full(Enum):
    """Which ceiling a newcomer meets."""

    NONE = "none"
    ADDRESS = "address"
    ALL = "all"


class Entry(Enum):
    """What becomes of a newcomer."""

    ROOM = "room"
    """It is taken like any other."""
    FOR_IDLE = "idle"
    """It is taken, and the connection that has been idle longest ends for it."""
    RESERVE = "reserve"
    """It may ask after health; all else is told 503."""
    FOR_RESERVED = "reserved"
    """The same, and the oldest connection of the reserve ends for it."""


def full(ceilings: Ceilings, taken: int, of_address: int) -> Full:
    """Which ceiling is reached: ``taken`` in all, ``of_address`` from the newcomer's address.

    >>> two = Ceilings(most=4, of_address=2)
    >>> [full(two, taken, mine).value for taken, mine in ((3, 1), (3, 2), (4, 1), (4, 2))]
    ['none', 'address', 'all', 'address']
    """
    if of_address >= ceilings.of_address:
        return Full.ADDRESS
    return Full.ALL if taken >= ceilings.most else Full.NONE


def decide(ceilings: Ceilings, met: Full, *, idle: bool, reserved: int) -> Entry:
    """What becomes of a newcomer who meets a ceiling.

    ``idle``: there is an idle connection under that ceiling; where it is an address's, one of that address.
    ``reserved``: how many connections the reserve holds.

    >>> one = Ceilings(reserve=1)
    >>> decide(one, Full.NONE, idle=False, reserved=1).value
    'room'
    >>> [decide(one, Full.ALL, idle=idle, reserved=0).value for idle in (True, False)]
    ['idle', 'reserve']
    >>> decide(one, Full.ADDRESS, idle=False, reserved=1).value
    'reserved'
    """
    if met is Full.NONE:
        return Entry.ROOM
    if idle:
        return Entry.FOR_IDLE
    return Entry.RESERVE if reserved < ceilings.reserve else Entry.FOR_RESERVED
