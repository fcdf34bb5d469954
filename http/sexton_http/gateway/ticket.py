"""A request that was let in by its head, on its way to its body and its answer."""

from collections.abc import Hashable, Mapping
from typing import Any

from sexton_http.answers import RequestHead
from sexton_http.ceilings import ANYBODY, Ceiling, Claim, Place
from sexton_http.gateway.admission import Door
from sexton_http.gateway.byte_budget import Room
from sexton_http.gateway.limits import Verdict
from sexton_http.gateway.opening_line import Turn
from sexton_http.gateway.request_log import RequestContext
from sexton_http.identity.principals import NOBODY, Principal


class Ticket:
    """Who calls, as whom it holds places, and those places. Whoever takes one calls ``leave`` at the end."""

    __slots__ = (
        "_budget",
        "_bytes",
        "_ceiling",
        "_door",
        "_is_in",
        "_place",
        "_too_busy",
        "claim",
        "context",
        "opening",
        "params",
        "principal",
        "room",
        "spent_s",
        "verdicts",
    )

    def __init__(
        self,
        context: RequestContext,
        ceiling: Ceiling | None,
        budget: Ceiling,
        *,
        door: Door | None = None,
        too_busy: int = 0,
        room: Room | None = None,
    ) -> None:
        """``ceiling`` None: the route is never shed. ``budget`` bounds the bytes of all bodies together.

        ``door`` is where its kind of ingress waits in line; None: it never waits. Whoever is sent away there
        is answered with the status ``too_busy``. ``room`` is what the answer takes of the bytes under way;
        None: it is too small to be counted.
        """
        self._ceiling = ceiling
        self._budget = budget
        self._place: Place | None = None
        self._bytes: Place | None = None
        self._door = door
        self._is_in = False
        self._too_busy = too_busy
        self.room = room
        self.opening: Turn | None = None
        """The turn of a stream, until it is open."""
        self.context = context
        self.claim: Claim = ANYBODY
        self.principal: Principal = NOBODY
        self.params: Mapping[str, Any] = context.params
        self.verdicts: list[Verdict] = []
        self.spent_s = 0.0
        """How long it took so far, without the time in which its body came."""

    def __repr__(self) -> str:
        return f"<Ticket of {self.context!r}>"

    @property
    def head(self) -> RequestHead:
        return self.context.head

    async def enter(self) -> None:
        """Wait for its turn, and take a place among the requests. Raises Overloaded and Full."""
        if self._door is not None and not self._is_in:
            await self._door.enter(whose(self.head, self.context.params), self._too_busy)
            self._is_in = True
        self.take_place()

    def take_place(self) -> None:
        """A place among the requests, where no line is before it. Raises Full."""
        if self._ceiling is not None and self._place is None:
            self._place = self._ceiling.enter(self.claim)

    def name(self, claim: Claim) -> None:
        """From now on it is known who calls. Raises Full."""
        self.claim = claim
        if self._place is not None:
            self._place.rename(claim)

    def pause(self) -> None:
        """While the body is awaited no place is held: a slow sender takes nothing but his connection."""
        self.leave_door()
        if self._place is not None:
            self._place.leave()
            self._place = None

    def leave_door(self) -> None:
        """Let the next one of the line in; a second time does nothing."""
        if self.opening is not None:
            self.opening.leave()
        if self._door is not None and self._is_in:
            self._is_in = False
            self._door.leave()

    def keep(self, size: int) -> None:
        """Count bytes of the body that are in memory now. Raises Full."""
        if self._bytes is None:
            self._bytes = self._budget.enter(self.claim, size)
        else:
            self._bytes.add(size)

    def leave(self) -> None:
        """Answered, or given up; a second time does nothing."""
        self.pause()
        if self._bytes is not None:
            self._bytes.leave()
            self._bytes = None
        if self.room is not None:
            self.room.shrink(0)


def whose(head: RequestHead, params: Mapping[str, Any]) -> Hashable:
    """Who shares a line with others: the agent of a webhook, else the token or the address."""
    zombie_id = params.get("zombie_id")
    token = head.headers.get(b"authorization")
    return zombie_id if token is None and zombie_id is not None else token or head.client
