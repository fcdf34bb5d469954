"""One checked request, as a handler gets it."""

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar
from uuid import UUID

import msgspec

from sexton_http.answers import RequestHead
from sexton_http.ceilings import ANYBODY, Claim
from sexton_http.gateway.audit_action import Audit
from sexton_http.gateway.byte_budget import ROOM_S, Room, no_room
from sexton_http.gateway.seeds import Seed
from sexton_http.gateway.services import Services
from sexton_http.identity.context import HttpContext
from sexton_http.identity.principals import Delegate, Member, Principal, RunnerHost, SignedIn


def _nothing() -> None:
    """Nothing is to be done for a call that holds no place."""


B = TypeVar("B")
Q = TypeVar("Q")


class Call(msgspec.Struct, Generic[B, Q], frozen=True):
    """One checked request: everything a handler needs, and nothing of the framework."""

    services: Services
    head: RequestHead
    params: Mapping[str, Any]
    principal: Principal
    body: B
    query: Q
    raw: bytes
    request_id: str
    traceparent: str | None
    seed: Seed | None = None
    """Under an Idempotency-Key: what is made comes of it."""
    room: Room | None = None
    """What its answer has of the bytes under way; None: of a route whose answers are small."""
    claim: Claim = ANYBODY
    """As whom the caller holds what he takes."""
    leave_door: Callable[[], None] = _nothing
    """Let the next one of the line in: this one only waits from now on, and costs the server nothing."""
    audit: Audit | None = None
    """What the audit log says of what this changes."""

    async def reserve(self, size: int) -> None:
        """Have room for so large an answer before it is read, so that it is not in memory while it waits.

        Raises Problem UZ-API-003 when there is none for a moment.
        """
        if self.room is not None and not await self.room.grow(size, ROOM_S):
            raise no_room()

    def new_id(self) -> UUID:
        """The id of the one thing that is made."""
        return self.ctx.world.new_id() if self.seed is None else self.seed.id

    def new_token(self, size: int) -> str:
        """``size`` random bytes in hex, for the one secret that is made; 32 at most."""
        return self.ctx.world.new_token(size) if self.seed is None else self.seed.token(size)

    @property
    def ctx(self) -> HttpContext:
        return self.services.ctx

    @property
    def member(self) -> Member:
        """The caller of a route that is for members; the declaration says so."""
        if not isinstance(self.principal, Member):
            raise TypeError("this route is not declared for members")
        return self.principal

    @property
    def browser(self) -> UUID | None:
        """The browser session that the caller's token belongs to, if any."""
        return self.principal.browser if isinstance(self.principal, Member) else None

    @property
    def caller(self) -> Member | Delegate:
        """The caller of a route that is for members and for agents' keys; the declaration says so."""
        return self.principal if isinstance(self.principal, Delegate) else self.member

    @property
    def signed_in(self) -> SignedIn:
        """The caller of a route that is for browsers; the declaration says so."""
        if not isinstance(self.principal, SignedIn):
            raise TypeError("this route is not declared for browsers")
        return self.principal

    @property
    def host(self) -> RunnerHost:
        """The caller of a route that is for runners; the declaration says so."""
        if not isinstance(self.principal, RunnerHost):
            raise TypeError("this route is not declared for runners")
        return self.principal

    def id(self, name: str) -> UUID:
        """A parameter of the path that is an id, checked."""
        value: UUID = self.params[name]
        return value

    def text(self, name: str) -> str:
        """A parameter of the path that is no id."""
        value: str = self.params[name]
        return value
