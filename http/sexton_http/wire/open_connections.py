"""Knows the open connections of a server: who may come in, who waits too long, who has to make room."""

import heapq
import ipaddress
import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

import trio

from sexton_http.wire import timeouts
from sexton_http.wire.connection_ceilings import Ceilings, Entry, Full, decide, full
from sexton_http.wire.forwarded import Network
from sexton_http.wire.unread_answers import UnreadAnswers

LOOKED_FOR: Final = 256
"""Idle connections are found by the hundred, so that a flood does not have all looked through each time."""
LOOK_S: Final = 0.25
"""How often all are looked through at most."""
ADDRESSES: Final = 64
"""What was found is remembered for this many addresses."""
IPV6_HOME: Final = 64
"""Bits of an IPv6 address that one household or machine has for itself."""


class Watched(Protocol):
    """A connection, as far as its time is concerned."""

    def due(self) -> float:
        """Until when it may wait for its client; ``math.inf`` while the client waits for us."""
        ...

    def idle_since(self) -> float:
        """Since when no request is under way, nor any byte of one; ``math.inf`` while one is."""
        ...

    def cut(self) -> None:
        """End it."""
        ...

    def close_if_idle(self) -> None:
        """End it if no request is under way."""
        ...


class Place:
    """A connection's place, from its accept to its end."""

    __slots__ = ("address", "reserved_until", "watched")

    def __init__(self, address: str) -> None:
        self.address = address
        self.reserved_until = math.inf
        """When a connection of the reserve ends, whatever it does."""
        self.watched: Watched | None = None

    @property
    def is_reserved(self) -> bool:
        return self.reserved_until < math.inf

    @contextmanager
    def watching(self, connection: Watched) -> Iterator[None]:
        """Have this part of the connection's life watched: its handshake, or what it speaks after that."""
        self.watched = connection
        try:
            yield
        finally:
            self.watched = None

    def due(self) -> float:
        return math.inf if self.watched is None else min(self.watched.due(), self.reserved_until)

    def idle_since(self) -> float:
        return math.inf if self.watched is None else self.watched.idle_since()


class OpenConnections:
    """All connections of one server, those in their TLS handshake included."""

    def __init__(self, ceilings: Ceilings | None = None, uncounted: tuple[Network, ...] = ()) -> None:
        """``uncounted``: proxies, behind whose addresses many clients are."""
        self.ceilings = ceilings or Ceilings()
        self.unread = UnreadAnswers()
        self._uncounted = uncounted
        self._taken: dict[Place, None] = {}
        self._reserve: dict[Place, None] = {}
        self._of_address: Counter[str] = Counter()
        self._idle: dict[str | None, list[Place]] = {}
        """Those found idle, the longest last; by address, and of all."""
        self._look_at: dict[str | None, float] = {}
        """When it is worth the while to look again."""

    def __repr__(self) -> str:
        return f"<OpenConnections {len(self._taken)}, {len(self._reserve)} in reserve>"

    @property
    def taken(self) -> int:
        return len(self._taken)

    @property
    def reserved(self) -> int:
        return len(self._reserve)

    def enter(self, host: str) -> Place:
        """Give a newcomer a place; another connection may have to end for it."""
        place = Place(self._address(host))
        met = full(self.ceilings, len(self._taken), self._of_address[place.address] if place.address else 0)
        idle = None
        if met is not Full.NONE:
            idle = self._longest_idle(place.address if met is Full.ADDRESS else None)
        entry = decide(self.ceilings, met, idle=idle is not None, reserved=len(self._reserve))
        if idle is not None and idle.watched is not None:
            self.leave(idle)
            idle.watched.close_if_idle()
        if entry is Entry.FOR_RESERVED:
            self._end_oldest_reserved()
        if entry in {Entry.ROOM, Entry.FOR_IDLE}:
            self._taken[place] = None
            if place.address:
                self._of_address[place.address] += 1
        else:
            place.reserved_until = trio.current_time() + timeouts.RESERVED_S
            self._reserve[place] = None
        return place

    def leave(self, place: Place) -> None:
        """The connection has ended, or is about to; a second time is nothing."""
        if place in self._taken:
            del self._taken[place]
            self._of_address[place.address] -= 1
            if self._of_address[place.address] <= 0:
                del self._of_address[place.address]
        self._reserve.pop(place, None)

    def close_idle(self) -> None:
        """The server stops: connections that wait for nothing end now."""
        for place in (*self._taken, *self._reserve):
            if place.watched is not None:
                place.watched.close_if_idle()

    async def watch(self) -> None:
        """Cut those whose time is up: one round a second for all, not a timer for each request."""
        while True:
            await trio.sleep(timeouts.WATCH_S)
            now = trio.current_time()
            self.unread.trim()
            for place in (*self._taken, *self._reserve):
                if place.watched is not None and now >= place.due():
                    place.watched.cut()

    def _address(self, host: str) -> str:
        """What a client's connections are counted by; empty for a proxy's."""
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return host
        if any(address in network for network in self._uncounted):
            return ""
        if isinstance(address, ipaddress.IPv4Address):
            return host
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((address, IPV6_HOME), strict=False))

    def _longest_idle(self, address: str | None) -> Place | None:
        """The connection that has been idle longest, of one address or of all; None when none is."""
        now = trio.current_time()
        found = self._idle.get(address, [])
        while True:
            while found:
                place = found.pop()
                if place in self._taken and place.idle_since() <= now - timeouts.IDLE_S:
                    return place
            if now < self._look_at.get(address, -math.inf):
                return None
            if len(self._look_at) > ADDRESSES:
                self._look_at.clear()
                self._idle.clear()
            self._look_at[address] = now + LOOK_S
            found = self._idle[address] = self._find_idle(address, now - timeouts.IDLE_S)
            if not found:
                return None

    def _find_idle(self, address: str | None, before: float) -> list[Place]:
        mine = (place for place in self._taken if address is None or place.address == address)
        idle = ((place.idle_since(), number, place) for number, place in enumerate(mine))
        oldest = heapq.nsmallest(LOOKED_FOR, (row for row in idle if row[0] <= before))
        return [place for _, _, place in reversed(oldest)]

    def _end_oldest_reserved(self) -> None:
        place = next(iter(self._reserve), None)
        if place is None:
            return
        self.leave(place)
        if place.watched is not None:
            place.watched.cut()
