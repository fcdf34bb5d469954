"""Links, browsers and terminals that are signed in, and sign-ins under way elsewhere."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol
from uuid import UUID

import msgspec


class SignInLink(msgspec.Struct, frozen=True, gc=False):
    token_hash: bytes
    user_id: UUID
    created_at: int
    expires_at: int
    used_at: int | None = None


class SignInKind(StrEnum):
    """Where somebody is signed in."""

    BROWSER = "browser"
    TERMINAL = "terminal"


class BrowserSession(msgspec.Struct, frozen=True, gc=False):
    """Somebody who stays signed in: in a browser by a cookie, in a terminal by a refresh token."""

    id: UUID
    token_hash: bytes
    """SHA-256 of the cookie's value, or of the refresh token."""
    user_id: UUID
    created_at: int
    seen_at: int
    idle_ends_at: int
    """Moved on by use."""
    ends_at: int
    """Moved by nothing."""
    kind: SignInKind = SignInKind.BROWSER
    name: str = ""
    """What a terminal calls itself."""


class SignInAttempt(msgspec.Struct, frozen=True, gc=False):
    """A person who was sent to an identity provider and has not come back."""

    state_hash: bytes
    provider: str
    browser_hash: bytes
    """SHA-256 of the cookie that the same browser brings back."""
    sealed: bytes
    """The verifier and the nonce."""
    created_at: int
    expires_at: int


class SignInStore(Protocol):
    async def offer(self, link: SignInLink) -> None:
        """The same link again is the one that is there."""
        ...

    async def find_link(self, token_hash: bytes) -> SignInLink | None:
        """Also finds used and expired ones, until they are swept."""
        ...

    async def withdraw(self, user_id: UUID) -> None:
        """No link of this user that has not been used signs anybody in any more."""
        ...

    async def sign_in(self, session: BrowserSession, *, link_hash: bytes | None) -> bool:
        """Use up the link and add the session in one commit.

        False when the link is unknown, of another user, used or expired by the database's clock. None:
        signed in elsewhere, without a link. Raises NameTaken when there is a session of this id.
        """
        ...

    async def find_session(self, token_hash: bytes) -> BrowserSession | None: ...
    async def load_session(self, session_id: UUID) -> BrowserSession | None: ...
    async def list_sessions(self, user_id: UUID, *, limit: int) -> Sequence[BrowserSession]:
        """The user's that are not over by the database's clock, newest first."""
        ...

    async def list_tenant(
        self, tenant_id: UUID, *, user_id: UUID | None, limit: int
    ) -> Sequence[BrowserSession]:
        """As ``list_sessions``, of all who sign in to a tenant, or of one of them."""
        ...

    async def touch(self, session_id: UUID, *, seen_at: int, idle_ends_at: int) -> None:
        """Both only move forward."""
        ...

    async def sign_out(self, session_id: UUID) -> bool: ...
    async def sign_out_all(self, user_id: UUID) -> Sequence[UUID]:
        """The sessions that were ended, in browsers and terminals."""
        ...

    async def begin(self, attempt: SignInAttempt) -> None: ...
    async def take(self, state_hash: bytes) -> SignInAttempt | None:
        """Give it to the first who asks and to nobody after; also an expired one."""
        ...
