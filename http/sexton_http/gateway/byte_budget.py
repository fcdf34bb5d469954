"""Bounds the bytes of all answers that are being made or sent, and divides them among callers."""

from collections import Counter, deque
from types import TracebackType
from typing import Final, Self

import trio

from sexton_http.answers import Problem
from sexton_http.ceilings import DEFAULT_SHARES, Bound, Claim, Shares, Standing, claim_of, rooms

SMALL_BYTES: Final = 16 * 1024
"""An answer up to this is not counted: to refuse it would take as much."""
ROOM_S: Final = 1.0
"""How long an answer waits for its room before it is refused."""
WAIT_S: Final = 1
"""Seconds after which a caller that was refused may try again."""
STRANGERS: Final = "strangers"


def claim_of_stranger(address: str) -> Claim:
    """All strangers together are one caller: none of them needs a large answer to do his work.

    >>> claim_of_stranger("192.0.2.7").keys[-1] == claim_of_stranger("192.0.2.8").keys[-1]
    True
    """
    return claim_of(address, None, STRANGERS)


class _Waiter:
    """Somebody who waits for room, and whether he was given it."""

    __slots__ = ("event", "granted", "owner", "size")

    def __init__(self, owner: Claim, size: int) -> None:
        self.owner = owner
        self.size = size
        self.event = trio.Event()
        self.granted = False


class ByteBudget:
    """A bound on the bytes that are under way at once.

    It is divided as every ceiling is: a slow reader leaves room for others, a tenant for other tenants, and
    all of them for operators. What is larger than a share is let through when nothing else of that share is
    under way: it is bounded where it is made, and would otherwise never be sent.
    """

    def __init__(self, limit: int, shares: Shares = DEFAULT_SHARES) -> None:
        self.limit = limit
        self.now = 0
        self._rooms = rooms(limit, shares)
        self._held: Counter[tuple[Bound, object]] = Counter()
        self._waiting: deque[_Waiter] = deque()

    def __repr__(self) -> str:
        return f"<ByteBudget {self.now}/{self.limit}, {len(self._waiting)} waiting>"

    async def take(self, owner: Claim, size: int, wait_s: float) -> bool:
        """Count the bytes once there is room for them; False, and nothing is counted, if there is none."""
        if not self._waiting and self._fits(owner, size):
            self.count(owner, size)
            return True
        waiter = _Waiter(owner, size)
        self._waiting.append(waiter)
        try:
            # Whoever came meanwhile may be one whose own share is used up: he holds up nobody.
            self._admit()
            with trio.move_on_after(wait_s):
                await waiter.event.wait()
        except BaseException:
            if waiter.granted:
                self.give_back(owner, size)
            raise
        finally:
            if not waiter.granted:
                self._waiting.remove(waiter)
                self._admit()
        return waiter.granted

    async def keeps_up(self, owner: Claim, wait_s: float) -> bool:
        """Whether neither the caller nor all together are beyond their bounds, now or after a wait."""
        if not self._fits(owner, 0):
            if not await self.take(owner, 0, wait_s):
                return False
            self.give_back(owner, 0)
        return True

    def count(self, owner: Claim, size: int) -> None:
        """Count the bytes whether there is room or not: of an answer that must not be refused."""
        self.now += size
        for key in owner.keys:
            self._held[key] += size

    def give_back(self, owner: Claim, size: int) -> None:
        self.now -= size
        for key in owner.keys:
            self._held[key] -= size
            if self._held[key] <= 0:
                del self._held[key]
        self._admit()

    def _fits(self, owner: Claim, size: int) -> bool:
        whole = self._rooms[Bound.ALL, owner.standing]
        return self._within_share(owner, size) and (self.now == 0 or self.now + size <= whole)

    def _within_share(self, owner: Claim, size: int) -> bool:
        for key in owner.keys:
            held = self._held[key]
            if held and held + size > self._rooms[key[0], owner.standing]:
                return False
        return True

    def _admit(self) -> None:
        """First come, first served, but for those whose own share is used up: they wait for themselves.

        Whoever waits for room in the whole holds up no caller of a higher standing: some is kept for them.
        """
        left: deque[_Waiter] = deque()
        held_up: Standing | None = None
        while self._waiting:
            waiter = self._waiting.popleft()
            standing = waiter.owner.standing
            if (held_up is None or standing > held_up) and self._fits(waiter.owner, waiter.size):
                self.count(waiter.owner, waiter.size)
                waiter.granted = True
                waiter.event.set()
                continue
            left.append(waiter)
            if (held_up is None or standing > held_up) and self._within_share(waiter.owner, waiter.size):
                held_up = standing
                if standing is Standing.ADMIN:
                    break
        left.extend(self._waiting)
        self._waiting = left


class Room:
    """What one request has of the budget; all of it is given back at the end of the ``with``."""

    __slots__ = ("_budget", "owner", "size")

    def __init__(self, budget: ByteBudget, owner: Claim) -> None:
        self._budget = budget
        self.owner = owner
        """The caller whose shares count, as soon as he is known; until then a stranger."""
        self.size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shrink(0)

    async def grow(self, size: int, wait_s: float) -> bool:
        """Have at least that many bytes; False when there is no room for them.

        Two that ask at the same time may have the bytes of both.
        """
        more = size - self.size
        if more > 0:
            if not await self._budget.take(self.owner, more, wait_s):
                return False
            self.size += more
        return True

    async def may_begin(self, wait_s: float) -> bool:
        """Whether a request may begin whose answer will have to be sent, room or not."""
        return await self._budget.keeps_up(self.owner, wait_s)

    def count(self, size: int) -> None:
        """Have that many bytes, whether there is room or not."""
        if size > self.size:
            self._budget.count(self.owner, size - self.size)
            self.size = size

    def shrink(self, size: int) -> None:
        """Give back what is above ``size``."""
        if size < self.size:
            self._budget.give_back(self.owner, self.size - size)
            self.size = size


def no_room() -> Problem:
    """What an answer that found no room becomes."""
    detail = "too many large answers are under way; try again after Retry-After, or ask for fewer at once"
    return Problem("UZ-API-003", detail, wait_s=WAIT_S)
