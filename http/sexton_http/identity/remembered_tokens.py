"""Remembers for a second whose tokens were right."""

from collections.abc import Callable
from typing import Final
from uuid import UUID

import msgspec

from sexton_http.identity.principals import Delegate, Member, RunnerHost

REMEMBER_S: Final = 1.0
"""How long another node may go on accepting a token that was revoked here."""
REMEMBER_COUNT: Final = 16_384

Known = Member | RunnerHost | Delegate


class _Known(msgspec.Struct, frozen=True):
    principal: Known
    until: float


class RememberedTokens:
    """By the hash of the token. What was changed since it was read is never remembered."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._known: dict[bytes, _Known] = {}
        self.changes = 0
        """Grows with every change of what somebody may do."""

    def __repr__(self) -> str:
        return f"<RememberedTokens {len(self._known)}>"

    def recall(self, hashed: bytes) -> Known | None:
        known = self._known.get(hashed)
        if known is None:
            return None
        if known.until <= self._monotonic():
            del self._known[hashed]
            return None
        return known.principal

    def remember(self, hashed: bytes, principal: Known, changes: int | None = None) -> None:
        """``changes`` is what it was before the principal was read; None: nothing can have changed."""
        if changes is not None and changes != self.changes:
            return  # What was read may be older than a change that was told of meanwhile.
        if len(self._known) >= REMEMBER_COUNT:
            self._known.clear()
        self._known[hashed] = _Known(principal, self._monotonic() + REMEMBER_S)

    def forget(self, hashed: bytes) -> None:
        """The record behind a token has changed."""
        self._known.pop(hashed, None)

    def forget_access(self, ids: frozenset[UUID]) -> None:
        """What these people, keys and sign-ins may do was changed."""
        self.changes += 1
        self._drop(lambda principal: not ids.isdisjoint(principal.ends_with))

    def forget_tenant(self, tenant_id: UUID) -> None:
        """The tenant's plan was changed."""
        self._drop(lambda principal: principal.tenant_id == tenant_id)

    def _drop(self, is_meant: Callable[[Member | Delegate], bool]) -> None:
        theirs = [
            hashed
            for hashed, known in self._known.items()
            if not isinstance(known.principal, RunnerHost) and is_meant(known.principal)
        ]
        for hashed in theirs:
            del self._known[hashed]
