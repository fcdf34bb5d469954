"""Terminals that wait for a token."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol
from uuid import UUID

import msgspec


class AuthSessionStatus(StrEnum):
    """A session past its time is ``expired`` whatever stands here, unless it was over before."""

    PENDING = "pending"
    VERIFICATION_PENDING = "verification_pending"
    COMPLETE = "complete"
    CONSUMED = "consumed"
    ABORTED = "aborted"


OPEN_SESSION = (
    AuthSessionStatus.PENDING,
    AuthSessionStatus.VERIFICATION_PENDING,
    AuthSessionStatus.COMPLETE,
)
"""What counts against the limit, and can be aborted, until it expires."""


class AuthSession(msgspec.Struct, frozen=True, gc=False):
    """A terminal that waits for a token."""

    id: UUID
    status: AuthSessionStatus
    version: int
    created_at: int
    expires_at: int
    public_key: str | None = None
    """The terminal's, as it was sent."""
    token_name: str | None = None
    wrong_codes: int = 0
    approved_by: str | None = None
    dashboard_public_key: str | None = None
    ciphertext: str | None = None
    nonce: str | None = None
    code_mac: bytes | None = None
    sealed_token: bytes | None = None
    """Only of a session that was completed with a token in plain text."""
    consumed_at: int | None = None
    consumer_mac: bytes | None = None
    """The MAC of the address that was given the ciphertext."""
    origin: bytes | None = None
    """Where it was begun: of ``ORIGIN_PARTS``; None: a server of an earlier release made it."""


ORIGIN_PARTS = (8, 8, 16)
"""Bytes of the MACs of a wide network, of a narrow one in it, and of the address in that."""


class SessionBounds(msgspec.Struct, frozen=True):
    """How many sessions may be open at once, on all nodes together."""

    all: int = 8_192
    address: int = 16
    """From one address. Of all, the last quarter is for addresses that have none open."""


class SessionsFull(StrEnum):
    """Why there is no room for another session."""

    ALL = "all"
    ADDRESS = "address"


class AuthSessionStore(Protocol):
    async def create(self, session: AuthSession, bounds: SessionBounds) -> SessionsFull | None:
        """Make it where ``decisions.device_logins`` finds room or makes it; None: it was made.

        Where another gives way, that one is aborted in the same commit. Which are open is told by the
        database's clock.
        """
        ...

    async def load(self, session_id: UUID) -> AuthSession | None: ...
    async def save(self, session: AuthSession) -> None:
        """Save where ``version`` is one below ``session.version``, else Conflict."""
        ...

    async def list_open(self, *, approved_by: str | None, limit: int) -> Sequence[UUID]:
        """Open ones, oldest first: all, or those that one caller approved."""
        ...
